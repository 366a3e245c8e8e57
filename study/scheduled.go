package study

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/scheduler"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

// scheduled is what the scheduler sees of the studies.
type scheduled struct{ service *Service }

// Candidates are the studies with a command that may have a trial for a worker.
func (v scheduled) Candidates(caller access.Caller) (list []pool.Candidate, working map[string]bool) {
	working = map[string]bool{}
	for r := range v.service.sessions.Each() {
		if r.Trains() && (r.Stale || r.Broken == nil && !r.Idle() && !r.Full(0)) {
			working[r.ID] = true
			if caller.Sees(r.ID, r.Owner) {
				list = append(list, pool.Candidate{
					Study: r.Study.ID, Owner: r.Owner, Priority: r.Study.Definition.Priority, Running: r.Held, Created: r.Study.Created,
				})
			}
		}
	}
	return list, working
}

// View shows the study unless it is over, or is not in memory as it should be.
func (v scheduled) View(ctx context.Context, study string, show func(scheduler.Study)) {
	r := v.service.sessions.InMemory(study)
	if r == nil {
		return
	}
	r.Lock()
	defer r.Unlock()
	if r.Stale || r.Study.Status.Over() {
		return
	}
	show(scheduler.Study{
		ID: r.ID, Title: registry.NameFor(r.Study, access.CallerOf(ctx)), Trains: r.Trains(),
		Energy: r.Study.Definition.Placement.Energy, Parallel: r.Study.Definition.Parallel, Trials: r.Trials, Queue: r.Queue, Resting: r.Resting,
		Startable: r.Startable(), DataFraction: r.Ladder[0].Budget.DataFraction,
		Costs: func() *costmodel.Model { return r.Costs(ctx) }, Loads: r.Loads,
		Ask:   func(t *trial.Trial) allocator.Ask { return r.Ask(t) },
		Waits: func() []protocol.Wait { return v.service.waits(r) },
	})
}

// Changes is closed when anything changes.
func (v scheduled) Changes() <-chan struct{} { return v.service.sessions.Changes() }

// waits says why the study's next trial does not start; nil where nothing is in
// its way, or it has none. The study's lock is held.
func (s *Service) waits(r *session.Session) []protocol.Wait {
	one, starts := r.Obstacle()
	if one.Ask.Need == nil {
		return starts
	}
	if one.SharesGPUs && s.gpus.Refusal(r.ID) != "" {
		one.Expected += "; " + s.gpus.Refusal(r.ID)
	}
	return s.allocator.Waits(one)
}
