package study

import (
	"context"
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/scheduler"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

// scheduled is what the scheduler sees of the studies.
type scheduled struct{ service *Service }

// Candidates are the studies with a command that may have a trial for a worker.
func (v scheduled) Candidates(caller Caller) (list []pool.Candidate, working map[string]bool) {
	working = map[string]bool{}
	for r := range v.service.each() {
		if r.trains() && (r.stale || r.broken == nil && !r.idle() && !r.full(0)) {
			working[r.id] = true
			if caller.Sees(r.id, r.owner) {
				list = append(list, pool.Candidate{
					Study: r.study.ID, Owner: r.owner, Priority: r.study.Definition.Priority, Running: r.held, Created: r.study.Created,
				})
			}
		}
	}
	return list, working
}

// View shows the study unless it is over, or is not in memory as it should be.
func (v scheduled) View(ctx context.Context, study string, show func(scheduler.Study)) {
	r := v.service.inMemory(study)
	if r == nil {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.stale || r.study.Status.Over() {
		return
	}
	show(scheduler.Study{
		ID: r.id, Title: called(r.study, callerOf(ctx)), Trains: r.trains(),
		Energy: r.study.Definition.Placement.Energy, Parallel: r.study.Definition.Parallel, Trials: r.trials, Queue: r.queue, Resting: r.resting,
		Startable: r.startable(), DataFraction: r.ladder[0].Budget.DataFraction,
		Costs: func() *costmodel.Model { return v.service.costs(ctx, r) }, Loads: r.loads,
		Ask:   func(t *trial.Trial) allocator.Ask { return v.service.ask(r, t) },
		Waits: func() []protocol.Wait { return v.service.waits(r) },
	})
}

// Changes is closed when anything changes.
func (v scheduled) Changes() <-chan struct{} { return v.service.changes() }

// trains reports whether workers may train the study's trials now.
func (r *session) trains() bool {
	return r.study.Status == protocol.StudyRunning && len(r.study.Definition.Command) > 0
}

// startable is how many trials the search may have in addition to the queued ones: it
// is not asked before somebody gets what it says.
func (r *session) startable() int {
	if r.waiting || r.method == nil {
		return 0
	}
	left := maxStartable
	if most := r.study.Definition.Stop.Trials; most > 0 {
		left = max(1, most-len(r.trials)) // at the end it may have one to promote
	}
	if parallel := r.study.Definition.Parallel; parallel > 0 {
		left = min(left, max(0, parallel-r.held))
	}
	return left
}

// maxStartable is how many new trials a study without a bound is taken to have.
const maxStartable = 1 << 20

// costs is the study's cost model, made from its newest trials when somebody first asks.
func (s *Service) costs(ctx context.Context, r *session) *costmodel.Model {
	if r.costs != nil {
		return r.costs
	}
	made, err := costmodel.Recall(r.study.Definition.Space, r.trials, func(id trial.ID) ([]trial.Report, error) { return s.store.Reports(ctx, id) })
	if err != nil { // it is tried again the next time
		s.options.Logger.Warn("placement goes on without what was stored", "study", r.study.Definition.Name, "error", err)
		return made
	}
	r.costs = made
	return made
}

// observe learns from epochs that are durable, where somebody has asked before.
func (r *session) observe(t trial.Trial, accepted []trial.Report) {
	if r.costs == nil {
		return
	}
	for _, report := range accepted {
		r.costs.Learn(t, report)
	}
}

// placing notes on a trial that is leased why its machine was chosen, and says it
// in words; empty where there was nothing to choose.
func (s *Service) placing(ctx context.Context, r *session, tx *transaction, t trial.Trial) (trial.Trial, string) {
	t = arrived(t, tx)
	t.Placement = nil
	if len(tx.here.chosen.Types) == 0 {
		return t, ""
	}
	at := scheduler.Place{Machine: tx.here.Machine, Skipped: tx.here.Skipped, Types: tx.here.chosen.Types, Energy: r.study.Definition.Placement.Energy}
	if !t.Budget.Measured() {
		at.Epochs = t.Budget.Epochs - t.NextEpoch(r.ladder[t.Rung]) + 1
	}
	costs, probes := s.costs(ctx, r), s.allocator.Probes().Known
	encoded := costs.Encode(t.Configuration)
	return scheduler.Assign(t, at, func(machine string) costmodel.Estimate {
		return costs.Estimate(encoded, t.Budget.DataFraction, machine, probes)
	})
}

// waits says why the study's next trial does not start; nil where nothing is in
// its way, or it has none. The study's lock is held.
func (s *Service) waits(r *session) []protocol.Wait {
	if r.study.Status != protocol.StudyRunning || len(r.study.Definition.Command) == 0 || r.broken != nil || !r.mayStart() {
		return nil
	}
	if r.full(0) {
		return []protocol.Wait{{Cause: protocol.WaitParallel, Reason: fmt.Sprintf("it runs %d of at most %d trials at once (parallel)", r.held, r.study.Definition.Parallel)}}
	}
	one := allocator.Waiting{Ask: s.ask(r, nil), Running: r.held}
	if one.SharesGPUs {
		if one.Expected = s.firstSharer(r).String(); s.gpus.Refusal(r.id) != "" {
			one.Expected += "; " + s.gpus.Refusal(r.id)
		}
	}
	if len(r.queue) > 0 && strings.HasPrefix(r.trials[r.queue[0]].Reason, protocol.CannotRun) {
		t := &r.trials[r.queue[0]]
		one.Returned = &allocator.Returned{Worker: t.Worker, Number: t.Number, Reason: trial.FirstLine(t.Reason)}
	}
	return s.allocator.Waits(one)
}
