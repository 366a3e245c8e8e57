package trial

import "github.com/tandem-tune/tandem/study/space"

// Phase is why a trial runs with its system configuration.
type Phase string

// The phases. Where the evidence of a configuration is another run's, the phase
// names the nearest evidence that there was.
const (
	// Default: nothing is known of the workload yet.
	Default Phase = "default"
	// Machine: the configuration was best for most workloads on this type of
	// machine. It is a first guess.
	Machine Phase = "machine"
	// Similar: it was best for a workload with a similar profile (Rocha, section
	// 6.3.4). Script: for runs of the same command. Study: for other trials of
	// this study.
	Similar Phase = "similar"
	Script  Phase = "script"
	Study   Phase = "study"
	// Probing: the configuration is being measured (section 6.3.6).
	Probing Phase = "probing"
	// Decided: enough was measured in this run to know its best.
	Decided Phase = "decided"
	// Control: the default runs for one epoch, so that what is saved against it is
	// measured.
	Control Phase = "control"
	// Reused is in records of earlier versions only: the best of most workloads,
	// or of a similar one.
	Reused Phase = "reused"
)

// Phases lists the phases in the order of their evidence, the weakest first.
func Phases() []Phase {
	return []Phase{Default, Machine, Reused, Similar, Script, Study, Probing, Decided, Control}
}

// Setting is the system configuration a trial is to run with, and why.
type Setting struct {
	Configuration map[string]space.Value `json:"configuration"`
	Phase         Phase                  `json:"phase" enum:"default,machine,similar,script,study,probing,decided,control,reused"`
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
	// Ignored are knobs that the running command was told to change and did not: they stay
	// as they are until it is started again.
	Ignored []string `json:"ignored,omitempty"`
	// AwaitsControl says that no other trial starts on the machine until the trial has
	// run the default there alone.
	AwaitsControl bool `json:"awaits_control,omitempty"`
}

// Saving is what the system configuration saved against the default one: an amount
// with its 95% interval. It counts only epochs of which the difference was measured
// and is not zero: where the interval holds zero, there is no saving. It is negative
// where more was used, as by probing.
type Saving struct {
	// Seconds are of the whole machine: a training that leaves half of the cores
	// to another one uses half of them.
	Seconds Float `json:"seconds"`
	// Joules are as the worker measures or estimates energy.
	Joules Float `json:"joules"`
	// SecondsLow and SecondsHigh, JoulesLow and JoulesHigh are the bounds. Those of
	// sums are the sums of bounds: epochs under one configuration err alike. They are
	// nil in records of earlier versions, whose amounts were estimates.
	SecondsLow  *Float `json:"seconds_low,omitempty"`
	SecondsHigh *Float `json:"seconds_high,omitempty"`
	JoulesLow   *Float `json:"joules_low,omitempty"`
	JoulesHigh  *Float `json:"joules_high,omitempty"`
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
	return &Saving{
		Seconds: s.Seconds + other.Seconds, Joules: s.Joules + other.Joules,
		SecondsLow: plus(s.SecondsLow, other.SecondsLow), SecondsHigh: plus(s.SecondsHigh, other.SecondsHigh),
		JoulesLow: plus(s.JoulesLow, other.JoulesLow), JoulesHigh: plus(s.JoulesHigh, other.JoulesHigh),
	}
}

// Times is the saving of so many times as much.
func (s Saving) Times(factor Float) *Saving {
	scaled := func(bound *Float) *Float {
		if bound == nil {
			return nil
		}
		return new(*bound * factor)
	}
	return &Saving{Seconds: s.Seconds * factor, Joules: s.Joules * factor,
		SecondsLow: scaled(s.SecondsLow), SecondsHigh: scaled(s.SecondsHigh), JoulesLow: scaled(s.JoulesLow), JoulesHigh: scaled(s.JoulesHigh)}
}

// plus adds bounds; a sum with an amount that has none has none.
func plus(a, b *Float) *Float {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}
