package trial

import "github.com/tandem-tune/tandem/internal/problem"

// State is where a trial is in its life.
type State string

// The states.
const (
	Queued    State = "queued"    // waits for a worker
	Leased    State = "leased"    // a worker has it, the command has not reported yet
	Running   State = "running"   // it reports
	Paused    State = "paused"    // measured at its rung; may be promoted
	Completed State = "completed" // measured at the top rung
	Pruned    State = "pruned"    // it lost: stopped early, or the study ended and it was never promoted further
	Failed    State = "failed"    // the user's command failed, and no retry is left
	Lost      State = "lost"      // the infrastructure lost it too often
	Cancelled State = "cancelled" // the study ended before it was tried, or the user stopped it
)

// States lists every state, in the order of a trial's life.
func States() []State {
	return []State{Queued, Leased, Running, Paused, Completed, Pruned, Failed, Lost, Cancelled}
}

// next holds the arrows. Lost is passed through on the way back to Queued, and
// kept only when the cap on losses is reached.
func (s State) next() []State {
	switch s {
	case Queued:
		return []State{Leased, Pruned, Cancelled}
	case Leased, Running:
		return []State{Running, Queued, Paused, Completed, Pruned, Failed, Lost, Cancelled}
	case Paused:
		// The next rung's budget may be spent already, when it is an amount of time
		// or energy: then the trial is measured there without a lease.
		return []State{Queued, Leased, Paused, Completed, Pruned, Cancelled}
	case Lost:
		return []State{Queued}
	case Pruned, Cancelled: // its study was extended behind its end
		return []State{Queued, Paused}
	default:
		return nil
	}
}

// Terminal reports whether nothing further happens to the trial, unless its study is
// extended behind its end.
func (s State) Terminal() bool {
	switch s {
	case Completed, Pruned, Failed, Lost, Cancelled:
		return true
	}
	return false
}

// Held reports whether a worker holds the trial's lease.
func (s State) Held() bool { return s == Leased || s == Running }

// To returns the trial in the next state, or a conflict if no arrow leads there.
func (t Trial) To(next State, reason string) (Trial, error) {
	for _, allowed := range t.State.next() {
		if allowed == next {
			t.State, t.Reason = next, reason
			return t, nil
		}
	}
	return t, problem.New(problem.Conflict, "trial %s is %s and cannot become %s", t.ID, t.State, next)
}
