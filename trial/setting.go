package trial

import "github.com/tandem-tune/tandem/study/space"

// Phase is why a trial runs with its system configuration.
type Phase string

// The phases.
const (
	// Default: nothing is known of the workload yet.
	Default Phase = "default"
	// Probing: the configuration is being measured (Rocha, section 6.3.6).
	Probing Phase = "probing"
	// Reused: a similar workload was measured before, and this was its best
	// configuration (section 6.3.4).
	Reused Phase = "reused"
	// Decided: enough was measured of this workload to know its best.
	Decided Phase = "decided"
)

// Phases lists the phases in the order in which a workload goes through them.
func Phases() []Phase { return []Phase{Default, Probing, Reused, Decided} }

// Setting is the system configuration a trial is to run with, and why.
type Setting struct {
	Configuration map[string]space.Value `json:"configuration"`
	Phase         Phase                  `json:"phase" enum:"default,probing,reused,decided"`
	// Why is a sentence for people.
	Why string `json:"why"`
	// Workload names the group of known workloads that the trial's profile is
	// similar to; empty where it is similar to none. Confidence is from 0 at the
	// edge of what is accepted to 1 at its centre.
	Workload   string `json:"workload,omitempty"`
	Confidence Float  `json:"confidence,omitempty" minimum:"0" maximum:"1"`
	// Alone is what is best by what is known so far where nobody else uses the
	// machine; nil where nothing was compared. While a study has more trials to
	// run than fit, another one may be better for it.
	Alone map[string]space.Value `json:"alone,omitempty"`
	// Drifts counts how often the profile has changed under the present lease so
	// much that the trial was looked up anew.
	Drifts int `json:"drifts,omitempty"`
}

// Saving is what the system configuration saved against the default one: an
// estimate, since the same epoch is never run with both. It is negative where
// probing cost more than it gained.
type Saving struct {
	// Seconds are of the whole machine: a training that leaves half of the cores
	// to another one uses half of them.
	Seconds Float `json:"seconds"`
	// Joules are as the worker measures or estimates energy.
	Joules Float `json:"joules"`
}

// Plus adds another saving; nil counts as none.
func (s *Saving) Plus(other *Saving) *Saving {
	switch {
	case other == nil:
		return s
	case s == nil:
		sum := *other
		return &sum
	}
	return &Saving{Seconds: s.Seconds + other.Seconds, Joules: s.Joules + other.Joules}
}
