package study_test

import (
	"slices"
	"strings"
	"testing"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// inPrecision tells of the trial's model in a precision, and what it takes if seconds are given.
func inPrecision(t *testing.T, w *world, lease *protocol.Lease, channels int64, said trial.Precision, seconds float64) protocol.ArchitectureReply {
	t.Helper()
	report := architecture(t, lease, channels)
	report.Precision = &said
	told, err := w.service.Architecture(w.ctx, lease.Trial, report)
	if err != nil {
		t.Fatal(err)
	}
	if seconds > 0 {
		sent := protocol.InferenceReport{LeaseEpoch: lease.LeaseEpoch, Key: report.Key, Runs: []emu.Run{
			{Batch: 1, Threads: 1, Seconds: seconds, Low: 0.99 * seconds, High: 1.01 * seconds, P90: seconds, P99: seconds, Repetitions: 50, Joules: seconds, EnergyMethod: "meter"},
		}}
		if _, err := w.service.Inferences(w.ctx, lease.Trial, sent); err != nil {
			t.Fatal(err)
		}
	}
	return told
}

// What is deployed is in the precision that was measured to be better and is worth enough;
// objectives stay about the model as it was trained.
func TestTheBestPrecisionIsDeployed(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("name: example", "name: edge\ninference: {devices: [this-machine], cores: 1, precision: [int8, int8-dynamic, fp16]}",
			"{metric: accuracy, direction: maximize}", "{expression: edge.latency_ms / accuracy, name: cost, direction: minimize}",
			"budget: {policy: multi, epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}, eta: 3}", "budget: {epochs: 9}")
		b := w.box(false)
		reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: b.id, Study: "edge"})
		if err != nil {
			t.Fatal(err)
		}
		lease := reply.Lease
		if got := strings.Join(lease.Precisions, " "); got != "fp32 int8 int8-dynamic fp16" {
			t.Errorf("the precisions %q are wanted", got)
		}
		if _, err := w.service.Architecture(w.ctx, lease.Trial, architecture(t, lease, 8)); err != nil {
			t.Fatal(err)
		}
		before := *trialsOf(t, w, "edge")[0].Inference
		if told := inPrecision(t, w, lease, 8, trial.Precision{Name: trial.FP32, Value: 0.9, Samples: 500}, 2e-3); len(told.Run) == 0 {
			t.Errorf("nothing is to be measured: %+v", told)
		}
		measured := *trialsOf(t, w, "edge")[0].Inference
		if measured.Method != trial.Measured || measured.LatencySeconds != 2e-3 || before.Architecture != measured.Architecture {
			t.Errorf("it was %+v, and is %+v", before, measured)
		}
		inPrecision(t, w, lease, 4, trial.Precision{Name: trial.Int8, Value: 0.895, Samples: 500}, 1e-3)
		inPrecision(t, w, lease, 2, trial.Precision{Name: trial.Int8Dynamic, Value: 0.5, Samples: 500}, 0.1e-3)
		inPrecision(t, w, lease, 1, trial.Precision{Name: trial.FP16, Value: 0.9, Samples: 500}, 0)
		for range 2 { // and after a restart
			one := trialsOf(t, w, "edge")[0]
			var names []string
			for _, each := range one.Precisions {
				names = append(names, each.Name)
			}
			if got := strings.Join(names, " "); got != "fp32 fp16 int8 int8-dynamic" || !one.Inference.Same(measured) {
				t.Errorf("the trial has %s, and %+v", got, one.Inference)
			}
			found, err := w.service.Deployments(w.ctx, "edge", 0)
			if err != nil {
				t.Fatal(err)
			}
			d := found.Devices[0]
			if d.Configuration.Precision != trial.Int8 || d.LatencySeconds.Value != 1e-3 || d.Architecture != "architecture-4" || len(d.Precisions) != 4 {
				t.Errorf("it is deployed as %+v", d)
			}
			for i, why := range []string{"int8 is better", "estimates do not rank", "2 times as good", "loses 44.4%"} {
				if got := d.Precisions[i]; !strings.Contains(got.Why, why) || got.Chosen != (i == 2) {
					t.Errorf("%+v, want %q", got, why)
				}
			}
			w.start()
		}
		wrong := architecture(t, lease, 16)
		wrong.Precision = &trial.Precision{Name: "int4", Value: 1}
		if _, err := w.service.Architecture(w.ctx, lease.Trial, wrong); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "precision.name") {
			t.Errorf("in an unknown precision: %v", err)
		}
		if overview, err := w.service.EdgeOverview(w.ctx, "edge"); err != nil || slices.ContainsFunc(overview.Trials, func(one protocol.EdgeTrial) bool { return one.Deployments[0].Configuration.Precision != trial.Int8 }) {
			t.Errorf("%+v, %v", overview, err)
		}
	})(t)
}

// A study that wants precisions, and whose script could make none, says so where it says what is best.
func TestPrecisionsThatAreMissingAreSaid(t *testing.T) {
	for _, made := range []bool{false, true} {
		in(func(t *testing.T, w *world) {
			w.create("name: example", "name: edge\ninference: {devices: [this-machine], precision: [int8]}",
				"budget: {policy: multi, epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}, eta: 3}", "budget: {epochs: 1}")
			b := w.box(false)
			lease := w.leaseOf(t, "edge")
			if _, err := w.service.Architecture(w.ctx, lease.Trial, architecture(t, lease, 8)); err != nil {
				t.Fatal(b.id, err)
			}
			report := protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Seconds: 1, Metrics: map[string]trial.Float{"accuracy": 0.5}}
			if _, err := w.service.Report(w.ctx, lease.Trial, report); err != nil {
				t.Fatal(err)
			}
			if made {
				inPrecision(t, w, lease, 8, trial.Precision{Name: trial.FP32, Value: 0.9, Samples: 500}, 2e-3)
				inPrecision(t, w, lease, 4, trial.Precision{Name: trial.Int8, Value: 0.9, Samples: 500}, 1e-3)
			}
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
			found, err := w.service.Recommendation(w.ctx, "edge")
			if told := slices.Contains(found.Notes, "the precisions fp32, int8 were not compared: the log of trial 0 says why"); err != nil || told == made {
				t.Errorf("%v, made %t: the notes of the study, which is %s, are %q", err, made, found.Status, found.Notes)
			}
		})(t)
	}
}
