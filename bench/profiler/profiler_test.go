package main

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// paired are pairs whose profiled runs take longer by the shares.
func paired(shares ...float64) []pair {
	var list []pair
	for i, share := range shares {
		base := 1 + float64(i%3) // the machine's unrest, which both of a pair have
		list = append(list, pair{Plain: run{Seconds: base}, Profiled: run{Seconds: base * (1 + share), Events: 7, Level: "all"}})
	}
	return list
}

func TestRowOfPairs(t *testing.T) {
	for name, test := range map[string]struct {
		shares []float64
		want   []string
	}{
		"met":       {[]float64{.001, .002, .003, .004, .005}, []string{"+0.30% (+0.10 to +0.50)", "| met |", "7 events, all"}},
		"missed":    {[]float64{.02, .03, .025, .04, .05, .02}, []string{"+2.75%", "| missed |"}},
		"undecided": {[]float64{-.02, .03, .005, .04, -.05, .02}, []string{"+1.25%", "| undecided |"}},
	} {
		got := row(workload{name: name, what: "x"}, paired(test.shares...))
		for _, part := range test.want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q is not in %s", name, part, got)
			}
		}
		if again := row(workload{name: name, what: "x"}, paired(test.shares...)); got != again {
			t.Errorf("%s, then %s", got, again)
		}
		if cells := strings.Count(got, "|"); cells != strings.Count(strings.Split(heading, "\n")[0], "|") {
			t.Errorf("%d separators in %s", cells, got)
		}
	}
}

func TestPairsAlternate(t *testing.T) {
	var order []bool
	w := workload{"x", "x", func(_ context.Context, profiled bool) (run, error) {
		order = append(order, profiled)
		return run{Seconds: 1}, nil
	}}
	if list, err := w.pairs(t.Context(), 2); err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if order[0] || !order[1] || !order[2] || order[3] {
		t.Errorf("profiled were %v, not in turn", order)
	}
}

func TestACommandBothWays(t *testing.T) {
	two := func() (*exec.Cmd, error) {
		return exec.Command("/bin/sh", "-c", `for e in 1 2; do /bin/true; echo "{\"epoch\": $e}"; done; sleep 0.05`), nil
	}
	if err := measure(t.Context(), []workload{ofCommand("shell", "two epochs", 2, two)}, []string{"shell"}, 5); err != nil {
		t.Error(err)
	}
	if err := measure(t.Context(), []workload{ofCommand("shell", "two epochs", 3, two)}, []string{"shell"}, 5); err == nil || !strings.Contains(err.Error(), "2 epochs") {
		t.Errorf("a lost epoch: %v", err)
	}
}

func TestWhatCannotBeMeasured(t *testing.T) {
	if err := measure(t.Context(), direct("python3"), []string{"typo"}, 5); err == nil {
		t.Error("a workload that does not exist")
	}
	if err := measure(t.Context(), direct("python3"), []string{"digits"}, 2); err == nil {
		t.Error("two pairs")
	}
	missing := training{python: "/does/not/exist", epochs: 4}
	if _, err := missing.run(t.Context(), true); !errors.Is(err, errSkip) {
		t.Errorf("without PyTorch: %v", err)
	}
}
