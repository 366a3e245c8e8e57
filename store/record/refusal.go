package record

import (
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

// NoStudy says that no study has the id or name.
func NoStudy(ref string) error {
	return problem.New(problem.NotFound, "there is no study %q", ref)
}

// NoTrial says that no trial has the id.
func NoTrial(id trial.ID) error {
	return problem.New(problem.NotFound, "there is no trial %q", id)
}

// NoSnapshot says that the study's search was never stored.
func NoSnapshot(study string) error {
	return problem.New(problem.NotFound, "study %q has no snapshot", study)
}

// NoArchitecture says that nothing is known of an architecture with the key.
func NoArchitecture(key string) error {
	return problem.New(problem.NotFound, "there is no architecture %q", key)
}

// NoReceipt says that no answer is stored under the key.
func NoReceipt(key string) error {
	return problem.New(problem.NotFound, "no answer is stored under the Idempotency-Key %q", key)
}

// NoToken says that no token has the id.
func NoToken(id string) error {
	return problem.New(problem.NotFound, "there is no token %q", id)
}

// StudyTaken says that the study's name or id belongs to another study.
func StudyTaken(s journal.Study) error {
	return problem.New(problem.Conflict,
		"there is a study named %q (or with the id %q) already: choose another name, or delete that study", s.Reference(), s.ID)
}

// TrialTaken says that the trial's id or number in its study is taken.
func TrialTaken(t trial.Trial) error {
	return problem.New(problem.Conflict, "trial %q (number %d of its study) exists already", t.ID, t.Number)
}

// SequenceTaken says that the study's log has an event with the sequence.
func SequenceTaken(e journal.Event) error {
	return problem.New(problem.Conflict, "event %d of study %q exists already: another writer was faster", e.Sequence, e.Study)
}

// KeyTaken says that an answer is stored under the Idempotency-Key.
func KeyTaken(key string) error {
	return problem.New(problem.Conflict, "an answer is stored under the Idempotency-Key %q already", key)
}

// TokenTaken says that a token has the id.
func TokenTaken(id string) error {
	return problem.New(problem.Conflict, "there is a token %q already", id)
}

// TokenBound says that the token belongs to another machine.
func TokenBound(id, worker string) error {
	return problem.New(problem.Conflict, "token %q belongs to the worker %q", id, worker)
}

// GuardBroken says that the trial is no longer what the guard demands.
func GuardBroken(id trial.ID, guard journal.Guard) error {
	return problem.New(problem.LeaseLost, "trial %q is no longer %s under lease %d", id, guard.State, guard.LeaseEpoch)
}

// LogClosed says that the lease a log was written under is not the trial's.
func LogClosed(id trial.ID, epoch trial.LeaseEpoch) error {
	return problem.New(problem.LeaseLost, "trial %q is not under lease %d", id, epoch)
}

// NotBehind says that the study's newest event is not the one that a change
// was decided on.
func NotBehind(p journal.Position, newest int64) error {
	return problem.New(problem.Unavailable, "study %q is at event %d, not at event %d any more: what this was decided on was not stored; ask again",
		p.Study, newest, p.Sequence)
}

// Closed says that the store takes nothing any more.
func Closed() error {
	return problem.New(problem.Unavailable, "the store is closed: the server is stopping or starting")
}

// GaveUp says that the caller's context ended before the store was asked.
func GaveUp(err error) error {
	return problem.New(problem.Unavailable, "the caller gave up: %w", err)
}
