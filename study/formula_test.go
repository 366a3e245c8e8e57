package study_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

const oneMetric = "[{metric: accuracy, direction: maximize}]"

// reportAll sends an epoch of two seconds with the metrics.
func (w *world) reportAll(lease *protocol.Lease, epoch int, metrics map[string]trial.Float, energy *trial.Energy) error {
	_, err := w.service.Report(w.ctx, lease.Trial, protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Seconds: 2, Metrics: metrics, Energy: energy})
	return err
}

// firstResult trains one trial to its budget and returns its result.
func (w *world) firstResult(metrics map[string]trial.Float, energy *trial.Energy) trial.Result {
	w.t.Helper()
	lease := w.mustLease("worker-1")
	for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
		if err := w.reportAll(lease, epoch, metrics, energy); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
		w.t.Fatal(err)
	}
	results := w.trial(lease.Trial).Results
	return results[len(results)-1]
}

func TestFormulasAreComputedWithTheReportThatEndsTheBudget(t *testing.T) {
	estimate := &trial.Energy{Joules: 5, Method: "estimate: test"}
	metered := &trial.Energy{Joules: 5, Method: "rapl"}
	for _, c := range []struct {
		name, objective string
		metrics         map[string]trial.Float
		energy          *trial.Energy
		want            trial.Float
		needs           []string
		estimated       bool
	}{
		{"the server's seconds and a dotted metric", "{expression: train_seconds * edge.latency_ms / accuracy, name: ratio, direction: minimize}",
			map[string]trial.Float{"accuracy": 0.5, "edge.latency_ms": 10}, nil, 3 * 2 * 10 / 0.5, []string{"accuracy", "edge.latency_ms"}, false},
		{"the thesis's ratio of runtimes", "{expression: train_seconds * inference_seconds / accuracy, name: runtime_ratio, direction: minimize}",
			map[string]trial.Float{"accuracy": 0.5, "inference_seconds": 0.25}, nil, 3 * 2 * 0.25 / 0.5, []string{"accuracy", "inference_seconds"}, false},
		{"the thesis's ratio of energies", "{expression: train_joules * inference_joules / top1, name: energy_ratio, direction: minimize}",
			map[string]trial.Float{"top1": 0.5, "inference_joules": 3}, metered, 3 * 5 * 3 / 0.5, []string{"inference_joules", "top1"}, false},
		{"joules that are an estimate", "{expression: train_joules * inference_joules / accuracy, name: energy_ratio, direction: minimize}",
			map[string]trial.Float{"accuracy": 0.5, "inference_joules": 3}, estimate, 3 * 5 * 3 / 0.5, []string{"accuracy", "inference_joules"}, true},
		{"joules that the script measured go before the server's", "{expression: train_joules / accuracy, name: ratio, direction: minimize}",
			map[string]trial.Float{"accuracy": 0.5, "train_joules": 7}, estimate, 14, []string{"accuracy"}, false},
		{"the budget", "{expression: epochs + data_fraction + 0 * accuracy, name: spent, direction: minimize}",
			map[string]trial.Float{"accuracy": 0.5}, nil, 3.5, []string{"accuracy"}, false},
		{"what the server knows is an objective by itself", "{metric: train_seconds, direction: minimize}",
			map[string]trial.Float{"accuracy": 0.5}, nil, 6, []string{}, false},
	} {
		t.Run(c.name, in(func(t *testing.T, w *world) {
			created := w.create(oneMetric, c.objective, "min: 1, max: 9", "min: 3, max: 9", "min: 0.25, max: 1", "min: 0.5, max: 1")
			w.register("worker-1")
			lease := w.mustLease("worker-1")
			if !reflect.DeepEqual(lease.Objectives, c.needs) {
				t.Errorf("the worker is told to report %v, want %v", lease.Objectives, c.needs)
			}
			if _, err := w.finish(lease, protocol.Interrupted); err != nil {
				t.Fatal(err)
			}
			result := w.firstResult(c.metrics, c.energy)
			if len(result.Values) != 1 || result.Values[0] != c.want || result.Estimated != c.estimated {
				t.Errorf("the result is %+v, want %v", result, c.want)
			}
			w.start() // a server that did not see the reports shows the same
			best := w.view(created.ID).Progress.Best
			if best == nil || best.Value != c.want || best.Metric != created.Definition.Objectives[0].Label() || best.Estimated != c.estimated {
				t.Errorf("the best is %+v", best)
			}
			answer, err := w.service.Recommendation(w.ctx, created.ID)
			if err != nil || strings.Contains(strings.Join(answer.Notes, "\n"), " is an estimate: ") != c.estimated {
				t.Errorf("the notes are %q, %v", answer.Notes, err)
			}
		}))
	}
}

func TestAReportThatLacksWhatAFormulaNeedsIsRefused(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(oneMetric, "{expression: train_joules * inference_joules / accuracy, name: energy_ratio, direction: minimize}")
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		err := w.reportAll(lease, 1, map[string]trial.Float{"accuracy": 0.5, "inference_seconds": 1}, nil)
		var told *problem.Error
		if !errors.As(err, &told) || told.Code != problem.Invalid || len(told.Fields) != 2 {
			t.Fatalf("%v", err)
		}
		for i, want := range []problem.Field{{Path: "metrics.inference_joules", Message: "reported: accuracy, inference_seconds"}, {Path: "metrics.train_joules", Message: "any energy"}} {
			if got := told.Fields[i]; got.Path != want.Path || !strings.Contains(got.Message, want.Message) || !strings.Contains(got.Message, "energy_ratio") {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		if stored := w.trial(lease.Trial); stored.Epochs != 0 {
			t.Errorf("the report was counted: %+v", stored)
		}
	})(t)
}

// TestADivisionByZeroNeverWins: neither direction prefers what is no number.
func TestADivisionByZeroNeverWins(t *testing.T) {
	for _, direction := range []string{"maximize", "minimize"} {
		t.Run(direction, in(func(t *testing.T, w *world) {
			created := w.create(oneMetric, "{expression: accuracy / latency, name: ratio, direction: "+direction+"}", "eta: 3", "eta: 3", "policy: multi, epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "epochs: 1")
			w.register("worker-1")
			for _, latency := range []trial.Float{0, 2} {
				if result := w.firstResult(map[string]trial.Float{"accuracy": -1, "latency": latency}, nil); result.Values[0].IsNaN() != (latency == 0) {
					t.Errorf("latency %v gives %v", latency, result.Values)
				}
			}
			if best := w.view(created.ID).Progress.Best; best == nil || best.Number != 1 {
				t.Errorf("the best is %+v", best)
			}
		}))
	}
}
