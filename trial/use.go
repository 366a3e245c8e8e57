package trial

import (
	"maps"

	"github.com/tandem-tune/tandem/study/space"
)

// SystemUse is what epochs under one system configuration, in one phase, came to.
type SystemUse struct {
	Configuration map[string]space.Value `json:"configuration"`
	// Phase is empty where the epochs did not run with what they were meant to.
	Phase   Phase `json:"phase,omitempty" enum:"default,machine,similar,script,study,probing,decided,control,reused"`
	Epochs  int   `json:"epochs"`
	Seconds Float `json:"seconds"`
	Joules  Float `json:"joules"`
	// Saved is against the default configuration; nil where a difference was
	// measured of none of the epochs.
	Saved *Saving `json:"saved,omitempty"`
}

// alike reports whether both are of the same configuration and phase.
func (u SystemUse) alike(other SystemUse) bool {
	return u.Phase == other.Phase && maps.Equal(u.Configuration, other.Configuration)
}

// Plus adds what other epochs came to.
func (u SystemUse) Plus(other SystemUse) SystemUse {
	u.Epochs += other.Epochs
	u.Seconds += other.Seconds
	u.Joules += other.Joules
	u.Saved = u.Saved.Plus(other.Saved)
	return u
}

// Using returns the list with the report's epoch added, and leaves the list as it
// is: a new entry comes last.
func Using(list []SystemUse, report Report) []SystemUse {
	one := SystemUse{Configuration: report.System, Phase: report.SystemPhase, Epochs: 1, Seconds: report.Seconds, Joules: report.Energy.Joules, Saved: report.Saved}
	longer := make([]SystemUse, 0, len(list)+1)
	found := false
	for _, known := range list {
		if known.alike(one) {
			known, found = known.Plus(one), true
		}
		longer = append(longer, known)
	}
	if !found {
		longer = append(longer, one)
	}
	return longer
}
