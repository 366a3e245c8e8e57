package emulator

// Result is what a job found out.
type Result struct {
	// ModelBytes is the size of the file.
	ModelBytes int64 `json:"model_bytes"`
	// Cells are what was measured, in the order of the job. After a failure those
	// before it.
	Cells       []Measurement `json:"cells"`
	Environment Environment   `json:"environment"`
}

// Measurement is what one cell came to. Latencies are of one run of a whole batch.
type Measurement struct {
	Cell
	// CoreNumbers are the logical cores the threads ran on.
	CoreNumbers []int `json:"core_numbers"`
	// Inputs are the tensors the model was given.
	Inputs []Input `json:"inputs"`
	// Assumed says what was made up about the inputs.
	Assumed []string `json:"assumed,omitempty"`
	// LoadSeconds is how long it took to make the model ready to run.
	LoadSeconds float64 `json:"load_seconds"`
	// WarmUpRuns were discarded. WarmUpSettled says that the median of five had
	// stopped changing by then; else the time for it was up.
	WarmUpRuns    int  `json:"warm_up_runs"`
	WarmUpSettled bool `json:"warm_up_settled"`
	// Runs were measured, and took MeasuredSeconds together.
	Runs            int     `json:"runs"`
	MeasuredSeconds float64 `json:"measured_seconds"`
	Latency         Latency `json:"latency"`
	// Precise says that the confidence interval became as narrow as was asked;
	// else the time was up.
	Precise bool `json:"precise"`
	// SamplesPerSecond is the throughput of median runs, one after the other.
	SamplesPerSecond float64 `json:"samples_per_second"`
	// CPUSecondsPerRun is the CPU time of all threads, waiting ones too where they
	// wait by spinning.
	CPUSecondsPerRun float64 `json:"cpu_seconds_per_run"`
	// Preempted is how often another process took a core from this one.
	Preempted int64 `json:"preempted"`
	// JoulesPerSample is the mean power of all runs, by SamplesPerSecond, so that a
	// stall counts in neither. The power is obtained as EnergyMethod says: from a
	// meter, or "estimate: ..." with the assumption.
	JoulesPerSample float64 `json:"joules_per_sample"`
	EnergyMethod    string  `json:"energy_method"`
	// PeakBytes is the most memory the process had resident in this cell, and
	// PeakBeyondLibraryBytes what of it is beyond the loaded library.
	PeakBytes              int64 `json:"peak_bytes"`
	PeakBeyondLibraryBytes int64 `json:"peak_beyond_library_bytes"`
	// Frequency is what the cores ran at when the cell ended.
	Frequency Frequency `json:"frequency"`
}

// rate is SamplesPerSecond.
func (m *Measurement) rate() float64 { return float64(m.Batch) / m.Latency.P50 }

// spent tells the joules of all runs, in so many seconds.
func (m *Measurement) spent(joules, seconds float64) {
	m.JoulesPerSample = joules / max(seconds, m.MeasuredSeconds) * m.Latency.P50 / float64(max(m.Batch, 1))
}

// Latency is the distribution of the seconds of a run.
type Latency struct {
	// P50, P90 and P99 are percentiles by nearest rank: of fewer than 100 runs,
	// P99 is the slowest.
	P50  float64 `json:"p50_seconds"`
	P90  float64 `json:"p90_seconds"`
	P99  float64 `json:"p99_seconds"`
	Mean float64 `json:"mean_seconds"`
	Min  float64 `json:"min_seconds"`
	Max  float64 `json:"max_seconds"`
	// Deviation is the standard deviation of the runs; 0 of a single one.
	Deviation float64 `json:"deviation_seconds"`
	// MedianLow and MedianHigh are the 95% confidence interval of the median, from
	// the order of the runs alone. It takes them as independent.
	MedianLow  float64 `json:"median_low_seconds"`
	MedianHigh float64 `json:"median_high_seconds"`
}

// Input is a tensor that the model was given.
type Input struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Shape []int64 `json:"shape"`
}

// Environment is what the job ran on and in.
type Environment struct {
	// Runtime is the version of ONNX Runtime, Library the file it is in.
	Runtime string `json:"onnx_runtime"`
	Library string `json:"library"`
	// CPUModel is empty where the kernel does not tell; AllowedCores is how many
	// logical cores this process may use.
	CPUModel     string `json:"cpu_model"`
	AllowedCores int    `json:"allowed_cores"`
	// LibraryBytes is the memory that was resident before the model was made ready:
	// the library, this program and the file itself.
	LibraryBytes int64 `json:"library_bytes"`
	// MemoryLimitBytes is what the model could take beyond that.
	MemoryLimitBytes int64 `json:"memory_limit_bytes"`
	// Layers are what the model was locked in by.
	Layers []Layer `json:"layers"`
}

// Layer is one thing that keeps a model from the machine.
type Layer struct {
	Name   string `json:"name"`
	Active bool   `json:"active"`
	// Detail says what it forbids, or why it is not active.
	Detail string `json:"detail"`
}

// Frequency is what a range of cores run at. Reason says why it is not known.
type Frequency struct {
	Governor  string  `json:"governor,omitempty"`
	LowHertz  float64 `json:"low_hertz,omitempty"`
	HighHertz float64 `json:"high_hertz,omitempty"`
	Reason    string  `json:"reason,omitempty"`
}
