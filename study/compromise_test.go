package study_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// compromise is the trial that the study recommends, which must be the first
// wherever trials are shown by their worth, and the sentence that says why.
func (w *world) compromise(ref string) (int, string) {
	w.t.Helper()
	answer, err := w.service.Recommendation(w.ctx, ref)
	if err != nil {
		w.t.Fatal(err)
	}
	front, err := w.service.Pareto(w.ctx, ref)
	if err != nil {
		w.t.Fatal(err)
	}
	page, err := w.service.Trials(w.ctx, ref, protocol.TrialQuery{})
	if err != nil {
		w.t.Fatal(err)
	}
	detail, err := w.service.TrialDetail(w.ctx, ref, answer.Best.Number)
	if err != nil {
		w.t.Fatal(err)
	}
	best := answer.Best.Number
	firsts := []int{answer.Pareto.Trials[0].Number, front.Trials[0].Number, page.Trials[0].Number, w.view(ref).Progress.Best.Number}
	if slices.ContainsFunc(firsts, func(one int) bool { return one != best }) || detail.Trial.Rank != 1 {
		w.t.Errorf("trial %d is recommended, and others are first: %v, and its rank is %d", best, firsts, detail.Trial.Rank)
	}
	if front.Why == "" || front.Why != answer.Pareto.Why || !slices.Contains(answer.Notes, front.Why) || !strings.HasPrefix(front.Why, fmt.Sprintf("trial %d is chosen: ", best)) {
		w.t.Errorf("why trial %d: %q and %q, notes %q", best, front.Why, answer.Pareto.Why, answer.Notes)
	}
	return best, front.Why
}

// No trial that is far from all others changes which one is recommended.
func TestOneOutlierDoesNotMoveTheCompromise(t *testing.T) {
	for name, trials := range map[string][][2]trial.Float{
		"a knee": {{0.70, 10}, {0.78, 12}, {0.83, 15}, {0.84, 22}, {0.85, 30}, {0.855, 38}, {0.86, 45}, {0.80, 30}, {0.75, 25}},
		"evenly": {{0.50, 10}, {0.55, 15}, {0.60, 20}, {0.65, 25}, {0.70, 30}, {0.75, 35}, {0.80, 40}, {0.85, 45}, {0.90, 50}},
		"a few":  {{0.90, 50}, {0.50, 10}, {0.85, 15}, {0.80, 20}, {0.88, 30}},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			want, why := -1, ""
			for round, outlier := range [][2]trial.Float{
				{-1, -1}, // none
				{0.001, 0.01}, {0, 9.9}, {0.1, 9}, {0.91, 10_000}, {0.95, 1e9}, {0.01, 1e9}, {0.4, 200}, {0, 1e-9}, {0.1, 60},
			} {
				created := w.create(append([]string{"name: example", fmt.Sprintf("name: example-%d", round), "trials: 27", "trials: 100"}, twoMetrics...)...)
				w.register("worker-1")
				if outlier[0] >= 0 {
					w.measured(outlier[0], outlier[1], 1)
				}
				for _, one := range trials {
					w.measured(one[0], one[1], 1)
				}
				got, said := w.compromise(created.ID)
				if outlier[0] >= 0 {
					got-- // it came first
				}
				if want < 0 {
					want, why = got, said
				}
				if got != want {
					t.Errorf("with %v: %v is recommended, without it %v\n%s\n%s", outlier, trials[max(got, 0)], trials[want], said, why)
				}
				if _, err := w.service.Stop(w.ctx, created.ID); err != nil {
					t.Fatal(err)
				}
			}
			if knee := map[string]int{"a knee": 2, "evenly": 4, "a few": 2}[name]; want != knee {
				t.Errorf("%v is recommended, want %v", trials[want], trials[knee])
			}
		}))
	}
}

// A latency that is known within a factor of ten only does not cost any accuracy.
func TestDifferencesWithinABandAreTies(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("name: example", "name: edge\ninference: {devices: [this-machine], batch_size: {low: 1, high: 1}}",
			oneMetric, "[{metric: accuracy, direction: maximize}, {expression: edge.latency_ms, name: latency, direction: minimize}]",
			"epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "epochs: 1, data_fraction: 1", "method: bohb", "method: random")
		b := w.box(true)
		for i, one := range []struct {
			accuracy                  trial.Float
			latency, fastest, slowest float64 // in milliseconds
		}{
			{0.756, 0.143, 0.015, 1.37}, {0.822, 0.184, 0.016, 1.4}, {0.5, 0.1, 0.0999, 0.1001}, {0.83, 9, 8.9, 9.1}, {0.8, 0.5, 0.49, 0.51},
			{0.82, 0.2, 0.1, 0.4}, {0.7, 0.14, 0.0139, 1.38}, {0.6, 0.12, 0.119, 0.121},
		} {
			b.id = fmt.Sprintf("box-%d", i)
			b.register()
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: b.id, Study: "edge"})
			if err != nil || reply.Lease == nil {
				t.Fatalf("%+v, %v", reply, err)
			}
			told := architecture(t, reply.Lease, int64(8*(1+i)))
			if _, err := w.service.Architecture(w.ctx, reply.Lease.Trial, told); err != nil {
				t.Fatal(err)
			}
			report := protocol.InferenceReport{LeaseEpoch: reply.Lease.LeaseEpoch, Key: told.Key}
			for threads := 1; threads <= 2; threads++ {
				report.Runs = append(report.Runs, emu.Run{Batch: 1, Threads: threads, Seconds: one.latency / 1e3, Low: one.fastest / 1e3, High: one.slowest / 1e3,
					P90: one.slowest / 1e3, P99: one.slowest / 1e3, Repetitions: 9, Joules: 3, EnergyMethod: "meter"})
			}
			if _, err := w.service.Inferences(w.ctx, reply.Lease.Trial, report); err != nil {
				t.Fatal(err)
			}
			if err := w.reportAll(reply.Lease, 1, map[string]trial.Float{"accuracy": one.accuracy}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := w.finish(reply.Lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
		}
		if got, why := w.compromise("edge"); got != 1 || !strings.Contains(why, "their difference in latency lies within the band of an estimate, and trial 1 is better in accuracy") {
			t.Errorf("trial %d: %s", got, why)
		}
	})(t)
}
