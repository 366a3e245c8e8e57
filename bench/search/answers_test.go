package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/study/definition"
)

// A peer's training counts in full with its last epoch, and only where it is better
// than those before.
func TestASessionKnowsWhatWasMeasuredInFull(t *testing.T) {
	one := newSession("peer", small(t), 1, 40)
	for _, asked := range []training{
		{Params: params(10, 1), From: 1, To: 8},
		{Params: params(100, 1), From: 1, To: 9}, // diverges
		{Params: params(1, 1), From: 1, To: 9},
		{Params: params(100, 8), From: 1, To: 9}, // worse
		{Params: params(10, 1), From: 9, To: 9},
	} {
		asked.Fraction = 1
		if _, err := one.train(asked); err != nil {
			t.Fatal(err)
		}
	}
	if len(one.full) != 2 || one.full[0].cost != 26 || one.full[1].cost != 36 || one.full[1].missing != 0 {
		t.Errorf("measured in full: %v", one.full)
	}
	for missing, want := range map[float64]float64{1: 26. / 40, 0.4: 36. / 40, 0: 36. / 40, -1: math.Inf(1)} {
		if got := one.reaches(missing); got != want {
			t.Errorf("all but %v is reached after %v of the budget, want %v", missing, got, want)
		}
	}
}

// Without a ladder the first training is a full one; with one it comes later than
// the first incumbent.
func TestAStudyKnowsWhatWasMeasuredInFull(t *testing.T) {
	for climb, want := range map[string]float64{"none": 9, "asynchronous": 3*1 + 2 + 3*1 + 2 + 3*1 + 2 + 6} {
		one, err := runStudy(t.Context(), small(t), 90, setup{method: "sobol", climb: climb, workers: 1, seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(one.full) == 0 || one.full[0].cost < want || climb == "none" && one.full[0].cost > 3*want {
			t.Errorf("%s: measured in full: %v, the first expected after %v", climb, one.full, want)
		}
		if climb != "none" && one.marks[0].cost >= one.full[0].cost {
			t.Errorf("%s: the incumbents are %v, measured in full %v", climb, one.marks, one.full)
		}
		last := one.full[len(one.full)-1]
		if want := small(t).regret(0.9 * (1 - last.missing)); math.Abs(one.regretAt(1)-want) > 1e-9 {
			t.Errorf("%s: at the end %v is missing, and the recommendation has a regret of %v, want %v", climb, last.missing, one.regretAt(1), want)
		}
	}
}

func TestWhatIsMissing(t *testing.T) {
	up := small(t)
	down := &table{definition: up.definition, best: 0.9}
	down.definition.Objectives = []definition.Objective{{Metric: "loss", Direction: definition.Minimize}}
	for _, c := range []struct {
		of          *table
		value, want float64
	}{{up, 0.9, 0}, {up, 0.81, 0.1}, {up, 0, 1}, {up, 0.99, -0.1}, {down, 0.9, 0}, {down, 1, 0.1}} {
		if got := c.of.missing(c.value); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v is missing %v, want %v", c.of.definition.Objectives[0].Direction, c.value, got, c.want)
		}
	}
}

func TestTheReportCountsWhatIsNeverMeasured(t *testing.T) {
	r := report{tables: []*table{small(t)}}
	for seed := range uint64(4) {
		full := []milestone{{1, 0.5}, {float64(seed + 2), 0.02}}
		r.runs = append(r.runs, finished{method: "a", problem: "small", seed: seed, budget: 10, full: full})
	}
	for seed := range uint64(4) {
		one := finished{method: "b", problem: "small", seed: seed, budget: 10}
		if seed > 1 {
			one.full = []milestone{{9, 0}}
		}
		r.runs = append(r.runs, one)
	}
	var printed bytes.Buffer
	r.print(&printed)
	before := 0
	for _, line := range []string{
		"| a | 4 | 10.0 (10.0 to 10.0) | 30.0 (20.0 to 40.0) | 30.0 (20.0 to 40.0) | 30.0 (20.0 to 40.0) | never (never to never), 4 never |",
		"| b | 4 | 90.0 (90.0 to never), 2 never | 90.0 (90.0 to never), 2 never | 90.0 (90.0 to never), 2 never | 90.0 (90.0 to never), 2 never |",
		"| small: mean regret (95% band) |",
		"| b | 4, 0, p = 0.62 (0.62) | 4, 0, p = 0.62 (0.62) | 4, 0, p = 0.62 (0.62) | 4, 0, p = 0.62 (0.62) | 0, 2, p = 0.62 (0.62) |",
	} {
		at := strings.Index(printed.String(), line)
		if at < before {
			t.Errorf("%q is not in the report, or not in its place:\n%s", line, printed.String())
		}
		before = max(before, at)
	}
	if got := spread(nil); got != "" {
		t.Errorf("of no runs it is %q", got)
	}
	if values := []float64{1, 0.5, math.Inf(1)}; spread(slices.Clone(values)) != "100.0 (50.0 to never), 1 never" {
		t.Error(fmt.Sprint(values), "becomes", spread(values))
	}
}
