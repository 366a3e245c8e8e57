package study_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

func (w *world) columns(ref string, query protocol.ColumnsQuery) protocol.Columns {
	w.t.Helper()
	answer, err := w.service.Columns(w.ctx, ref, query)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

// conditional gives the default study a category and a parameter that exists
// with one of its values only.
var conditional = []string{
	"space: {x: {type: float, low: 0, high: 1}}",
	"space: {x: {type: float, low: 0, high: 1}, kind: {values: [a, b]}, depth: {type: int, low: 1, high: 9, when: {kind: b}}}",
	"method: bohb", "method: random",
}

func TestColumnsHaveWhatWasMeasuredAtARung(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create(conditional...)
		early := w.columns(created.Name, protocol.ColumnsQuery{})
		if early.Rung != 0 || len(early.Numbers) != 0 || !slices.Equal(early.Measured, []int{0, 0, 0}) || len(early.Parameters) != 3 || early.Distribution.Values == nil {
			t.Errorf("before any trial: %+v", early)
		}
		w.trainAll()
		for rung := range 3 {
			answer := w.columns(created.Name, protocol.ColumnsQuery{Rung: &rung})
			page, err := w.service.Trials(w.ctx, created.Name, protocol.TrialQuery{Sort: "number", Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			at := 0
			var values []float64
			for _, one := range page.Trials {
				i := slices.IndexFunc(one.Results, func(r trial.Result) bool { return r.Rung == rung })
				if i < 0 {
					continue
				}
				value := one.Results[i].Values[0]
				values = append(values, float64(value))
				if answer.Numbers[at] != one.Number || answer.Values[0][at] != value {
					t.Errorf("rung %d, row %d: trial %d with %v, want trial %d with %v", rung, at, answer.Numbers[at], answer.Values[0][at], one.Number, value)
				}
				x, _ := one.Configuration["x"].Number()
				kind := map[string]trial.Float{"a": 0, "b": 1}[one.Configuration["kind"].String()]
				depth, deep := one.Configuration["depth"].Number()
				got := []trial.Float{answer.Parameters[0].Values[at], answer.Parameters[1].Values[at], answer.Parameters[2].Values[at]}
				if got[0] != trial.Float(x) || got[1] != kind || deep != !got[2].IsNaN() || deep && got[2] != trial.Float(depth) {
					t.Errorf("trial %d with %v stands as %v", one.Number, one.Configuration, got)
				}
				at++
			}
			if at != len(answer.Numbers) || answer.Measured[rung] != at || answer.Sample != nil || answer.Violations != nil {
				t.Errorf("rung %d: %d of %d trials, %+v", rung, at, len(answer.Numbers), answer)
			}
			for i, value := range values {
				better := 0
				for _, other := range values {
					if other > value {
						better++
					}
				}
				if answer.Ranks[i] != better+1 { // the values are all different
					t.Errorf("rung %d: %v has rank %d, and %d are better", rung, value, answer.Ranks[i], better)
				}
			}
		}
	})(t)
}

func TestColumnsOfManyTrialsAreASample(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("method: bohb", "method: random", "trials: 27", "trials: 60")
		w.trainAll()
		rung := 0
		all := w.columns(created.Name, protocol.ColumnsQuery{Rung: &rung})
		part := w.columns(created.Name, protocol.ColumnsQuery{Rung: &rung, Limit: 20})
		if part.Sample == nil || *part.Sample != (protocol.Sample{Of: 60, Best: 10, Every: 5}) || len(part.Numbers) != 20 || !slices.IsSorted(part.Numbers) {
			t.Fatalf("%+v: %v", part.Sample, part.Numbers)
		}
		var best []int
		for i, rank := range all.Ranks {
			if rank <= 10 {
				best = append(best, all.Numbers[i])
			}
		}
		others := 0
		for i, number := range part.Numbers {
			if part.Ranks[i] > 10 {
				others++
			}
			if j := slices.Index(all.Numbers, number); all.Ranks[j] != part.Ranks[i] || all.Values[0][j] != part.Values[0][i] {
				t.Errorf("trial %d is another in the sample", number)
			}
		}
		for _, number := range best {
			if !slices.Contains(part.Numbers, number) {
				t.Errorf("trial %d is among the best 10 and not in the sample", number)
			}
		}
		if others != 10 {
			t.Errorf("%d others", others)
		}
		if d := part.Distribution; d.Trials != 60 || len(d.Values) != 60 || d.Shares[59] != 1 || !slices.IsSorted(d.Values) || math.Abs(d.Shares[0]-1.0/60) > 1e-12 {
			t.Errorf("the distribution of a sample must be that of all: %+v", d)
		}
		one := w.columns(created.Name, protocol.ColumnsQuery{Rung: &rung, Limit: 1})
		if len(one.Numbers) != 1 || one.Ranks[0] != 1 {
			t.Errorf("one trial must be the best: %v with rank %v", one.Numbers, one.Ranks)
		}
		unasked := w.columns(created.Name, protocol.ColumnsQuery{})
		for rung, measured := range unasked.Measured {
			if rung <= unasked.Rung && measured < 5 || rung > unasked.Rung && measured >= 5 {
				t.Errorf("rung %d is shown unasked, and %v trials were measured", unasked.Rung, unasked.Measured)
			}
		}
	})(t)
}

func TestWhatDivergedOrBreaksAConstraintRanksLast(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create(twoMetrics...)
		w.register("worker-1")
		w.measured(0.99, 1, 20)                   // 0: infeasible
		w.measured(trial.Float(math.NaN()), 2, 1) // 1: diverged, which no constraint forgives
		w.measured(0.5, 3, 1)                     // 2
		w.measured(0.8, 9, 1)                     // 3
		for objective, want := range []string{"[3 4 2 1]", "[3 4 1 2]"} {
			answer := w.columns(created.Name, protocol.ColumnsQuery{Objective: objective})
			if got := fmt.Sprint(answer.Ranks); got != want || len(answer.Violations) != 4 || answer.Violations[0] != 1 || len(answer.Values) != 2 {
				t.Errorf("objective %d: ranks %s, want %s; violations %v", objective, got, want, answer.Violations)
			}
		}
		if d := w.columns(created.Name, protocol.ColumnsQuery{}).Distribution; d.Trials != 3 || len(d.Values) != 3 {
			t.Errorf("what is no number has no place in a distribution: %+v", d)
		}
		for _, query := range []protocol.ColumnsQuery{{Objective: 2}, {Rung: new(int), Objective: -1}} {
			if _, err := w.service.Columns(w.ctx, created.Name, query); !problem.Is(err, problem.Invalid) {
				t.Errorf("%+v: %v", query, err)
			}
		}
	})(t)
}

func TestCurvesAreWhatWasReported(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("method: bohb", "method: random")
		empty, err := w.service.Curves(w.ctx, created.Name, protocol.CurvesQuery{})
		if err != nil || empty.Metric != "accuracy" || len(empty.Curves) != 0 {
			t.Errorf("before any trial: %+v, %v", empty, err)
		}
		w.trainAll()
		answer, err := w.service.Curves(w.ctx, created.Name, protocol.CurvesQuery{})
		if err != nil || len(answer.Curves) != 27 || answer.Sample != nil || !slices.Equal(answer.Metrics, []string{"accuracy"}) {
			t.Fatalf("%d curves of %v, %+v: %v", len(answer.Curves), answer.Metrics, answer.Sample, err)
		}
		for _, curve := range answer.Curves {
			reports, err := w.store.Reports(w.ctx, trial.ID(fmt.Sprintf("%s-%d", created.ID, curve.Number)))
			if err != nil || len(reports) != len(curve.Epochs) {
				t.Fatalf("trial %d: %d reports, %d epochs: %v", curve.Number, len(reports), len(curve.Epochs), err)
			}
			for i, report := range reports {
				if curve.Epochs[i] != report.Epoch || curve.Rungs[i] != report.Rung || curve.Values[i] != report.Metrics["accuracy"] {
					t.Errorf("trial %d, point %d: %d, %d, %v; reported was %+v", curve.Number, i, curve.Epochs[i], curve.Rungs[i], curve.Values[i], report)
				}
			}
		}
		few, err := w.service.Curves(w.ctx, created.Name, protocol.CurvesQuery{Limit: 4})
		if err != nil || len(few.Curves) != 4 || few.Sample == nil || few.Sample.Best != 2 || !slices.ContainsFunc(few.Curves, func(c protocol.Curve) bool { return c.Rank == 1 }) {
			t.Errorf("%+v: %v", few, err)
		}
		if _, err := w.service.Curves(w.ctx, created.Name, protocol.CurvesQuery{Metric: "los"}); !problem.Is(err, problem.Invalid) {
			t.Errorf("a metric that nobody reported: %v", err)
		}
	})(t)
}

func TestLongCurvesAreThinned(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("policy: multi", "policy: epochs", "min: 1, max: 9", "min: 700, max: 700", "trials: 27", "trials: 1")
		w.trainAll()
		answer, err := w.service.Curves(w.ctx, created.Name, protocol.CurvesQuery{Metric: "accuracy"})
		if err != nil || len(answer.Curves) != 1 {
			t.Fatalf("%+v: %v", answer, err)
		}
		epochs := answer.Curves[0].Epochs
		if len(epochs) > 301 || epochs[0] != 1 || epochs[1] != 4 || epochs[len(epochs)-1] != 700 {
			t.Errorf("%d epochs: %v", len(epochs), epochs)
		}
	})(t)
}
