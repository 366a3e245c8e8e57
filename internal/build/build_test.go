package build_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/build"
)

// TestThoseOfOtherVersionsAreNamedTogether, and all that are of the server's version are not.
func TestThoseOfOtherVersionsAreNamedTogether(t *testing.T) {
	all := func(programs ...string) []string {
		return build.Unlike(func(yield func(string, build.Build) bool) {
			for i, program := range programs {
				yield("w"+string(rune('a'+i)), build.Of(program, "1.2"))
			}
		})
	}
	if lines := all("tandem/1.2", "tandem/1.2 (a note)", "curl/8", "tandem-python/1.1", "", "tandem/"+strings.Repeat("1", 65)); len(lines) > 0 {
		t.Errorf("of equals it says %q", lines)
	}
	want := []string{
		"wa is tandem 1.0, and the server is tandem 1.2: upgrade the older",
		"wb, wc, wd and 1 more are tandem 1.1, and the server is tandem 1.2: upgrade the older",
	}
	if lines := all("tandem/1.0", "tandem/1.1", "tandem/1.1", "tandem/1.1", "tandem/1.1", "tandem/1.2"); !slices.Equal(lines, want) {
		t.Errorf("it says %q", lines)
	}
	if one := build.Of("tandem/1.1", ""); one != (build.Build{Version: "1.1"}) {
		t.Errorf("a server that does not know its version says %+v", one)
	}
}
