package trial

import "time"

// KeyState is how far a lease of a confidential trial is with its key.
type KeyState string

// Its states.
const (
	Attesting     KeyState = "attesting"  // its worker asks a broker: nothing of the lease has started, and no clock of it runs
	KeyReleased   KeyState = "released"   // its worker says that it has it
	KeyRefused    KeyState = "refused"    // the broker released none
	KeyUnanswered KeyState = "unanswered" // the lease ended without a word of it
)

// Attestation is how far the newest lease of a confidential trial is with its key, as the
// worker says. What the broker signed of it is in the lease's first report.
type Attestation struct {
	State      KeyState   `json:"state" enum:"attesting,released,refused,unanswered"`
	LeaseEpoch LeaseEpoch `json:"lease_epoch"`
	Since      time.Time  `json:"since"`
	Code       string     `json:"code,omitempty" doc:"why the broker refused the key"`
	// Kept says that a report of the lease is kept with the broker's word.
	Kept bool `json:"kept,omitempty" doc:"a report of the lease is kept with what the broker signed"`
	// Released and Refused count over all leases.
	Released int `json:"released,omitempty" doc:"leases that got the key"`
	Refused  int `json:"refused,omitempty" doc:"leases that were given back as the broker refused it"`
}

// Attest is the trial whose new lease asks for its key.
func (t Trial) Attest(now time.Time) Trial {
	next := Attestation{State: Attesting, LeaseEpoch: t.LeaseEpoch, Since: now}
	if before := t.Attestation; before != nil {
		next.Released, next.Refused = before.Released, before.Refused
	}
	t.Attestation = &next
	return t
}

// Attesting reports whether its lease asks for its key.
func (t Trial) Attesting() bool {
	return t.State == Leased && t.Attestation != nil && t.Attestation.State == Attesting
}

// Keyed is the trial when that has come to this; any other trial is left as it is.
func (t Trial) Keyed(state KeyState, code string, now time.Time) Trial {
	if t.Attestation == nil || t.Attestation.State != Attesting {
		return t
	}
	next := *t.Attestation
	next.State, next.Code, next.Since = state, code, now
	switch state {
	case KeyReleased:
		next.Released++
	case KeyRefused:
		next.Refused++
	}
	t.Attestation = &next
	return t
}

// Settled is the trial in its new state, without what was so only in the one before. A
// script that reports has the key.
func (t Trial) Settled(now time.Time) Trial {
	t.Stalled = false
	switch t.State {
	case Leased:
		return t
	case Running:
		return t.Keyed(KeyReleased, "", now)
	}
	return t.Keyed(KeyUnanswered, "", now)
}
