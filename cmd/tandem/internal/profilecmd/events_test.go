package profilecmd

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
)

func TestEventsThatAreNamedAreCounted(t *testing.T) {
	var events EventList
	for _, text := range []string{"task-clock,page-faults", "cpu-clock,page-faults"} { // one of them twice
		if err := events.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, event := range events.chosen() {
		names = append(names, event.Name)
	}
	slices.Sort(names)
	if want := []string{"cpu-clock", "page-faults", "task-clock"}; !slices.Equal(names, want) {
		t.Errorf("counted are %v, want %v", names, want)
	}
	if all := EventList(nil).chosen(); len(all) < 62 {
		t.Errorf("without the flag %d events are counted", len(all))
	}
	var stdout, stderr bytes.Buffer
	code := execute(t, []string{"worker", "--events", "typo"}, &stdout, &stderr)
	if code != term.ExitUsage || !strings.Contains(stderr.String(), "no event is called typo") {
		t.Errorf("code %d and %q", code, &stderr)
	}
}
