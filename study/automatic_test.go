package study_test

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/system"
)

// TestAutomaticThreadsFitWhatATrialHas: the first trial of a study that is tuned by
// default has the threads it would have without tuning, and never more than its part of
// the machine.
func TestAutomaticThreadsFitWhatATrialHas(t *testing.T) {
	for name, one := range map[string]struct {
		worker  protocol.WorkerRegistration
		section string
		threads int64 // 0: nothing is tuned
		trials  int   // at once
	}{
		"the whole machine":    {protocol.WorkerRegistration{Slots: 8, Elastic: true}, "auto", 8, 1},
		"what is kept for it":  {protocol.WorkerRegistration{Slots: 8, Elastic: true}, "auto\nresources: {cores: 4}", 4, 2},
		"one core":             {protocol.WorkerRegistration{Slots: 8, Elastic: true}, "auto\nresources: {cores: 1}", 0, 8},
		"a slot":               {protocol.WorkerRegistration{Slots: 2}, "auto", 4, 2},
		"a slot of one core":   {protocol.WorkerRegistration{Slots: 8}, "auto", 0, 8},
		"off":                  {protocol.WorkerRegistration{Slots: 8, Elastic: true}, "off", 0, 1},
		"its worker's threads": {protocol.WorkerRegistration{Slots: 8, Elastic: true, Machine: protocol.Machine{Threads: 2}}, "auto", 2, 4},
		"others' threads":      {protocol.WorkerRegistration{Slots: 8, Elastic: true, Machine: protocol.Machine{Threads: 2}}, "{cpu_threads: auto}", 8, 1},
		"GPUs nobody spoke of": {protocol.WorkerRegistration{Slots: 8, Elastic: true, Machine: protocol.Machine{GPUs: []string{"a"}}}, "auto", 8, 1},
		"a GPU":                {protocol.WorkerRegistration{Slots: 8, Elastic: true, Machine: protocol.Machine{GPUs: []string{"a"}}}, "auto\nresources: {gpus: 1}", 8, 1},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			one.worker.ID, one.worker.Name, one.worker.Machine.Cores = "worker-1", "box", 8
			if _, err := w.service.RegisterWorker(w.ctx, one.worker); err != nil {
				t.Fatal(err)
			}
			w.create("name: example", "name: example\nsystem: "+one.section)
			trials := 0
			for trials < one.worker.Slots {
				lease := w.lease("worker-1")
				if lease == nil {
					break
				}
				trials++
				if threads, _ := lease.System[system.CPUThreads].Integer(); threads != one.threads {
					t.Errorf("trial %d has %d threads, want %d", lease.Number, threads, one.threads)
				}
			}
			if trials != one.trials {
				t.Errorf("%d trials run at once, want %d", trials, one.trials)
			}
		}))
	}
}

// TestGPUsNobodySpokeOfAreNotShared: where a study does not say which GPUs its trials use,
// each has the machine for itself, whatever is known of its threads.
func TestGPUsNobodySpokeOfAreNotShared(t *testing.T) {
	in(func(t *testing.T, w *world) {
		worker := protocol.WorkerRegistration{ID: "worker-1", Name: "box", Slots: 2, Elastic: true, Machine: protocol.Machine{Cores: 2, GPUs: []string{"a"}}}
		if _, err := w.service.RegisterWorker(w.ctx, worker); err != nil {
			t.Fatal(err)
		}
		w.create("name: example", "name: example\nsystem: auto", "min: 0.25, max: 1", "min: 1, max: 1")
		for range 6 {
			lease := w.mustLease("worker-1")
			for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
				w.mustReport(lease, epoch)
				if other := w.lease("worker-1"); other != nil {
					t.Fatalf("trial %d runs beside trial %d", other.Number, lease.Number)
				}
			}
			if err := w.checkpoint(lease, lease.Budget.Epochs); err != nil {
				t.Fatal(err)
			}
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
		}
	})(t)
}

// TestTheDefaultCostsAStudyThatGainsNothingLittle trains scripts that ignore their threads,
// of which one keeps all cores busy, without tuning and by default: in virtual time, so
// without noise.
func TestTheDefaultCostsAStudyThatGainsNothingLittle(t *testing.T) {
	for _, work := range []workload{
		{name: "one core", seconds: func(int, int) float64 { return 2 }},
		{name: "all cores", seconds: func(_, neighbours int) float64 { return 2 * float64(1+neighbours) }},
	} {
		for _, elastic := range []bool{false, true} {
			took := map[string]time.Duration{}
			for _, section := range []string{"off", "auto"} {
				in(func(t *testing.T, w *world) {
					w.create("name: example", "name: example\nsystem: "+section,
						"budget: {policy: multi, epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}, eta: 3}", "budget: {epochs: 9}", "trials: 27", "trials: 12")
					b := w.box(elastic)
					took[section] = b.train("example", work)
					if b.full > b.cores {
						t.Errorf("%s, elastic %v, %s: trials had %d threads at once on %d cores", work.name, elastic, section, b.full, b.cores)
					}
				})(t)
			}
			t.Logf("%s, elastic %v: %v without tuning, %v by default", work.name, elastic, took["off"], took["auto"])
			if float64(took["auto"]) > 1.03*float64(took["off"]) {
				t.Errorf("%s, elastic %v: the default took %v, without tuning %v", work.name, elastic, took["auto"], took["off"])
			}
		}
	}
}
