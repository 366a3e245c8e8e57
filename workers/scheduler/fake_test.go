package scheduler

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

const gibibyte = 1 << 30

// entry is a study of a test, whose search has nothing new.
type entry struct {
	Study
	owner    string
	priority int
	strict   bool
	created  time.Time
	running  int
	need     pool.Need
	costs    *costmodel.Model
	ladder   []budget.Rung
}

func (e *entry) ask() allocator.Ask {
	return allocator.Ask{Study: e.ID, Name: e.ID, Owner: e.owner, Priority: e.priority, Strict: e.strict, Need: func(int) pool.Need { return e.need }}
}

// newEntry is a study as its file says, with nothing queued.
func newEntry(t testing.TB, id, file string) *entry {
	t.Helper()
	def, err := studyfile.Parse([]byte(file), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	e := &entry{strict: def.Sandbox == protocol.StrictSandbox, priority: def.Priority, costs: costmodel.New(def.Space), ladder: def.Budget.Ladder()}
	e.Study = Study{ID: id, Trains: true, Energy: def.Placement.Energy, Parallel: def.Parallel, DataFraction: e.ladder[0].Budget.DataFraction}
	if asked := def.Resources; asked != nil {
		e.need = pool.Need{Cores: asked.Cores, KeptCores: asked.Cores > 0, MemoryBytes: int64(asked.MemoryGiB * gibibyte), KeptMemory: asked.MemoryGiB > 0}
		if asked.GPUs != nil {
			e.need.GPUs = *asked.GPUs
		}
	}
	return e
}

// queue has a trial of the study queued.
func (e *entry) queue(on budget.Budget, configuration space.Configuration) {
	number := len(e.Trials)
	e.Trials = append(e.Trials, trial.Trial{
		ID: trial.ID(fmt.Sprintf("%s-%d", e.ID, number)), Number: number, State: trial.Queued, Budget: on, Configuration: configuration,
	})
	e.Queue = append(e.Queue, number)
}

// studies are those of a test.
type studies map[string]*entry

func (e *entry) works() bool {
	return len(e.Queue) > 0 && (e.Parallel == 0 || e.running < e.Parallel)
}

func (all studies) Candidates(caller access.Caller) (list []pool.Candidate) {
	for _, e := range all {
		if e.works() && caller.Sees(e.ID, e.owner) {
			list = append(list, pool.Candidate{Study: e.ID, Owner: e.owner, Priority: e.priority, Running: e.running, Created: e.created})
		}
	}
	return list
}

func (all studies) Working() map[string]bool {
	working := map[string]bool{}
	for _, e := range all {
		working[e.ID] = e.works()
	}
	return working
}

func (all studies) View(_ context.Context, study string, show func(Study)) {
	if e := all[study]; e != nil {
		of := e.Study
		of.Costs = func() *costmodel.Model { return e.costs }
		of.Ask = func(*trial.Trial) allocator.Ask { return e.ask() }
		of.Waits = func() []protocol.Wait { return nil }
		show(of)
	}
}

func (studies) Changes() <-chan struct{} { return nil }

// enqueue has the worker wait until the answer is called.
func enqueue(t testing.TB, a *allocator.Allocator, caller access.Caller, worker string) (leave func()) {
	t.Helper()
	if _, err := a.Arrive(allocator.Visit{Caller: caller, Worker: worker, Enqueue: true}); err != nil {
		t.Fatal(err)
	}
	return func() { a.Leave(worker) }
}

// holdFor has the trial with the lease given back, and held for the worker for as long.
func holdFor(a *allocator.Allocator, lease pool.Lease, worker string, wait time.Duration, now time.Time) {
	a.Regrant([]pool.Lease{lease})
	a.Hold(&allocator.Migration{Trial: lease.Trial, Worker: worker, Wait: wait, Partner: &allocator.Migration{}}, now)
	a.Release(lease.Trial, lease.Epoch)
}
