package trial

import "strings"

// InferenceCost is what an inference of a trial's model takes on one device with its
// best configuration.
type InferenceCost struct {
	// Architecture is the key of the model's graph without weights.
	Architecture string `json:"architecture"`
	// Device is where; Machine is the type of machine of the worker that trains.
	Device  string `json:"device,omitempty"`
	Machine string `json:"machine,omitempty"`
	// LatencySeconds are of one batch, the rest of one sample or of the process.
	LatencySeconds   Float `json:"latency_seconds"`
	BatchSize        int   `json:"batch_size"`
	SamplesPerSecond Float `json:"samples_per_second"`
	JoulesPerSample  Float `json:"joules_per_sample"`
	MemoryBytes      int64 `json:"memory_bytes"`
	// P99Seconds is the 99th percentile of waiting and inference under the study's
	// scenario; 0 where the device is overloaded, or there is none.
	P99Seconds Float `json:"p99_seconds,omitempty"`
	// The bands are what the latency and the joules may be; both ends are 0 where that
	// is not known, as in what earlier versions wrote.
	LatencyLowSeconds   Float `json:"latency_low_seconds,omitempty" doc:"what the latency may be at the least"`
	LatencyHighSeconds  Float `json:"latency_high_seconds,omitempty" doc:"what the latency may be at the most"`
	JoulesPerSampleLow  Float `json:"joules_per_sample_low,omitempty" doc:"what the joules may be at the least"`
	JoulesPerSampleHigh Float `json:"joules_per_sample_high,omitempty" doc:"what the joules may be at the most"`
	// Feasible says that it keeps to the constraints of the inference section.
	Feasible bool `json:"feasible"`
	// Method is "measured", or "estimate: ..." with what it stands on.
	Method string `json:"method"`
	// EnergyMethod is how the joules were obtained: a meter's name, or "estimate: ...",
	// which it may be where the latency was measured. Empty in what earlier versions
	// wrote: the joules are then as Method says.
	EnergyMethod string `json:"energy_method,omitempty"`
	// Runs is how many settings the architecture really ran in, anywhere.
	Runs int `json:"runs,omitempty"`
	// Failure says why there are no numbers.
	Failure string `json:"failure,omitempty"`
}

// Measured is the method of what really ran.
const Measured = "measured"

// Same reports whether both say the same; no number is as good as none.
func (c InferenceCost) Same(other InferenceCost) bool {
	if c.SamplesPerSecond.IsNaN() && other.SamplesPerSecond.IsNaN() {
		for _, one := range []*InferenceCost{&c, &other} {
			one.LatencySeconds, one.SamplesPerSecond, one.JoulesPerSample = 0, 0, 0
		}
	}
	return c == other
}

// Estimated reports whether its latency and throughput are estimates.
func (c InferenceCost) Estimated() bool { return c.Method != Measured }

// EnergyEstimated reports whether its joules are an estimate.
func (c InferenceCost) EnergyEstimated() bool {
	if c.EnergyMethod == "" {
		return c.Estimated()
	}
	return strings.HasPrefix(c.EnergyMethod, "estimate")
}
