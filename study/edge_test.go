package study_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/graph/graphtest"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// architecture is what a script with so many channels trains.
func architecture(t testing.TB, lease *protocol.Lease, channels int64) protocol.ArchitectureReport {
	t.Helper()
	b := graphtest.NewBuilder("network")
	x := b.Input("x", graph.Float32, 1, 1, 28, 28)
	x = b.Relu(b.Convolution(x, graphtest.Filter{Window: graph.Window{Kernel: []int64{5, 5}}, Out: channels}))
	b.Output(b.Linear(b.Flatten(x), 10))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return protocol.ArchitectureReport{
		LeaseEpoch: lease.LeaseEpoch, Key: fmt.Sprintf("architecture-%d", channels), Graph: emu.Anonymous(g), ActivationBytes: 1 << 20, StoredBytes: 1 << 16,
		Site: &emu.Site{Processor: "model", Cores: 2, LowestHertz: 2e9, HighestHertz: 2e9, MemoryBytes: 4 << 30, MemoryBytesPerSecond: 1e10, Features: []string{"avx2", "fma"}},
	}
}

// edgeStudy has an objective that is about inference.
func edgeStudy(w *world, devices string) {
	w.create("name: example", "name: edge\ninference: {devices: "+devices+", batch_size: {low: 1, high: 8}}",
		"{metric: accuracy, direction: maximize}", "{expression: edge.latency_ms / accuracy, name: cost, direction: minimize}")
}

func TestInferenceEntersTheObjective(t *testing.T) {
	in(func(t *testing.T, w *world) {
		edgeStudy(w, "[raspberry-pi-4, jetson-nano]")
		b := w.box(false)
		reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: b.id, Study: "edge"})
		if err != nil {
			t.Fatal(err)
		}
		lease := reply.Lease
		report := protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Seconds: 1, Metrics: map[string]trial.Float{"accuracy": 0.5}}
		if _, err := w.service.Report(w.ctx, lease.Trial, report); err == nil || !strings.Contains(err.Error(), "edge.latency_ms") || !strings.Contains(err.Error(), "where it did, the trial's log says why") {
			t.Fatalf("a report before the model was saved: %v", err)
		}
		told, err := w.service.Architecture(w.ctx, lease.Trial, architecture(t, lease, 8))
		if err != nil || told.Known || len(told.Run) != 0 || len(told.Deployments) != 2 || told.Deployments[0].Device != "raspberry-pi-4" {
			t.Fatalf("%+v, %v", told, err)
		}
		if _, err := w.service.Report(w.ctx, lease.Trial, report); err != nil {
			t.Fatal(err)
		}
		if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
			t.Fatal(err)
		}
		one := trialsOf(t, w, "edge")[0]
		want := 1e3 * told.Deployments[0].LatencySeconds.Value / 0.5
		if got := float64(one.Results[0].Values[0]); got != want || !one.Results[0].Estimated {
			t.Errorf("the value is %v (estimated %v), want %v", got, one.Results[0].Estimated, want)
		}
		answer, err := w.service.Recommendation(w.ctx, "edge")
		if err != nil || len(answer.Deployments) != 2 || answer.Deployments[1].Device != "jetson-nano" || !strings.HasPrefix(answer.Deployments[1].Method, "estimate: ") {
			t.Errorf("%+v, %v", answer.Deployments, err)
		}
		front, err := w.service.Pareto(w.ctx, "edge")
		if want := "cost is an estimate: joules or inferences that were not measured went into it"; err != nil || !slices.Contains(front.Notes, want) {
			t.Errorf("%q, %v", front.Notes, err)
		}
	})(t)
}

// One worker runs inferences of an architecture, once; all trials of it know.
func TestAnArchitectureIsRunOnce(t *testing.T) {
	in(func(t *testing.T, w *world) {
		edgeStudy(w, "[this-machine]")
		b := w.box(true)
		var leases []*protocol.Lease
		runs := 0
		for trials := range 4 {
			b.id = fmt.Sprintf("box-%d", trials)
			b.register()
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: b.id, Study: "edge"})
			if err != nil || reply.Lease == nil {
				t.Fatalf("%+v, %v", reply, err)
			}
			leases = append(leases, reply.Lease)
			told, err := w.service.Architecture(w.ctx, reply.Lease.Trial, architecture(t, reply.Lease, int64(8*(1+trials/2))))
			if err != nil || told.Known != (trials%2 == 1) {
				t.Fatalf("%+v, %v", told, err)
			}
			if len(told.Run) > 0 {
				runs++
			}
			if !strings.HasPrefix(told.Deployments[0].Method, "estimate") {
				t.Errorf("before anything ran: %+v", told.Deployments[0])
			}
		}
		if runs != 2 {
			t.Errorf("%d workers were to run inferences of 2 architectures", runs)
		}
		report := protocol.InferenceReport{LeaseEpoch: leases[0].LeaseEpoch, Key: "architecture-8"}
		for threads := 1; threads <= 2; threads++ {
			for _, batch := range []int{1, 2, 4, 8} {
				seconds := 0.25 * float64(batch) / float64(threads)
				report.Runs = append(report.Runs, emu.Run{Batch: batch, Threads: threads, Seconds: seconds, Low: seconds, High: seconds, P90: seconds, P99: seconds, Repetitions: 9, Joules: 3, EnergyMethod: "meter"})
			}
		}
		if told, err := w.service.Inferences(w.ctx, leases[0].Trial, report); err != nil || told.Runs != len(report.Runs) {
			t.Fatalf("%+v, %v", told, err)
		}
		if told, err := w.service.Deployments(w.ctx, "edge", 0); err != nil || told.Devices[0].Method != "measured" || told.Devices[0].LatencySeconds.Value != 0.125 || told.Devices[0].Configuration.Cores != 2 || !told.Devices[0].MeasuredAt.Equal(time.Now()) {
			t.Fatalf("%+v, %v", told, err)
		}
		trials := trialsOf(t, w, "edge")
		for i, measured := range []bool{true, true, false, false} {
			if got := trials[i].Inference; got == nil || (got.Method == "measured") != measured {
				t.Errorf("trial %d: %+v", i, got)
			}
		}
		// The same architecture in a trial that comes later.
		again, err := w.service.Architecture(w.ctx, leases[3].Trial, architecture(t, leases[3], 8))
		if err != nil || !again.Known || len(again.Run) != 0 || again.Deployments[0].Method != "measured" {
			t.Errorf("%+v, %v", again, err)
		}
		w.start()
		if again, err := w.service.Deployments(w.ctx, "edge", 0); err != nil || again.Devices[0].LatencySeconds.Value != 0.125 {
			t.Errorf("after a restart: %+v, %v", again, err)
		}
	})(t)
}

// What a worker measured of its own machine is measured again by a trial that comes a day
// later, and the answer says what it took before; one that comes earlier measures nothing.
func TestThisMachineIsMeasuredAgain(t *testing.T) {
	in(func(t *testing.T, w *world) {
		edgeStudy(w, "[this-machine]")
		for day, factor := range []float64{1, 0, 2} { // 0: nothing is to be measured
			b := w.box(false)
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: b.id, Study: "edge"})
			if err != nil || reply.Lease == nil {
				t.Fatalf("%+v, %v", reply, err)
			}
			told, err := w.service.Architecture(w.ctx, reply.Lease.Trial, architecture(t, reply.Lease, 8))
			if err != nil || (len(told.Run) == 8) != (factor > 0) || (len(told.Run) == 0) != (factor == 0) {
				t.Fatalf("day %d: %+v, %v", day, told.Run, err)
			}
			report := protocol.InferenceReport{LeaseEpoch: reply.Lease.LeaseEpoch, Key: "architecture-8"}
			for _, cell := range told.Run {
				seconds := factor * 0.25 * float64(cell.Batch) / float64(cell.Threads)
				report.Runs = append(report.Runs, emu.Run{Batch: cell.Batch, Threads: cell.Threads, Seconds: seconds, Low: seconds, High: seconds, P90: seconds, P99: seconds, Repetitions: 9})
			}
			if _, err := w.service.Inferences(w.ctx, reply.Lease.Trial, report); err != nil && len(report.Runs) > 0 {
				t.Fatal(err)
			}
			time.Sleep(13 * time.Hour)
		}
		if got, err := w.service.Deployments(w.ctx, "edge", 2); err != nil || got.Devices[0].LatencySeconds.Value != 0.25 || got.Devices[0].Drift == nil || got.Devices[0].Drift.Seconds != 0.125 {
			t.Errorf("%+v, %v", got, err)
		}
	})(t)
}

// What a worker measures comes after the report that would have waited for it, and even
// after the trial went on elsewhere: the trials of its type of machine have it then, while
// the search keeps what it was told.
func TestMeasurementsComeBehindTheReport(t *testing.T) {
	in(func(t *testing.T, w *world) {
		edgeStudy(w, "[this-machine]")
		here, there := w.box(false), w.box(false)
		there.id, there.cores = "elsewhere", 4 // another type of machine
		there.register()
		var reports []protocol.InferenceReport
		for _, b := range []*box{here, there} {
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: b.id, Study: "edge"})
			if err != nil || reply.Lease == nil {
				t.Fatal(reply, err)
			}
			lease := reply.Lease
			if _, err := w.service.Architecture(w.ctx, lease.Trial, architecture(t, lease, 8)); err != nil {
				t.Fatal(err)
			}
			epoch := protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Seconds: 1, Metrics: map[string]trial.Float{"accuracy": 0.5}}
			if _, err := w.service.Report(w.ctx, lease.Trial, epoch); err != nil {
				t.Fatal(err)
			}
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
			sent := protocol.InferenceReport{LeaseEpoch: lease.LeaseEpoch, Worker: b.id, Key: "architecture-8"}
			for threads := 1; threads <= 2; threads++ {
				sent.Runs = append(sent.Runs, emu.Run{Batch: 1, Threads: threads, Seconds: 1e-6, Low: 1e-6, High: 1e-6, P90: 1e-6, P99: 1e-6, Repetitions: 9})
			}
			reports = append(reports, sent)
		}
		for i, one := range trialsOf(t, w, "edge") {
			if !one.Results[0].Estimated {
				t.Errorf("trial %d is measured before anything ran: %+v", i, one.Results[0])
			}
		}
		for i, sent := range slices.Concat(reports, reports[:1]) { // the answer was lost once
			id := trialsOf(t, w, "edge")[i%2].ID
			if _, err := w.service.Inferences(w.ctx, id, sent); err != nil {
				t.Fatal(err)
			}
			for j, one := range trialsOf(t, w, "edge") {
				if known := j <= i; one.Results[0].Estimated == known || known && one.Results[0].Values[0] != trial.Float(1e3*1e-6/0.5) {
					t.Errorf("after %d reports trial %d has %+v", i+1, j, one.Results[0])
				}
			}
		}
		w.reportsReplayed(w.view("edge").ID)
		stale := reports[0]
		stale.LeaseEpoch += 5
		if _, err := w.service.Inferences(w.ctx, trialsOf(t, w, "edge")[0].ID, stale); !problem.Is(err, problem.LeaseLost) {
			t.Errorf("under a lease that never was: %v", err)
		}
		stale.LeaseEpoch, stale.Worker = 1, "nobody"
		if _, err := w.service.Inferences(w.ctx, trialsOf(t, w, "edge")[0].ID, stale); !problem.Is(err, problem.Unavailable) {
			t.Errorf("by a worker that is not registered: %v", err)
		}
	})(t)
}

func TestArchitecturesFromElsewhereAreChecked(t *testing.T) {
	in(func(t *testing.T, w *world) {
		edgeStudy(w, "[raspberry-pi-4]")
		reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: w.box(false).id, Study: "edge"})
		if err != nil {
			t.Fatal(err)
		}
		lease := reply.Lease
		for name, spoil := range map[string]func(*protocol.ArchitectureReport){
			"no operators":       func(r *protocol.ArchitectureReport) { r.Graph.Operators = nil },
			"negative cost":      func(r *protocol.ArchitectureReport) { r.Graph.Operators[0].Operations = -1 },
			"unknown class":      func(r *protocol.ArchitectureReport) { r.Graph.Operators[0].Class = "magic" },
			"a key with a slash": func(r *protocol.ArchitectureReport) { r.Key = "../../etc/passwd" },
			"no cores":           func(r *protocol.ArchitectureReport) { r.Site.Cores = 0 },
		} {
			report := architecture(t, lease, 8)
			spoil(&report)
			if _, err := w.service.Architecture(w.ctx, lease.Trial, report); !problem.Is(err, problem.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		stale := architecture(t, lease, 8)
		stale.LeaseEpoch++
		if _, err := w.service.Architecture(w.ctx, lease.Trial, stale); !problem.Is(err, problem.LeaseLost) {
			t.Errorf("under another lease: %v", err)
		}
		if _, err := w.service.Inferences(w.ctx, lease.Trial, protocol.InferenceReport{LeaseEpoch: lease.LeaseEpoch, Key: "architecture-8"}); !problem.Is(err, problem.Invalid) {
			t.Errorf("runs of an unknown architecture: %v", err)
		}
		if list, err := w.store.Architectures(w.ctx, 10); err != nil || len(list) != 0 {
			t.Errorf("%d architectures were kept, %v", len(list), err)
		}
	})(t)
}

// What a board measured of one model makes the estimates of others better.
func TestEstimatesStandOnWhatABoardMeasured(t *testing.T) {
	in(func(t *testing.T, w *world) {
		edgeStudy(w, "[raspberry-pi-4]")
		b := w.box(false)
		key := trainedOf(t, w, b, "edge", 9, func() {})
		reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: b.id, Study: "edge"})
		if err != nil {
			t.Fatal(err)
		}
		before, err := w.service.Architecture(w.ctx, reply.Lease.Trial, architecture(t, reply.Lease, 8))
		if err != nil {
			t.Fatal(err)
		}
		ask, slow := askFor("kitchen", "raspberry-pi-4"), 20*before.Deployments[0].LatencySeconds.Value
		sent := emu.BoardRuns{Board: ask.Board, Device: ask.Device, Site: ask.Site, Key: key}
		for threads := 1; threads <= 4; threads++ {
			sent.Runs = append(sent.Runs, emu.Run{Batch: 1, Threads: threads, Seconds: slow, Low: slow, High: slow, P90: slow, P99: slow, Repetitions: 9})
		}
		if _, err := w.service.ReportBoard(w.ctx, sent); err != nil {
			t.Fatal(err)
		}
		w.sleep(time.Minute + time.Second) // so long an answer is given again
		after, err := w.service.Deployments(w.ctx, "edge", 1)
		if err != nil || !strings.Contains(after.Devices[0].Method, "4 measurements") || after.Devices[0].LatencySeconds.Value < slow/4 {
			t.Errorf("%.3g s before, %.3g s (%s) after measurements of %.3g s on nearly the same: %v", before.Deployments[0].LatencySeconds.Value,
				after.Devices[0].LatencySeconds.Value, after.Devices[0].Method, slow, err)
		}
		if list, err := w.service.Architectures(w.ctx, 10); err != nil || len(list.Architectures) != 2 {
			t.Errorf("%d architectures, %v", len(list.Architectures), err)
		}
		sent.Runs[0].Seconds = 0
		if _, err := w.service.ReportBoard(w.ctx, sent); !problem.Is(err, problem.Invalid) {
			t.Errorf("a run without a time: %v", err)
		}
	})(t)
}

// A model that fits on no device fails nothing, and is never the best.
func TestAModelThatDoesNotFitIsNeverTheBest(t *testing.T) {
	in(func(t *testing.T, w *world) {
		edgeStudy(w, "[raspberry-pi-4, jetson-nano]")
		b := w.box(false)
		for trials := range 2 {
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: b.id, Study: "edge"})
			if err != nil {
				t.Fatal(err)
			}
			report := architecture(t, reply.Lease, int64(8+trials))
			if trials == 0 {
				report.ActivationBytes = 1 << 45
			}
			told, err := w.service.Architecture(w.ctx, reply.Lease.Trial, report)
			if err != nil || len(told.Deployments) != 2 || (len(told.Deployments[0].Unmet) > 0) != (trials == 0) {
				t.Fatalf("%+v, %v", told, err)
			}
			epoch := protocol.Report{LeaseEpoch: reply.Lease.LeaseEpoch, Epoch: 1, Seconds: 1, Metrics: map[string]trial.Float{"accuracy": 0.5}}
			if _, err := w.service.Report(w.ctx, reply.Lease.Trial, epoch); err != nil {
				t.Fatal(err)
			}
			if _, err := w.finish(reply.Lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
		}
		if one := *trialsOf(t, w, "edge")[0].Inference; !one.Same(one) || one.Same(*trialsOf(t, w, "edge")[1].Inference) {
			t.Errorf("%+v is not the same as itself, or the same as another one", one)
		}
		if value := trialsOf(t, w, "edge")[0].Results[0].Values[0]; !value.IsNaN() {
			t.Errorf("the value of a model that does not fit is %v", value)
		}
		answer, err := w.service.Recommendation(w.ctx, "edge")
		if err != nil || answer.Best.Number != 1 {
			t.Errorf("%+v, %v", answer.Best, err)
		}
		large := architecture(t, w.leaseOf(t, "edge"), 10)
		large.ActivationBytes = 1 << 60
		if _, err := w.service.Architecture(w.ctx, trialsOf(t, w, "edge")[2].ID, large); !problem.Is(err, problem.Invalid) {
			t.Errorf("2^60 bytes: %v", err)
		}
	})(t)
}

func (w *world) leaseOf(t *testing.T, study string) *protocol.Lease {
	t.Helper()
	reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: w.box(false).id, Study: study})
	if err != nil || reply.Lease == nil {
		t.Fatalf("%+v, %v", reply, err)
	}
	return reply.Lease
}

// A file that takes 8 samples at a time runs as it is, and as nothing else.
func TestAFixedBatchIsNeverAnother(t *testing.T) {
	in(func(t *testing.T, w *world) {
		edgeStudy(w, "[this-machine]")
		lease := w.leaseOf(t, "edge")
		report := architecture(t, lease, 8)
		report.Graph.FixedBatch = 8
		told, err := w.service.Architecture(w.ctx, lease.Trial, report)
		if err != nil || len(told.Run) != 2 || told.Run[0].Batch != 1 || told.Run[1].Batch != 1 || told.Deployments[0].Configuration.BatchSize != 8 {
			t.Fatalf("%+v, %v", told, err)
		}
		sent := protocol.InferenceReport{LeaseEpoch: lease.LeaseEpoch, Key: report.Key}
		for _, cell := range told.Run {
			sent.Runs = append(sent.Runs, emu.Run{Batch: 1, Threads: cell.Threads, Seconds: 0.5, Low: 0.5, High: 0.5, P90: 0.5, P99: 0.5, Repetitions: 9})
		}
		if _, err := w.service.Inferences(w.ctx, lease.Trial, sent); err != nil {
			t.Fatal(err)
		}
		if one := trialsOf(t, w, "edge")[0].Inference; one.Estimated() || one.BatchSize != 8 || one.SamplesPerSecond != 16 {
			t.Errorf("%+v", one)
		}
	})(t)
}

// A study bounds the cores and the memory of a deployment; the worker runs nothing else.
func TestADeploymentIsBounded(t *testing.T) {
	in(func(t *testing.T, w *world) {
		edgeStudy(w, "[this-machine, raspberry-pi-4], cores: 1, memory_mib: 2")
		lease := w.leaseOf(t, "edge")
		told, err := w.service.Architecture(w.ctx, lease.Trial, architecture(t, lease, 8)) // 1 MiB for each sample, and weights
		if err != nil || len(told.Deployments) != 2 {
			t.Fatalf("%+v, %v", told, err)
		}
		for _, one := range told.Deployments {
			if one.Configuration.Cores != 1 || one.MemoryBytes > 2<<20 || !one.Runs() {
				t.Errorf("%s: %+v", one.Device, one)
			}
			for _, other := range one.Front {
				if other.Configuration.Cores != 1 || other.Configuration.BatchSize > 1 {
					t.Errorf("%s: on the front is %+v", one.Device, other.Configuration)
				}
			}
		}
		for _, cell := range told.Run {
			if cell.Threads != 1 {
				t.Errorf("it shall run %+v", cell)
			}
		}
		large := architecture(t, lease, 8)
		large.Key, large.ActivationBytes = "architecture-large", 3<<20
		told, err = w.service.Architecture(w.ctx, lease.Trial, large)
		if err != nil || told.Deployments[1].Runs() || !strings.Contains(told.Deployments[1].Unmet[0], "more than the 2 MiB that it may take (inference.memory_mib)") {
			t.Errorf("%+v, %v", told.Deployments, err)
		}
	})(t)
}
