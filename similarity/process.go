package similarity

import (
	"maps"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/system"
)

// Process is what a run's process has from its earlier epochs: code that it loaded when a
// knob's value was new to it (see system.Knob.Loads), and memory that it keeps since.
type Process struct {
	// Loaded are the choices of those knobs that it has trained with. Loading says that
	// the newest epoch loaded one of them.
	Loaded  []system.Configuration `json:"loaded" maxItems:"256"`
	Loading bool                   `json:"loading,omitempty"`
	// Memory is what its newest profile says of memory, in bytes by feature, without what
	// it has Grown by since its first choice.
	Memory map[string]float64 `json:"memory,omitempty"`
	Grown  map[string]float64 `json:"grown,omitempty"`
}

// Holds reports whether the code is loaded, which is a choice of the knobs that load some;
// a nil process is one that has not begun.
func (p *Process) Holds(code system.Configuration) bool {
	return len(code) == 0 || p != nil && slices.ContainsFunc(p.Loaded, code.Equal)
}

// Trained is the process after an epoch with the code, and the features of its profile as
// if the process had loaded nothing but its first code. They are nil where the epoch
// itself loaded code.
func (p *Process) Trained(code system.Configuration, features map[string]float64) (*Process, map[string]float64) {
	next := &Process{}
	if p != nil {
		*next = *p
	}
	if !p.Holds(code) {
		next.Loaded, next.Loading = append(slices.Clone(next.Loaded), code), true
		return next, nil
	}
	if features == nil {
		return next, nil
	}
	bytes := memoryOf(features)
	if next.Loading && next.Memory != nil { // what it takes more than before it keeps
		grown := maps.Clone(bytes)
		for name := range grown {
			grown[name] = max(0, bytes[name]-next.Memory[name])
		}
		next.Grown = grown
	}
	features, next.Loading, next.Memory = maps.Clone(features), false, map[string]float64{}
	for name, value := range bytes {
		next.Memory[name] = max(0, value-next.Grown[name])
		store(features, name, next.Memory[name])
	}
	return next, features
}

// memoryOf are the features that tell of memory, in bytes.
func memoryOf(features map[string]float64) map[string]float64 {
	bytes := map[string]float64{}
	for _, name := range []string{fileFeature, ownFeature, "resident_bytes", "gpu.memory_used_bytes"} {
		if value, has := features[name]; has && finite(value) {
			bytes[name] = ruleFor(name).soft * math.Expm1(value)
		}
	}
	return bytes
}
