package show

import (
	"math"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/trial"
)

func TestHeatMapReadsWithoutColour(t *testing.T) {
	profiles := []trial.Profile{
		{Events: map[string]trial.Float{"page-faults": 10, "major-faults": 0}, Host: map[string]trial.Float{"tree.threads": 2}},
		{Events: map[string]trial.Float{"page-faults": 110, "instructions": 5}, Host: map[string]trial.Float{"tree.threads": 2}},
		{Events: map[string]trial.Float{"page-faults": 60}, Host: map[string]trial.Float{"tree.threads": 2, "machine.cpu_user": 1}},
	}
	var out strings.Builder
	if err := PrintHeatMap(&out, []string{"1", "2", "3"}, HeatRows(profiles), false); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"EPOCH             1  2  3", "instructions        ~~   ", "page-faults      .. @@ ++", "tree.threads     ~~ ~~ ~~", "machine.cpu_user       ~~", "Always 0: major-faults",
	}
	lines := strings.Split(out.String(), "\n")[1:]
	for i, line := range want {
		if !strings.HasPrefix(lines[i], line) {
			t.Errorf("line %d is %q, want %q", i, lines[i], line)
		}
	}
	var coloured strings.Builder
	if err := PrintHeatMap(&coloured, []string{"1", "2", "3"}, HeatRows(profiles), true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(coloured.String(), "\x1b[48;5;227m@@") {
		t.Errorf("no colour on a terminal: %q", coloured.String())
	}
}

func TestManyEpochsShareColumns(t *testing.T) {
	values := make([]float64, 100)
	names := make([]string, 100)
	for i := range values {
		values[i] = float64(i)
	}
	values[0] = math.NaN()
	var out strings.Builder
	if err := PrintHeatMap(&out, names, []HeatRow{{"x", values}}, false); err != nil {
		t.Fatal(err)
	}
	if cells := strings.Count(strings.Split(out.String(), "\n")[2], " ") - 1; !strings.Contains(out.String(), "mean of 3 epochs") || cells < 34 {
		t.Errorf("got %s", out.String())
	}
}
