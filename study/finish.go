package study

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/approximation"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/pool"
)

// Finish ends a lease and says what became of the trial.
func (s *Service) Finish(ctx context.Context, id trial.ID, request protocol.FinishRequest) (protocol.FinishReply, error) {
	r, t, err := s.lockedTrial(ctx, id)
	if err != nil {
		return protocol.FinishReply{}, err
	}
	defer r.leave()
	if err := holds(t, request.LeaseEpoch); err != nil {
		return answered(r, protocol.FinishReply{}, err)
	}
	held := pool.Lease{Trial: t.ID, Epoch: t.LeaseEpoch}
	if t.State.Terminal() {
		reply, err := answered(r, protocol.FinishReply{State: t.State, Rung: t.Rung}, nil)
		if err == nil {
			s.release(held)
		}
		return reply, err
	}
	if faults := gpushare.Faults(request.GPUUse); len(faults) > 0 {
		return protocol.FinishReply{}, problem.WithFields("the end of the lease of trial "+string(t.ID)+" is not valid", faults)
	}
	t.GPUUse = t.GPUUse.Plus(request.GPUUse)
	was, tx := t, s.begin(r)
	tx.preempted, tx.crowding = s.crowdingOf(t)
	s.leaving(tx, t)
	tx.start = s.starting(r, t, tx.now)
	t, err = tx.end(t, request)
	if err != nil {
		tx.abandon()
		return protocol.FinishReply{}, err
	}
	reply := protocol.FinishReply{State: t.State, Rung: t.Rung}
	for _, one := range tx.start.Exclude {
		reply.Excluded = new(shownExclusion(one))
	}
	s.hold(tx)
	tx.then(func() { s.finished(ctx, tx, was, t, request) })
	if err := commit(ctx, s, tx, &reply); err != nil {
		return protocol.FinishReply{}, err
	}
	return reply, nil
}

// finished notes beside the study that a trial was given back: what it was and what
// it has become.
func (s *Service) finished(ctx context.Context, tx *transaction, was, now trial.Trial, request protocol.FinishRequest) {
	s.judged(tx)
	if request.GPUUse != nil {
		s.observeGPU(ctx, was, request.GPUUse, 0)
	}
	if now.State.Terminal() {
		s.gpus.Left(now.ID)
	}
	if now.MeasuredAt(now.Rung) {
		s.approximation.Ended(now.ID, request.LeaseEpoch, tx.now)
	}
	s.release(pool.Lease{Trial: was.ID, Epoch: was.LeaseEpoch})
	if request.Outcome == protocol.Refused {
		s.allocator.Refuse(was.Worker, tx.session.id, cmp.Or(request.Reason, "the worker refuses it"))
	}
}

// release ends the lease, unless the trial is out under another by now.
func (s *Service) release(lease pool.Lease) {
	s.approximation.Dropped(lease.Trial, lease.Epoch)
	if s.allocator.Release(lease.Trial, lease.Epoch) {
		s.notify()
	}
}

// end decides what a trial becomes when its lease ends in an orderly way. A
// trial that was measured at its rung is done with it, however the worker ended.
func (tx *transaction) end(t trial.Trial, request protocol.FinishRequest) (trial.Trial, error) {
	switch {
	case t.MeasuredAt(t.Rung):
		return tx.measured(t)
	case request.Outcome == protocol.Interrupted, request.Outcome == protocol.Refused:
		return tx.interrupted(t, request)
	case request.Outcome == protocol.Vanished:
		t, reason := tx.start.WorkersOwn(t, request.Reason)
		err := tx.lose(t, cmp.Or(reason, "worker "+t.Worker+" died under it"))
		return tx.trial(t.Number), err
	case t.Budget.Measured() && request.Outcome == protocol.BudgetReached:
		return tx.failedStart(t, "the command ended before its budget was spent: "+t.Amounts())
	case request.Outcome == protocol.BudgetReached:
		return tx.failedStart(t, fmt.Sprintf("the command ended after epoch %d of %d", t.LastEpoch, t.Budget.Epochs))
	case request.OutOfGPUMemory && tx.crowding.beside:
		t, reason := gpushare.AfterShortage(t, tx.crowding.gpuBytes, cmp.Or(request.Reason, "the command failed"))
		return tx.state(t, trial.Queued, reason)
	default:
		return tx.failedStart(t, cmp.Or(request.Reason, "the command failed"))
	}
}

// interrupted puts the trial back into the queue. If its checkpoint could not be
// restored, it goes on from the one before, or starts again.
func (tx *transaction) interrupted(t trial.Trial, request protocol.FinishRequest) (trial.Trial, error) {
	t, request.Reason = tx.start.WorkersOwn(t, request.Reason)
	reason := cmp.Or(request.Reason, "given back by the worker")
	if request.Unusable != "" && t.Checkpoint != nil && t.Checkpoint.Artifact == request.Unusable {
		t.Checkpoint, t.Earlier = t.Earlier, nil
		if rung := tx.session.ladder[t.Rung]; t.ResumesAt(rung) {
			reason += fmt.Sprintf("; goes on from the checkpoint of epoch %d instead", t.Checkpoint.Epoch)
		} else {
			reason += "; starts from its first epoch, as there is no earlier checkpoint"
		}
	}
	if tx.preempted && request.Outcome == protocol.Interrupted {
		t.Preemptions++
		t.Preempted = &tx.now
	}
	t, reason = tx.depart(t, reason)
	return tx.state(t, trial.Queued, reason)
}

// measured moves a trial with a result at its rung out of its worker's hands,
// shows the result to the search,
// and ends the study if its target is met or too little is left to gain.
func (tx *transaction) measured(t trial.Trial) (trial.Trial, error) {
	r := tx.session
	next, reason := trial.Paused, fmt.Sprintf("measured at rung %d", t.Rung)
	if t.Rung == len(r.ladder)-1 {
		next, reason = trial.Completed, "measured at the top rung"
	}
	if t.Budget.Measured() {
		reason += ": " + t.Amounts()
	}
	t, err := tx.state(r.keeps(t), next, reason)
	if err != nil {
		return t, err
	}
	result := t.Results[len(t.Results)-1]
	if _, err := tx.search(search.Event{Kind: search.Measured, Trial: t.Number, Rung: t.Rung, Values: approximation.Corrected(r.study.Definition, result), Violation: result.Violation}); err != nil {
		return t, err
	}
	if t.RepeatOf != nil { // the search is over already: what is left of it is to see how lucky its best were
		return tx.settled(t)
	}
	if reached(r.study.Definition, result) {
		err = tx.conclude(protocol.StudyCompleted, fmt.Sprintf("trial %d reached the target", t.Number))
		t = tx.trial(t.Number)
		return t, err
	}
	if bound := tx.boundRegret(t); bound != nil && float64(bound.Value) < bound.Threshold {
		err = tx.conclude(protocol.StudyCompleted, fmt.Sprintf(
			"at most %.3g of %s is left to gain, less than stop.regret %[4]g (an estimate at %[3]g %% confidence)",
			float64(bound.Value), r.study.Definition.Objectives[0].Label(), 100*bound.Confidence, bound.Threshold))
		t = tx.trial(t.Number)
	}
	if err != nil {
		return t, err
	}
	return tx.settled(t)
}

// reached reports whether a feasible result meets the targets of all objectives
// that have one.
func reached(def definition.Definition, result trial.Result) bool {
	if !def.Stop.TargetReached || result.Violation > 0 {
		return false
	}
	for i, objective := range def.Objectives {
		if objective.Target == nil {
			continue
		}
		value := float64(result.Values[i])
		met := value <= *objective.Target
		if objective.Direction == definition.Maximize {
			met = value >= *objective.Target
		}
		if !met {
			return false
		}
	}
	return true
}

// failed retries the trial while the user's retries last, else fails it for
// good; and ends a study in which nothing but failures happens.
func (tx *transaction) failed(t trial.Trial, reason string) (trial.Trial, error) {
	def := tx.session.study.Definition
	t.Failures++
	if t.Failures <= def.Retry.Failures {
		return tx.state(t, trial.Queued, fmt.Sprintf("failed (%d of %d retries used): %s", t.Failures, def.Retry.Failures, reason))
	}
	t, err := tx.state(t, trial.Failed, reason)
	if err != nil {
		return t, err
	}
	if _, err := tx.search(search.Event{Kind: search.Failed, Trial: t.Number, Rung: t.Rung}); err != nil {
		return t, err
	}
	if def.Stop.Failures > 0 && onlyFailures(tx.all()) >= def.Stop.Failures {
		return t, tx.conclude(protocol.StudyFailed, fmt.Sprintf("the first trials failed, as many as stop.failures allows (%d)", def.Stop.Failures))
	}
	return tx.settled(t)
}

// onlyFailures counts the failed trials of a study in which none was measured.
func onlyFailures(trials iter.Seq[trial.Trial]) int {
	failures := 0
	for t := range trials {
		if len(t.Results) > 0 {
			return 0
		}
		if t.State == trial.Failed {
			failures++
		}
	}
	return failures
}

// expire takes a trial from a worker that has not been heard of for a lease
// term. Losing it and queueing it again are one transaction.
func (s *Service) expire(ctx context.Context, lease pool.Lease) error {
	r, t, err := s.lockedTrial(ctx, lease.Trial)
	if problem.Is(err, problem.LeaseLost) || problem.Is(err, problem.NotFound) {
		s.release(lease)
		return nil
	}
	if err != nil {
		return err
	}
	defer r.leave()
	if t.LeaseEpoch != lease.Epoch || !t.State.Held() {
		if err := refusal(r, nil); err != nil {
			return err
		}
		s.release(lease)
		return nil
	}
	if s.allocator.Renewed(lease) {
		return nil // a heartbeat came while this tick was busy
	}
	tx := s.begin(r)
	if err := tx.lose(t, "worker "+t.Worker+" was not heard of for a lease term"); err != nil {
		tx.abandon()
		if r.broken != nil { // it waits for a server that can tell its search
			s.release(lease)
			return nil
		}
		return err
	}
	tx.then(func() { s.release(lease) })
	var nothing struct{}
	return commit(ctx, s, tx, &nothing)
}
