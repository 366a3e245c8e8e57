package study_test

import (
	"slices"
	"strings"
	"testing"
)

// TestAdviceOfAStudy: the best is at x = 0.7, and trials fail where broken is above a bound.
func TestAdviceOfAStudy(t *testing.T) {
	for name, c := range map[string]struct {
		high  string
		bound float64
		named []string
	}{
		"the best lies beyond the range": {"0.5", 1, []string{"range x"}},
		"trials fail":                    {"1", 0.6, []string{"failures broken"}},
		"the best is among them":         {"1", 0.6, []string{"failures broken"}},
		"neither":                        {"1", 1, nil},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			created := w.create("space: {x: {type: float, low: 0, high: 1}}",
				"space: {x: {type: float, low: 0, high: "+c.high+"}, broken: {type: float, low: 0, high: 1}}", "trials: 27}", "trials: 60}\nretry: {failures: 0}")
			w.register("worker-1")
			among := name == "the best is among them"
			if early, err := w.service.Advice(w.ctx, created.Name); err != nil || len(early.Pieces) != 0 {
				t.Errorf("before any trial: %+v, %v", early, err)
			}
			for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
				if broken, _ := lease.Params["broken"].Number(); broken > c.bound && !(among && broken < 0.62) {
					w.fails(lease, "out of memory")
				} else {
					w.train(lease)
				}
			}
			answer, err := w.service.Advice(w.ctx, created.Name)
			if err != nil {
				t.Fatal(err)
			}
			var named []string
			for _, one := range answer.Pieces {
				named = append(named, one.Kind+" "+one.Parameter)
				if one.Found == "" || one.Do == "" || one.Evidence == "" || one.Chance >= 0.05 || one.Hits > one.Inside || one.Kind == "range" && (one.Rung == nil || !strings.Contains(one.Do, "above 0.5")) {
					t.Errorf("%+v", one)
				}
			}
			if !slices.Equal(named, c.named) {
				t.Errorf("it names %v, want %v: %+v", named, c.named, answer)
			}
		}))
	}
}

// TestAdviceNamesWhatDoesNotMatter: x has its best at 0.7, idle does nothing. It is said of
// the full budget, when the study has ended.
func TestAdviceNamesWhatDoesNotMatter(t *testing.T) {
	for name, c := range map[string]struct {
		epochs string
		named  []string
	}{
		"one budget":                      {"min: 1, max: 1", []string{"idle"}},
		"few trials have the full budget": {"min: 1, max: 9", nil},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			created := w.create("trials: 27", "trials: 60", "method: bohb", "method: random", "policy: multi", "policy: epochs", "min: 1, max: 9", c.epochs,
				"space: {x: {type: float, low: 0, high: 1}}", "space: {x: {type: float, low: 0, high: 1}, idle: {type: float, low: 0, high: 1}}")
			w.register("worker-1")
			named := func() (list []string) {
				answer, err := w.service.Advice(w.ctx, created.Name)
				if err != nil {
					t.Fatal(err)
				}
				for _, one := range answer.Pieces {
					if one.Kind == "idle" {
						list = append(list, one.Parameter)
						if one.Rung == nil || one.Drawn < 40 || one.Chance >= 0.05 || !strings.Contains(one.Do, "Fix it at 0.") {
							t.Errorf("%+v", one)
						}
					}
				}
				return list
			}
			trained := 0
			for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
				if trained++; trained == 60 {
					if early := named(); early != nil {
						t.Errorf("while the study runs, %v are named", early)
					}
				}
				w.train(lease)
			}
			if got := named(); !slices.Equal(got, c.named) {
				t.Errorf("%v are named, want %v", got, c.named)
			}
		}))
	}
}
