package similarity_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/similarity"
)

func TestGroupingsAreWrittenAsFlags(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"average-linkage": "average-linkage", "k-means": "k-means", "k-means:auto": "k-means", "k-means:4": "k-means:4", "k-means:64": "k-means:64",
		"": "is no method", "dbscan": "use k-means, or average-linkage", "k-means:0": "auto, or 1 to 64", "k-means:65": "auto, or 1 to 64", "k-means:": "auto, or 1 to 64",
		"average-linkage:3": "only k-means takes a number",
	} {
		by, err := similarity.ParseGrouping(text)
		if err == nil && by.String() != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %s, %v", text, by, err)
		}
	}
	if (similarity.Grouping{}).String() != similarity.MethodAverageLinkage {
		t.Errorf("who says nothing gets %s", similarity.Grouping{})
	}
}
