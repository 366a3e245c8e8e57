package trial_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/trial"
)

// A trial keeps so many bytes: one that replaces another counts for it.
func TestTheArtifactsOfATrialAreBoundedTogether(t *testing.T) {
	var of trial.Trial
	add := func(name string, bytes int64) error {
		next, _, err := of.WithArtifact(trial.Artifact{Name: name, SHA256: fmt.Sprint(name, bytes), Bytes: bytes})
		of = next
		return err
	}
	for _, name := range []string{"d", "b", "a", "c"} {
		if err := add(name, trial.LargestArtifact); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("e", 1); err == nil || !strings.Contains(err.Error(), "may have 33554432") {
		t.Errorf("one too many: %v", err)
	}
	if err := add("b", trial.LargestArtifact-1); err != nil {
		t.Errorf("in place of a larger one: %v", err)
	}
	if err := add("e", 1); err != nil || of.Logged[1].Name != "b" || of.Logged[4].Name != "e" {
		t.Errorf("%+v: %v", of.Logged, err)
	}
	if err := add(trial.Model, trial.LargestModel); err != nil {
		t.Errorf("the trained model: %v", err)
	}
	for name, most := range map[string]int64{trial.Model: trial.LargestModel, "other.onnx": trial.LargestArtifact} {
		if trial.CheckArtifact(name, most) != nil || trial.CheckArtifact(name, most+1) == nil {
			t.Errorf("%s may have another size than %d", name, most)
		}
	}
}
