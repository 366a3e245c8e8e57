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
