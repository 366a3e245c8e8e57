package study

import (
	"context"
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/tuning"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/pool"
)

// maxSeconds is how long an epoch may have taken, 31 years: times of trials can
// then be added without end.
const maxSeconds = 1e9

// maxNeighbours is how many trials a machine may run beside one.
const maxNeighbours = 4096

// Report stores one epoch's outcome and answers what to do next. An epoch that
// was accepted before changes nothing, whatever it says now; one that a later
// epoch has overtaken counts like any other.
func (s *Service) Report(ctx context.Context, id trial.ID, report protocol.Report) (protocol.Directive, error) {
	r, t, err := s.lockedTrial(ctx, id)
	if err != nil {
		return protocol.Directive{}, err
	}
	defer r.leave()
	if err := holds(t, report.LeaseEpoch); err != nil {
		return answered(r, protocol.Directive{}, err)
	}
	if t.State.Terminal() {
		return answered(r, s.directive(r, t), nil) // too late to count, and not the worker's fault
	}
	if t.Budget.Measured() && t.MeasuredAt(t.Rung) {
		return answered(r, s.directive(r, t), nil) // the script went on before it heard that the budget is spent
	}
	if err := r.checkReport(t, report); err != nil {
		return protocol.Directive{}, err
	}
	s.allocator.Renew(t.ID, t.LeaseEpoch)
	fresh, t, err := s.fresh(ctx, r, t, report.Epoch)
	if err != nil {
		return answered(r, protocol.Directive{}, err)
	}
	if !fresh && t.State == trial.Running {
		return answered(r, s.orMove(r, t, s.directive(r, t), nil), nil)
	}
	here := s.allocator.SiteOf(t.Worker, t.ID)
	known, err := r.tuned().Known(ctx, s.truth, here)
	if err != nil {
		return protocol.Directive{}, err
	}
	tx := s.begin(r)
	guidance := r.tuned().Guide(known, t, report, here, tx.now)
	worker, _, _ := s.allocator.Worker(t.Worker)
	tx.machine, tx.start = worker.Type, s.starting(r, t, tx.now)
	t, err = tx.report(t, report, fresh, guidance)
	if err != nil {
		tx.abandon()
		return protocol.Directive{}, err
	}
	directive := s.orMove(r, t, s.directive(r, t), tx)
	accepted := slices.Clone(tx.change.Reports)
	tx.then(func() {
		s.judged(tx)
		s.resize(r, t, report) // before those who wait for cores look again
		s.truth.Learn(guidance.Records)
		if fresh {
			s.took(ctx, r, t, report)
		}
		r.observe(t, accepted)
		if t.State.Terminal() { // its search stopped it
			s.release(pool.Lease{Trial: t.ID, Epoch: t.LeaseEpoch})
		}
	})
	if err := commit(ctx, s, tx, &directive); err != nil {
		return protocol.Directive{}, err
	}
	return directive, nil
}

// resize tells the pool what the trial takes of its machine from now on.
func (s *Service) resize(r *session, t trial.Trial, report protocol.Report) {
	memory := int64(0)
	if report.Profile != nil {
		memory = int64(report.Profile.Host["tree.resident_bytes"])
	}
	r.resident = max(r.resident, memory)
	s.allocator.Resize(t.ID, t.LeaseEpoch, t.Worker, func(cores int) pool.Need { return r.takes(t, cores, memory) })
}

// took counts what an epoch took that was accepted.
func (s *Service) took(ctx context.Context, r *session, t trial.Trial, report protocol.Report) {
	s.approximation.Reported(t.ID, t.LeaseEpoch, report)
	if report.Energy != nil {
		s.allocator.Spend(r.owner, 0, float64(report.Energy.Joules))
	}
	s.observeGPU(ctx, t, report.GPUUse, float64(report.Seconds-report.SetupSeconds)/t.FractionAt(t.Rung))
}

// report stages what comes of a report.
func (tx *transaction) report(t trial.Trial, report protocol.Report, fresh bool, guidance tuning.Guidance) (trial.Trial, error) {
	var err error
	if t.State == trial.Leased {
		if t, err = tx.state(tx.start.Reported(t), trial.Running, "reported its first epoch of this lease"); err != nil {
			return t, err
		}
	}
	if t.Stalled {
		if t, err = tx.state(t, trial.Running, "reports again"); err != nil {
			return t, err
		}
	}
	if !fresh {
		return t, nil
	}
	if t, err = tx.judge(tx.accept(t, report, guidance), report); err != nil {
		return t, err
	}
	return tx.spend(t)
}

// fresh reports whether the epoch was never accepted: not at this rung, nor at
// one that this rung continues. The trial comes back as it is by then: only the
// store knows all reports, and those on their way to it are waited for.
func (s *Service) fresh(ctx context.Context, r *session, t trial.Trial, epoch int) (bool, trial.Trial, error) {
	if epoch > t.LastEpoch {
		return true, t, nil
	}
	if epoch <= t.Inherited {
		return false, t, nil // its parent trained it
	}
	for before := -1; before != t.Epochs; t = r.trials[t.Number] {
		before = t.Epochs
		if err := r.wait(); err != nil {
			return false, t, err
		}
		if now := r.trials[t.Number]; now.LeaseEpoch != t.LeaseEpoch || !now.State.Held() {
			return false, now, problem.New(problem.Unavailable, "trial %s became %s while this report was looked at: send it again", now.ID, now.State)
		}
	}
	reports, err := s.store.Reports(ctx, t.ID)
	if err != nil {
		return false, t, err
	}
	return !slices.ContainsFunc(reports, func(known trial.Report) bool {
		return known.Epoch == epoch && (known.Rung == t.Rung || !r.ladder[t.Rung].FromScratch)
	}), t, nil
}

// checkReport names every fault of a report.
func (r *session) checkReport(t trial.Trial, report protocol.Report) error {
	var faults []problem.Field
	if report.Epoch > t.Budget.Epochs {
		faults = append(faults, problem.Field{Path: "epoch", Value: report.Epoch,
			Message: fmt.Sprintf("must be at most %d, the budget of rung %d", t.Budget.Epochs, t.Rung)})
	}
	for name := range report.Metrics {
		if name == "" || len(name) > 128 {
			faults = append(faults, problem.Field{Path: "metrics", Value: name, Message: "a metric's name must have 1 to 128 bytes"})
		}
	}
	if !(report.Seconds >= 0 && report.Seconds <= maxSeconds) {
		faults = append(faults, problem.Field{Path: "seconds", Value: report.Seconds, Message: "must be a number from 0 to 1e9"})
	}
	if !(report.SetupSeconds >= 0 && report.SetupSeconds <= report.Seconds) {
		faults = append(faults, problem.Field{Path: "setup_seconds", Value: report.SetupSeconds, Message: "must be a number from 0 to seconds, of which it is a part"})
	}
	if !(report.SprintSeconds >= 0 && report.SprintSeconds <= report.Seconds) {
		faults = append(faults, problem.Field{Path: "sprint_seconds", Value: report.SprintSeconds, Message: "must be a number from 0 to seconds, of which it is a part"})
	}
	if !(report.Neighbours >= 0 && report.Neighbours <= maxNeighbours) {
		faults = append(faults, problem.Field{Path: "neighbours", Value: report.Neighbours, Message: fmt.Sprintf("must be a number from 0 to %d", maxNeighbours)})
	}
	faults = append(faults, tuning.UnknownKnobs(report.System)...)
	if report.Energy != nil && (report.Energy.Joules < 0 || !report.Energy.Joules.IsFinite() || report.Energy.Method == "") {
		faults = append(faults, problem.Field{Path: "energy", Value: *report.Energy, Message: "must have finite joules, at least 0, and the method they were obtained by"})
	}
	if report.Profile != nil {
		for _, fault := range report.Profile.Faults() {
			faults = append(faults, problem.Field{Path: "profile", Message: fault})
		}
	}
	faults = append(faults, gpushare.Faults(report.GPUUse)...)
	faults = append(faults, unmeasured(t.Budget, report)...)
	if t.Budget.Measured() || report.Epoch == t.Budget.Epochs { // of a measured budget any report may be the last
		goals, err := r.goals()
		if err != nil {
			return err
		}
		faults = append(faults, goals.Missing(t, report)...)
	}
	if len(faults) > 0 {
		return problem.WithFields("the report of trial "+string(t.ID)+" is not valid", faults)
	}
	return nil
}

// accept stages a new report; the one that reaches the budget becomes the
// trial's result at its rung.
func (tx *transaction) accept(t trial.Trial, report protocol.Report, guidance tuning.Guidance) trial.Trial {
	energy := trial.Energy{}
	if report.Energy != nil {
		energy = *report.Energy
	}
	accepted := trial.Report{
		Trial: t.ID, Rung: t.Rung, Epoch: report.Epoch, Metrics: report.Metrics, Seconds: report.Seconds,
		Energy: energy, Profile: report.Profile, LeaseEpoch: t.LeaseEpoch, Worker: t.Worker, At: tx.now,
		SetupSeconds: report.SetupSeconds, System: guidance.Configuration, SystemPhase: guidance.Phase, SystemWhy: guidance.Why,
		Neighbours: report.Neighbours, Saved: guidance.Saved, Machine: tx.machine,
	}
	if guidance.Setting != nil {
		t.Setting = guidance.Setting
	}
	t.Saved = t.Saved.Plus(guidance.Saved)
	t.Epochs++
	t.LostOn = nil
	if report.Epoch > t.LastEpoch {
		t.LastEpoch, t.Last = report.Epoch, report.Metrics
	}
	t.GPUUse = t.GPUUse.Plus(report.GPUUse)
	t.Seconds += report.Seconds
	t.Energy = t.Energy.Plus(energy)
	if t.Setting != nil {
		t.SystemUse = trial.Using(t.SystemUse, accepted)
	}
	if reaches(t, report.Epoch) {
		t.Results = append(slices.Clone(t.Results), tx.result(t, report.Metrics))
	}
	t = tx.reshared(moved(t, accepted))
	tx.change.Reports = append(tx.change.Reports, accepted)
	tx.change.Records = append(tx.change.Records, guidance.Records...)
	told := accepted
	told.Profile = nil // it is as large as all else; who follows the log asks for it
	tx.log(Event{Kind: Reported, Trial: t.ID, State: string(t.State), Worker: t.Worker}, told)
	tx.stage(t)
	return t
}

// CommitCheckpoint publishes an uploaded artifact as the trial's checkpoint.
// One that is older than what the trial would resume from changes nothing; one of
// bytes that the caller did not send is refused.
func (s *Service) CommitCheckpoint(ctx context.Context, id trial.ID, commitment protocol.CheckpointCommit) error {
	r, t, err := s.lockedTrial(ctx, id)
	if err != nil {
		return err
	}
	defer r.leave()
	if err := holds(t, commitment.LeaseEpoch); err != nil {
		return refusal(r, err)
	}
	if t.State.Terminal() {
		return refusal(r, problem.New(problem.LeaseLost, "trial %s is %s: its checkpoint is no longer wanted", t.ID, t.State))
	}
	if commitment.Epoch > t.LastEpoch {
		return problem.WithFields("the checkpoint of trial "+string(t.ID)+" is not valid", []problem.Field{{Path: "epoch", Value: commitment.Epoch,
			Message: fmt.Sprintf("must be at most %d, the newest epoch reported: report an epoch before its checkpoint", t.LastEpoch)}})
	}
	if t.ResumesAt(r.ladder[t.Rung]) && commitment.Epoch < t.Checkpoint.Epoch {
		return refusal(r, nil)
	}
	if err := s.checkUpload(ctx, t, commitment); err != nil {
		return err
	}
	tx := s.begin(r)
	if t.Checkpoint != nil && t.Checkpoint.Artifact != commitment.Artifact {
		t.Earlier = t.Checkpoint
	}
	t.Checkpoint = &trial.Checkpoint{Epoch: commitment.Epoch, Rung: t.Rung, Artifact: commitment.Artifact, Bytes: commitment.Bytes}
	tx.log(Event{Kind: Checkpointed, Trial: t.ID, State: string(t.State), Worker: t.Worker}, t.Checkpoint)
	tx.stage(t)
	tx.then(func() { s.allocator.Saved(t.ID, t.LeaseEpoch) })
	var nothing struct{}
	return commit(ctx, s, tx, &nothing)
}

// AppendLog adds to the trial's log.
func (s *Service) AppendLog(ctx context.Context, id trial.ID, chunk protocol.LogChunk) error {
	r, t, err := s.lockedTrial(ctx, id)
	if err != nil {
		return err
	}
	r.mutex.Unlock()
	if t.LeaseEpoch != chunk.LeaseEpoch {
		return problem.New(problem.LeaseLost, "trial %s is under lease %d, not %d", t.ID, t.LeaseEpoch, chunk.LeaseEpoch)
	}
	return s.logs.AppendLog(ctx, id, chunk.LeaseEpoch, chunk.Offset, chunk.Text)
}
