// Package tuning answers: with which batch, cores and clocks does a
// device serve a model best?
//
// It searches inference hyperparameters and system parameters together (Rocha,
// section 7.3.4) for an objective under constraints, by trying all configurations
// out: an estimate takes some 20 microseconds, less than a method takes to propose one. Energy is searched like latency, not derived from it: the fastest
// configuration is often not the most economical.
//
// The package is pure: the same settings and outcomes give the same answer.
package tuning

import "math"

// Configuration is how a device runs a model. What is zero is left as it is.
type Configuration struct {
	// BatchSize is how many samples are inferred together, at least 1.
	BatchSize int `json:"batch_size"`
	Cores     int `json:"cores,omitempty"`
	// CPUHertz is the clock of the cores.
	CPUHertz float64 `json:"cpu_hertz,omitempty"`
	// Precision is how the model's numbers are stored; the search does not change it.
	Precision string `json:"precision,omitempty"`
	// Provider is the execution provider, where several are compared; likewise.
	Provider string `json:"provider,omitempty"`
}

// Outcome is what a configuration costs.
type Outcome struct {
	// LatencySeconds is of one batch. Low and High are its band: both are 0 where
	// it is not known.
	LatencySeconds     float64 `json:"latency_seconds"`
	LatencySecondsLow  float64 `json:"latency_seconds_low,omitempty"`
	LatencySecondsHigh float64 `json:"latency_seconds_high,omitempty"`
	// Joules are of one batch, 0 where they are not known.
	Joules     float64 `json:"joules,omitempty"`
	JoulesLow  float64 `json:"joules_low,omitempty"`
	JoulesHigh float64 `json:"joules_high,omitempty"`
	// MemoryBytes is what the model took, 0 where it is not known.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	// Measured says that it really ran; else it is an estimate.
	Measured bool `json:"measured,omitempty"`
}

// Evaluate tries a configuration out. An error makes that configuration
// infeasible, as when it runs out of memory; the search goes on.
type Evaluate func(Configuration) (Outcome, error)

// Evaluation is one configuration that was tried.
type Evaluation struct {
	Configuration Configuration `json:"configuration"`
	Outcome       Outcome       `json:"outcome"`
	// Failure says why there is no outcome.
	Failure string `json:"failure,omitempty"`
	// Violation is by how much the constraints are missed: the sum of the
	// logarithms of the factors; 0 where all hold, +Inf without an outcome.
	Violation float64 `json:"-"`
	// score is what is minimized.
	score float64
}

// Feasible reports whether there is an outcome that keeps to all constraints.
func (e Evaluation) Feasible() bool { return e.Failure == "" && e.Violation == 0 }

// Hoped is the evaluation if it took what the good end of its band says.
func Hoped(settings Settings, e Evaluation) Evaluation {
	o := e.Outcome
	if o.LatencySecondsLow > 0 {
		o.LatencySeconds = o.LatencySecondsLow
	}
	if o.JoulesLow > 0 {
		o.Joules = o.JoulesLow
	}
	return settings.judge(e.Configuration, o, nil)
}

// Better orders evaluations: the feasible first, by score, then by violation.
func (e Evaluation) Better(than Evaluation) bool {
	switch {
	case e.Violation != than.Violation:
		return e.Violation < than.Violation
	case math.IsInf(e.Violation, 1):
		return false
	}
	return e.score < than.score
}
