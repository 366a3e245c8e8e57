package dopeml

import "math"

// Measure is one of the quantities that are measured in a run and predicted
// for the next.
type Measure int

// The measures: the four of DOPE-ML (section 4.1.3), and what users judge by.
const (
	// CPUUtilization is the busy share of the backend's cores, 0 to 1.
	CPUUtilization Measure = iota
	// GPUUtilization is the busy share of its GPUs, 0 to 1.
	GPUUtilization
	// MemoryBytes is the most main memory the deployment used.
	MemoryBytes
	// GPUMemoryBytes is the most memory it used on a GPU.
	GPUMemoryBytes
	// LatencySeconds is what one batch takes, without waiting.
	LatencySeconds
	// JoulesPerInference is the energy of one inference of one sample.
	JoulesPerInference
	// Accuracy of the model on this backend, 0 to 1.
	Accuracy

	measures
)

// String is the name of the measure in files and outputs.
func (m Measure) String() string {
	return [...]string{"cpu_utilization", "gpu_utilization", "memory_bytes", "gpu_memory_bytes",
		"latency_seconds", "joules_per_inference", "accuracy"}[m]
}

// Values has a value for each measure, NaN where there is none.
type Values [measures]float64

// unknown is what nobody measured.
func unknown() Values {
	var values Values
	for m := range values {
		values[m] = math.NaN()
	}
	return values
}

// mebibyte is below what any deployment uses: it only keeps the logarithm of
// no memory finite.
const mebibyte = 1 << 20

// logarithmic says that errors of the measure are relative: it is predicted as
// a logarithm.
func (m Measure) logarithmic() bool {
	return m == MemoryBytes || m == GPUMemoryBytes || m == LatencySeconds || m == JoulesPerInference
}

func (m Measure) offset() float64 {
	if m == MemoryBytes || m == GPUMemoryBytes {
		return mebibyte
	}
	return 0
}

// encode is the value as predictors see it.
func (m Measure) encode(value float64) float64 {
	if m.logarithmic() {
		return math.Log(value + m.offset())
	}
	return value
}

// decode is the inverse of encode, within what the measure can be.
func (m Measure) decode(code float64) float64 {
	if m.logarithmic() {
		return max(0, math.Exp(min(code, 60))-m.offset())
	}
	return min(max(code, 0), 1)
}

// Band is an estimate and how far it may be off: one standard deviation.
type Band struct {
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"`
}

// band decodes a prediction.
func (m Measure) band(mean, deviation float64) Band {
	return Band{Mean: m.decode(mean), Deviation: (m.decode(mean+deviation) - m.decode(mean-deviation)) / 2}
}
