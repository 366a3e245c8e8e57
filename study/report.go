package study

import (
	"context"
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
)

// Report stores one epoch's outcome and answers what to do next. An epoch that
// was accepted before changes nothing, whatever it says now; one that a later
// epoch has overtaken counts like any other.
func (s *leases) Report(ctx context.Context, id trial.ID, report protocol.Report) (protocol.Directive, error) {
	r, t, err := s.leased(ctx, id, report.LeaseEpoch)
	if err != nil {
		return protocol.Directive{}, err
	}
	defer r.Leave()
	if err := session.CheckProfile(report); err != nil {
		return protocol.Directive{}, err
	}
	// Too late to count, and not the worker's fault: it had not heard of the end yet.
	if t.State.Terminal() || t.Budget.Measured() && t.MeasuredAt(t.Rung) {
		return session.Answered(r, s.directive(r, t), nil)
	}
	worker, _, _ := s.allocator.Worker(t.Worker)
	if err := r.CheckReport(t, report, worker.Type); err != nil {
		return protocol.Directive{}, err
	}
	report = told(r, t, report)
	s.allocator.Renew(t.ID, t.LeaseEpoch)
	fresh, t, err := s.fresh(ctx, r, t, report.Epoch)
	if err != nil {
		return session.Answered(r, protocol.Directive{}, err)
	}
	if !fresh && t.State == trial.Running {
		return session.Answered(r, s.orMove(r, t, s.directive(r, t), nil), nil)
	}
	here := s.allocator.SiteOf(t.Worker, t.ID)
	known, err := r.Tuning().Known(ctx, s.truth, here)
	if err != nil {
		return protocol.Directive{}, err
	}
	tx := r.Begin()
	guidance := r.Tuning().Guide(known, t, report, here, tx.Now)
	tx.Machine, tx.Start = worker.Type, s.starting(r, t, tx.Now)
	if t, err = tx.Report(attested(t, report, fresh), report, fresh, guidance); err != nil {
		tx.Abandon()
		return protocol.Directive{}, err
	}
	directive := s.orMove(r, t, s.directive(r, t), tx)
	accepted := slices.Clone(tx.Change.Reports)
	tx.Then(func() {
		s.judged(tx)
		s.resize(r, t, report) // before those who wait for cores look again
		s.truth.Learn(guidance.Records)
		if fresh {
			s.took(ctx, r, t, report, accepted)
		}
		r.Observe(t, accepted)
		if t.State.Terminal() { // its search stopped it
			s.release(pool.Lease{Trial: t.ID, Epoch: t.LeaseEpoch})
		}
	})
	if err := s.sessions.Commit(ctx, tx, &directive); err != nil {
		return protocol.Directive{}, err
	}
	return directive, nil
}

// told is what the server keeps of the report: of a confidential study no profile, and a
// broker's word once for each lease; of others none.
func told(r *session.Session, t trial.Trial, report protocol.Report) protocol.Report {
	private := r.Study.Definition.Confidential != nil
	if private {
		report.Profile = nil
	}
	if !private || t.Attestation != nil && t.Attestation.Kept {
		report.Attestation = ""
	}
	return report
}

// attested is the trial that knows whether the report is kept with a broker's word.
func attested(t trial.Trial, report protocol.Report, kept bool) trial.Trial {
	if kept && report.Attestation != "" && t.Attestation != nil {
		next := *t.Attestation
		next.Kept = true
		t.Attestation = &next
	}
	return t
}

// resize tells the pool what the trial takes of its machine from now on.
func (s *leases) resize(r *session.Session, t trial.Trial, report protocol.Report) {
	memory := int64(0)
	if report.Profile != nil {
		memory = int64(report.Profile.Host["tree.resident_bytes"])
	}
	r.Resident = max(r.Resident, memory)
	s.allocator.Resize(t.ID, t.LeaseEpoch, t.Worker, func(cores int) pool.Need { return r.Usage(t, cores, memory) })
}

// took counts what an epoch took that was accepted.
func (s *leases) took(ctx context.Context, r *session.Session, t trial.Trial, report protocol.Report, accepted []trial.Report) {
	s.approximation.Reported(t.ID, t.LeaseEpoch, report)
	for _, one := range accepted {
		used := pool.Spent{Joules: float64(one.Energy.Joules)}
		if one.Cost != nil {
			used.Cost = float64(one.Cost.Amount)
		}
		s.allocator.Spend(r.Owner(), used)
	}
	s.observeGPU(ctx, t, report.GPUUse, float64(report.Seconds-report.SetupSeconds)/t.FractionAt(t.Rung))
}

// fresh reports whether the epoch was never accepted: not at this rung, nor at
// one that this rung continues. The trial comes back as it is by then: only the
// store knows all reports, and those on their way to it are waited for.
func (s *leases) fresh(ctx context.Context, r *session.Session, t trial.Trial, epoch int) (bool, trial.Trial, error) {
	if epoch > t.LastEpoch {
		return true, t, nil
	}
	if epoch <= t.Inherited {
		return false, t, nil // its parent trained it
	}
	for before := -1; before != t.Epochs; t = r.Trials[t.Number] {
		before = t.Epochs
		if err := r.Wait(); err != nil {
			return false, t, err
		}
		if now := r.Trials[t.Number]; now.LeaseEpoch != t.LeaseEpoch || !now.State.Held() {
			return false, now, problem.New(problem.Unavailable, "trial %s became %s while this report was looked at: send it again", now.ID, now.State)
		}
	}
	reports, err := s.store.Reports(ctx, t.ID)
	if err != nil {
		return false, t, err
	}
	return !slices.ContainsFunc(reports, func(known trial.Report) bool {
		return known.Epoch == epoch && (known.Rung == t.Rung || !r.Ladder[t.Rung].FromScratch)
	}), t, nil
}

// CommitCheckpoint publishes an uploaded artifact as the trial's checkpoint.
// One that is older than what the trial would resume from changes nothing; one of
// bytes that the caller did not send is refused.
func (s *leases) CommitCheckpoint(ctx context.Context, id trial.ID, commitment protocol.CheckpointCommit) error {
	r, t, err := s.leased(ctx, id, commitment.LeaseEpoch)
	if err != nil {
		return err
	}
	defer r.Leave()
	if t.State.Terminal() {
		return session.Refusal(r, problem.New(problem.LeaseLost, "trial %s is %s: its checkpoint is no longer wanted", t.ID, t.State))
	}
	if commitment.Epoch > t.LastEpoch {
		return problem.WithFields("the checkpoint of trial "+string(t.ID)+" is not valid", []problem.Field{{Path: "epoch", Value: commitment.Epoch,
			Message: fmt.Sprintf("must be at most %d, the newest epoch reported: report an epoch before its checkpoint", t.LastEpoch)}})
	}
	if t.ResumesAt(r.Ladder[t.Rung]) && commitment.Epoch < t.Checkpoint.Epoch {
		return session.Refusal(r, nil)
	}
	if err := s.CheckUpload(ctx, t, commitment, r.Study.Definition.Encryption != nil); err != nil {
		return err
	}
	tx := r.Begin()
	if t.Checkpoint != nil && t.Checkpoint.Artifact != commitment.Artifact {
		t.Earlier = t.Checkpoint
	}
	t.Checkpoint = &trial.Checkpoint{Epoch: commitment.Epoch, Rung: t.Rung, Artifact: commitment.Artifact, Bytes: commitment.Bytes}
	tx.Log(journal.Event{Kind: journal.Checkpointed, Trial: t.ID, State: string(t.State), Worker: t.Worker}, t.Checkpoint)
	tx.Stage(t)
	tx.Then(func() { s.allocator.Saved(t.ID, t.LeaseEpoch) })
	return s.sessions.Commit(ctx, tx, nil)
}

// KeepSamples keeps what was sampled of the trial under its lease, an artifact that is
// stored. Samples that do not last longer than those that it has change nothing.
func (s *leases) KeepSamples(ctx context.Context, id trial.ID, samples trial.Samples) error {
	r, t, err := s.leased(ctx, id, samples.LeaseEpoch)
	if err != nil {
		return err
	}
	defer r.Leave()
	if r.Study.Definition.Confidential != nil {
		return problem.New(problem.Invalid, "study %s is confidential and keeps no samples", r.Study.Definition.Name)
	}
	samples.Rung, samples.Worker = t.Rung, t.Worker
	t, longer := t.WithSamples(samples)
	if !longer {
		return session.Refusal(r, nil)
	}
	tx := r.Begin()
	tx.Stage(t)
	return s.sessions.Commit(ctx, tx, nil)
}

// The files that a study's trials log have at most so many bytes together, their models
// aside.
const (
	mostOfStudy  = 1 << 30
	mostOfModels = 8 << 30
)

// LogArtifact keeps a file of the trial under its lease, an artifact that the caller sent.
// The same one again changes nothing; another under its name replaces it.
func (s *leases) LogArtifact(ctx context.Context, id trial.ID, log protocol.ArtifactLog) error {
	r, t, err := s.leased(ctx, id, log.LeaseEpoch)
	if err != nil {
		return err
	}
	defer r.Leave()
	if t.State.Terminal() {
		return session.Refusal(r, problem.New(problem.LeaseLost, "trial %s is %s: its artifacts are no longer wanted", t.ID, t.State))
	}
	if r.Study.Definition.Encryption != nil {
		return problem.New(problem.Invalid, "study %s is encrypted and keeps no artifacts, which the server could read: save the file with the checkpoint", r.Study.Definition.Name)
	}
	if err := trial.CheckArtifact(log.Name, log.Bytes); err != nil {
		return err
	}
	if err := s.CheckLogged(ctx, log); err != nil {
		return err
	}
	tx := r.Begin()
	t, fresh, err := t.WithArtifact(trial.Artifact{
		Name: log.Name, Epoch: t.LastEpoch, Rung: t.Rung, LeaseEpoch: t.LeaseEpoch, SHA256: log.Artifact, Bytes: log.Bytes, At: tx.Now,
	})
	total, most := int64(0), int64(mostOfStudy)
	if trial.IsModel(log.Name) {
		most = mostOfModels
	}
	for _, one := range r.Trials {
		if one.Number == t.Number {
			one = t
		}
		for _, logged := range one.Logged {
			if trial.IsModel(logged.Name) == trial.IsModel(log.Name) {
				total += logged.Bytes
			}
		}
	}
	if err == nil && fresh && total > most {
		err = problem.New(problem.Invalid, "the artifacts of study %s would have %d bytes together, and may have %d: log smaller ones, or fewer", r.Study.Definition.Name, total, most)
	}
	if err != nil || !fresh {
		tx.Abandon()
		return session.Refusal(r, err)
	}
	tx.Stage(t)
	return s.sessions.Commit(ctx, tx, nil)
}

// AppendLog adds to the trial's log.
func (s *leases) AppendLog(ctx context.Context, id trial.ID, chunk protocol.LogChunk) error {
	r, t, err := s.sessions.LockedTrial(ctx, id)
	if err != nil {
		return err
	}
	terms := r.Study.Definition.Confidential
	r.Unlock()
	if terms != nil && !terms.Keeps(chunk.Text) {
		return problem.New(problem.Invalid, "log_refused: the study is confidential and keeps no output (confidential.log: %s)", terms.Log)
	}
	if t.LeaseEpoch != chunk.LeaseEpoch {
		return problem.New(problem.LeaseLost, "trial %s is under lease %d, not %d", t.ID, t.LeaseEpoch, chunk.LeaseEpoch)
	}
	return s.logs.AppendLog(ctx, id, chunk.LeaseEpoch, chunk.Offset, chunk.Text)
}
