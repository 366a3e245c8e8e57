package profilecmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/profiler"
)

// epochsAs are recorded epochs in which minor-faults follow page-faults and
// context-switches do not, in the given half of twelve.
func epochsAs(t *testing.T, format string, from, to int) string {
	t.Helper()
	var list []string
	for at := from; at < to; at++ {
		faults, switches := 1000*math.Exp(float64(at)/4), 100*float64(1+at*5%7)
		events := map[string]float64{"page-faults": faults, "minor-faults": faults * 0.99, "context-switches": switches, "task-clock": 1e9, "major-faults": 0}
		var content any = events
		if format == "epochs" {
			var rows []profiler.EventProfile
			for name, rate := range events {
				rows = append(rows, profiler.EventProfile{Name: name, PerSecond: rate})
			}
			content = rows
		}
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf(`{"epoch": %d, "profile": {"events": %s}}`, at, text))
	}
	path := filepath.Join(t.TempDir(), format+".json")
	if err := os.WriteFile(path, fmt.Appendf(nil, `{%q: [%s, {"epoch": 99, "profile": {"events": null}}]}`, format, strings.Join(list, ",")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEventsOfRecordedEpochs(t *testing.T) {
	ofACommand, ofATrial := epochsAs(t, "epochs", 0, 6), epochsAs(t, "reports", 6, 12)
	list := filepath.Join(t.TempDir(), "events.txt")
	var stdout, stderr bytes.Buffer
	if code := execute(t, []string{"events", ofACommand, ofATrial, "--write", list}, &stdout, &stderr); code != 0 {
		t.Fatalf("code %d: %s", code, &stderr)
	}
	for _, part := range []string{"12 epochs, rates per second of CPU time. Of 5 events, 3 are worth", "hardly changed: major-faults", "task-clock, page-faults, context-switches"} {
		if !strings.Contains(stdout.String(), part) {
			t.Errorf("%q is not in\n%s", part, &stdout)
		}
	}
	// What it wrote is what is counted.
	written, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, append(written, "of-another-machine # and unknown here\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	var events EventList
	if err := events.Set("@" + list); err != nil {
		t.Fatal(err)
	}
	if err := events.Set("cpu-clock"); err != nil { // given twice
		t.Fatal(err)
	}
	var names []string
	for _, event := range events.chosen() {
		names = append(names, event.Name)
	}
	if want := []string{"task-clock", "page-faults", "context-switches", "cpu-clock"}; !slices.Equal(names, want) {
		t.Errorf("counted are %v, want %v", names, want)
	}
	if all := EventList(nil).chosen(); len(all) < 62 {
		t.Errorf("without the flag %d events are counted", len(all))
	}
}

func TestEventsRefuseWhatTheyCannotUse(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{"none.txt": "of-another-machine\n", "text.json": "no JSON"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		args []string
		want string
		code int
	}{
		"no file":            {[]string{"events"}, "give files", term.ExitUsage},
		"a missing file":     {[]string{"events", filepath.Join(folder, "x.json")}, "no such file", term.ExitFailed},
		"no JSON":            {[]string{"events", filepath.Join(folder, "text.json")}, "text.json is not what", term.ExitUsage},
		"few epochs":         {[]string{"events", epochsAs(t, "epochs", 0, 3)}, "3 epochs", term.ExitUsage},
		"a threshold":        {[]string{"events", epochsAs(t, "epochs", 0, 12), "--threshold", "2"}, "at most 1", term.ExitUsage},
		"an unknown event":   {[]string{"worker", "--events", "typo"}, "no event is called typo", term.ExitUsage},
		"nothing to count":   {[]string{"worker", "--events", "@" + filepath.Join(folder, "none.txt")}, "names no event", term.ExitUsage},
		"a list that is not": {[]string{"profile", "--events", "@" + filepath.Join(folder, "none"), "--", "true"}, "no such file", term.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := execute(t, test.args, &stdout, &stderr); code != test.code || !strings.Contains(stderr.String(), test.want) {
				t.Errorf("code %d and %q, want %d and %q", code, &stderr, test.code, test.want)
			}
		})
	}
}
