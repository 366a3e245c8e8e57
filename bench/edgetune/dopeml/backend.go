// Package dopeml is the chooser of backends of DOPE-ML, with which the server's is compared.
//
// A backend is where a model can be deployed: cores, memory, GPUs, and whatever
// runtime is on it. Given the features of a model, a pattern of requests and
// what the user wants most, a regressor predicts for each backend what a run
// would take, and the best backend by the user's priorities is chosen among
// those that keep the hard limits. The regressor learns from every run (Patidar
// and others, DOPE-ML, sections 4 and 4.2), so that predictions and choices get
// better with use.
//
// The package is pure and deterministic: a choice follows from the settings,
// the seed and the runs that were learned.
package dopeml

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Profile is what is known of a backend before anything ran on it.
type Profile struct {
	// Name is how runs refer to it.
	Name string `json:"name" yaml:"name"`
	// Cores is how many CPU cores a deployment gets.
	Cores float64 `json:"cores" yaml:"cores"`
	// MemoryBytes is the limit of main memory.
	MemoryBytes float64 `json:"memory_bytes" yaml:"memory_bytes"`
	// GPUs is how many, and GPUMemoryBytes the memory of each; 0 for none.
	GPUs           float64 `json:"gpus" yaml:"gpus"`
	GPUMemoryBytes float64 `json:"gpu_memory_bytes" yaml:"gpu_memory_bytes"`
	// CostPerHour is in any one currency, for a deployment that is up; 0 when
	// not known.
	CostPerHour float64 `json:"cost_per_hour" yaml:"cost_per_hour"`
	// IdleWatts and LoadWatts are the power of the backend when nothing runs and
	// when it is busy; 0 when not known.
	IdleWatts float64 `json:"idle_watts" yaml:"idle_watts"`
	LoadWatts float64 `json:"load_watts" yaml:"load_watts"`
	// AccuracyLoss is what the backend's runtime takes off a model's accuracy
	// (by quantizing, say), for models whose accuracy here nobody measured.
	AccuracyLoss float64 `json:"accuracy_loss" yaml:"accuracy_loss"`
}

const gibibyte = 1 << 30

// Defaults are the four backends of DOPE-ML (table 1), with the upper end of
// the memory it gives as a range. It says nothing of cost and power.
func Defaults() []Profile {
	return []Profile{
		{Name: "B1", Cores: 2, MemoryBytes: 4 * gibibyte},
		{Name: "B2", Cores: 4, MemoryBytes: 6 * gibibyte},
		{Name: "B3", Cores: 2, MemoryBytes: 4 * gibibyte, GPUs: 1, GPUMemoryBytes: 11 * gibibyte},
		{Name: "B4", Cores: 4, MemoryBytes: 6 * gibibyte, GPUs: 1, GPUMemoryBytes: 11 * gibibyte},
	}
}

// maxBackends bounds how many backends are compared.
const maxBackends = 64

// Check refuses profiles that cannot be compared: every fault with its field.
func Check(profiles []Profile) error {
	var faults []problem.Field
	fault := func(i int, field string, value any, message string) {
		faults = append(faults, problem.Field{Path: fmt.Sprintf("backends[%d].%s", i, field), Message: message, Value: value})
	}
	if len(profiles) == 0 || len(profiles) > maxBackends {
		return problem.New(problem.Invalid, "there are %d backends; give 1 to %d", len(profiles), maxBackends)
	}
	seen := map[string]bool{}
	for i, one := range profiles {
		if one.Name == "" || len(one.Name) > maxName {
			fault(i, "name", one.Name, fmt.Sprintf("a name of 1 to %d bytes is needed", maxName))
		}
		if seen[one.Name] {
			fault(i, "name", one.Name, "another backend has this name")
		}
		seen[one.Name] = true
		if !(one.Cores > 0 && one.Cores <= 1e6) {
			fault(i, "cores", one.Cores, "must be above 0 and at most 1000000")
		}
		if !(one.MemoryBytes > 0 && one.MemoryBytes <= maxBytes) {
			fault(i, "memory_bytes", one.MemoryBytes, "must be above 0 and at most 1e15")
		}
		if (one.GPUs > 0) != (one.GPUMemoryBytes > 0) {
			fault(i, "gpu_memory_bytes", one.GPUMemoryBytes, "must be given with gpus, and only then")
		}
		for _, optional := range []struct {
			field string
			value float64
		}{{"gpus", one.GPUs}, {"gpu_memory_bytes", one.GPUMemoryBytes}, {"cost_per_hour", one.CostPerHour},
			{"idle_watts", one.IdleWatts}, {"load_watts", one.LoadWatts}, {"accuracy_loss", one.AccuracyLoss}} {
			if !(optional.value >= 0 && optional.value <= maxBytes) {
				fault(i, optional.field, optional.value, "must be 0 or more, and at most 1e15")
			}
		}
		if one.LoadWatts > 0 && one.IdleWatts > one.LoadWatts {
			fault(i, "idle_watts", one.IdleWatts, "must not be above load_watts")
		}
	}
	if len(faults) > 0 {
		return problem.WithFields("the backends cannot be compared", faults)
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
