package study_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

func TestADrainedWorkerLetsItsTrialsGo(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9")
		w.rack("worker-rack", 2, 0)
		w.rack("worker-desk", 2, 0)
		lease := w.mustLease("worker-rack")
		w.mustReport(lease, 1)
		if err := w.checkpoint(lease, 1); err != nil {
			t.Fatal(err)
		}
		if drained, err := w.service.Drain(w.ctx, "rack", protocol.DrainRequest{Reason: "new disk"}); err != nil || !slices.Equal(drained.Workers, []string{"rack"}) || drained.Trials != 1 {
			t.Fatalf("%+v, %v", drained, err)
		}
		if w.lease("worker-rack") != nil || len(w.beat("worker-rack", lease)) != 0 {
			t.Error("a drained worker got a trial, or has to let one go")
		}
		seen, err := w.service.Pool(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, machine := range seen.Machines {
			if machine.Drained != (machine.ID == "worker-rack") {
				t.Errorf("the pool says of %s that it is drained: %v", machine.ID, machine.Drained)
			}
		}
		if _, err := w.service.Drain(w.ctx, "worker-rack", protocol.DrainRequest{Now: true, Reason: "new disk"}); err != nil {
			t.Fatal(err)
		}
		w.start() // it is durable, for the name
		w.rack("worker-rack", 2, 0)
		w.rack("worker-desk", 2, 0)
		if directive := w.beat("worker-rack", lease)[lease.Trial]; directive.Action != protocol.Pause || !strings.Contains(directive.Reason, "rack is drained: new disk") {
			t.Errorf("the worker is told %+v", directive)
		}
		if _, err := w.finish(lease, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		if stored := w.trial(lease.Trial); stored.State != trial.Queued || stored.Failures != 0 || stored.Preemptions != 0 {
			t.Errorf("the trial is %+v", stored)
		}
		if w.lease("worker-rack") != nil {
			t.Error("the drained worker got it again")
		}
		if again := w.mustLease("worker-desk"); again.Trial != lease.Trial || again.FirstEpoch != 2 {
			t.Errorf("the other worker got %s from epoch %d", again.Trial, again.FirstEpoch)
		}
		for _, worker := range w.service.Workers(w.ctx) {
			if (worker.Drained != nil) != (worker.Name == "rack") {
				t.Errorf("worker %s is drained: %+v", worker.Name, worker.Drained)
			}
		}
		if _, err := w.service.Undrain(w.ctx, "rack"); err != nil {
			t.Fatal(err)
		}
		w.mustLease("worker-rack")
		if _, err := w.service.Drain(w.ctx, "nobody", protocol.DrainRequest{}); !problem.Is(err, problem.NotFound) {
			t.Errorf("a worker that is not there: %v", err)
		}
	})(t)
}

func TestAllWorkersDrainedIsTold(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create()
		w.rack("worker-rack", 1, 0)
		if _, err := w.service.Drain(w.ctx, "rack", protocol.DrainRequest{}); err != nil {
			t.Fatal(err)
		}
		w.wantWait("example", "drained", "worker rack is drained")
	})(t)
}

// Earlier servers drained workers by their forecast and took that back: none does it now.
func TestADrainByAnEarlierServersForecastIsTakenBack(t *testing.T) {
	in(func(t *testing.T, w *world) {
		old := journal.Change{Pool: []journal.PoolEntry{
			{Kind: "drain", Name: `["rack",""]`, Document: json.RawMessage(`{"name":"rack","since":"2026-11-01T00:00:00Z","advised":true,"capacity":2}`)},
			{Kind: "drain", Name: `["desk",""]`, Document: json.RawMessage(`{"name":"desk","since":"2026-11-01T00:00:00Z"}`)},
			{Kind: "changes", Name: "changes", Document: json.RawMessage(`{"changes":[{"at":"2026-11-01T00:00:00Z","worker":"rack","action":"drain","reason":"","capacity":2}]}`)},
		}}
		if err := w.store.Apply(w.ctx, old); err != nil {
			t.Fatal(err)
		}
		w.start()
		w.create()
		w.rack("worker-desk", 1, 0)
		if w.lease("worker-desk") != nil {
			t.Error("a person's drain does not hold any more")
		}
		w.rack("worker-rack", 1, 0)
		w.mustLease("worker-rack")
	})(t)
}
