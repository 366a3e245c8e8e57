package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJoulesComeFromTheMeter runs a study on a worker with a meter that says 1000 W: its
// joules are about as many for each second, which no estimate comes near, and name the
// meter.
func TestJoulesComeFromTheMeter(t *testing.T) {
	t.Parallel()
	meter := filepath.Join(t.TempDir(), "plug")
	if err := os.WriteFile(meter, []byte("#!/bin/sh\nwhile echo 1000; do sleep 0.1; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	here := newSite(t)
	here.worker("--slots", "1", "--meter", "command:"+meter)
	s := newStudy(t, "metered", nineEpochs, "0.1", 2)
	here.must("study", "create", s.file)
	here.must("study", "watch", "metered")
	seconds, joules := 0.0, 0.0
	for _, reports := range here.books("metered").reports(t) {
		for _, report := range reports {
			if report.Energy.Method != "meter plug" {
				t.Fatalf("an epoch's joules are obtained by %q", report.Energy.Method)
			}
			seconds, joules = seconds+float64(report.Seconds), joules+float64(report.Energy.Joules)
		}
	}
	if joules < 500*seconds || joules > 3000*seconds { // an epoch's energy is read when its report is there
		t.Errorf("%.0f J in %.1f s at 1000 W", joules, seconds)
	}
	if told := here.must("study", "show", "metered"); strings.Contains(told, "estimate") || !strings.Contains(told, "meter plug") {
		t.Errorf("what was measured is called an estimate, or nothing says by what:\n%s", told)
	}
}

// TestSamplesAreKept lets a trial train until what was sampled of it can be exported. The
// other worker does not profile: of its trial there is nothing.
func TestSamplesAreKept(t *testing.T) {
	t.Parallel()
	meter := filepath.Join(t.TempDir(), "plug")
	if err := os.WriteFile(meter, []byte("#!/bin/sh\nwhile echo 1000; do sleep 0.1; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	here := newSite(t)
	sampled, blind := newStudy(t, "sampled", "epochs, epochs: {min: 5000, max: 5000}, eta: 3", "0.1", 1), newStudy(t, "blind", nineEpochs, "0.1", 1)
	here.must("study", "create", blind.file)
	here.worker("--slots", "1", "--study", "blind", "--no-profile")
	here.must("study", "create", sampled.file)
	here.worker("--slots", "1", "--study", "sampled", "--meter", "command:"+meter)
	var rows []map[string]string
	until(t, "two samples", func() bool {
		got := here.cli("study", "export", "sampled", "--samples", "0")
		if got.code == 0 { // else there is no trial yet
			rows = readCSV(t, got.stdout)
		}
		return len(rows) >= 2
	})
	if last := rows[len(rows)-1]; last["energy_method"] != "meter plug" || !strings.HasPrefix(last["machine.watts"], "1000") || last["tree.cpu_user"] == "" || last["epoch"] == "" {
		t.Errorf("the newest sample is %v", last)
	}
	if told := here.must("study", "export", "sampled", "--samples", "0", "--format", "openmetrics"); !strings.Contains(told, `tandem_trial_machine_watts{study="sampled",trial="0"`) || !strings.HasSuffix(told, "# EOF\n") {
		t.Errorf("as OpenMetrics:\n%s", told)
	}
	here.must("study", "stop", "sampled")
	here.must("study", "watch", "blind")
	if rows := readCSV(t, here.must("study", "export", "blind", "--samples", "0")); len(rows) > 0 {
		t.Errorf("a worker that does not profile sent %v", rows)
	}
}
