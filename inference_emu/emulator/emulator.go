// Package emulator answers: how long does this model really take here, within
// limits?
//
// [Run] has ONNX Runtime infer with a model in a process of its own, once and
// again with each batch size and number of threads, and tells the latency with
// its percentiles, the throughput, the memory and the joules of a sample (Rocha,
// section 7.3.4, the inference server).
//
// The model is a file from somebody else, hostile until proven otherwise. So the
// process that reads it ([Process]) has locked itself in before: it can open no
// file and no connection, start nothing, and take no more memory and time than it
// was given. Whatever the file does to it, what comes back is a reason. A process
// that was taken over can still lie about its own measurements, and do nothing
// else.
package emulator

import (
	"cmp"
	"os"
	"time"

	"github.com/tandem-tune/tandem/profiler"
)

// Job is a model to run, and how.
type Job struct {
	// Model is an ONNX file. The process gets it for reading only.
	Model *os.File
	// Cells are the settings to measure, one after the other in one process.
	Cells []Cell
	// Inputs say what the model leaves open.
	Inputs Inputs
	// Limits are what the process may take; zero values mean the defaults.
	Limits Limits
	// Precision is how exactly to measure; zero values mean the defaults.
	Precision Precision
	// Library is the path of ONNX Runtime's shared library, as [onnxruntime.Find] finds it.
	Library string
	// WattsPerCore is the power of a busy core, for the estimate of energy where
	// nothing meters it; 0: the profiler's default.
	WattsPerCore float64
	// Meter is a power meter of the whole machine, whose joules count instead; nil: none.
	Meter profiler.External
	// Progress is told each measurement as it is done, if it is not nil.
	Progress func(Measurement)
}

// Subcommand are the arguments with which [Run] starts its own program again. The
// program must call [Process] when it is given them.
func Subcommand() []string { return []string{"edge", "emulation-process"} }

// Cell is one setting to measure.
type Cell struct {
	// Batch is how many samples are inferred at once, from 1 to [MaxBatch].
	Batch int `json:"batch"`
	// Threads work on one operator together; operators run one after the other.
	Threads int `json:"threads"`
	// Cores is on how many logical cores the threads run; 0: one for each.
	Cores int `json:"cores,omitempty"`
	// Provider is one of [emu.Providers]; empty: the first.
	Provider string `json:"provider,omitempty"`
}

// The bounds of a job.
const (
	MaxBatch   = 100
	MaxThreads = 256
	MaxCells   = 1000
)

// Inputs say what a model's declared inputs leave open.
type Inputs struct {
	// BatchDimension is the name of the dimension that is the batch. Empty: one
	// named N or with "batch" in its name, else an open first dimension.
	BatchDimension string `json:"batch_dimension,omitempty"`
	// Dimensions are the sizes of other open dimensions, by name, or by
	// "input:axis", with axes from 0. Those not given are 1.
	Dimensions map[string]int64 `json:"dimensions,omitempty"`
	// IntegersBelow bounds integers that are made up: they are from 0 to one
	// less. 0 means 2; a model with a table to look up in takes its length.
	IntegersBelow int64 `json:"integers_below,omitempty"`
}

// Limits are what the process may take. What is 0 is at its default.
type Limits struct {
	// MemoryBytes is what the model may take beyond the loaded library: weights,
	// activations and work space.
	MemoryBytes int64 `json:"memory_bytes"`
	// ModelBytes is how large the file may be.
	ModelBytes int64 `json:"model_bytes"`
	// Wall is how long the whole job may take.
	Wall time.Duration `json:"-"`
}

// Precision is how exactly to measure. What is 0 is at its default.
type Precision struct {
	// RelativeWidth is how wide the 95% confidence interval of the median may be
	// to either side, as a part of the median.
	RelativeWidth float64 `json:"relative_width"`
	// MinRuns is how many runs are measured at least.
	MinRuns int `json:"min_runs"`
	// Seconds is how long a cell is measured at most, after the warm-up.
	Seconds float64 `json:"seconds"`
	// LeastSeconds are measured at least, unless Seconds are fewer: over less, energy is not
	// told well.
	LeastSeconds float64 `json:"least_seconds,omitempty"`
}

// The defaults of [Limits] and [Precision].
const (
	DefaultMemoryBytes   = 2 << 30
	DefaultModelBytes    = 2 << 30
	DefaultRelativeWidth = 0.05
	DefaultMinRuns       = 10
	DefaultSeconds       = 10.0
	// leastSeconds are measured at least, meteredSeconds with a meter of the machine, which is
	// read once a second.
	leastSeconds   = 0.25
	meteredSeconds = 3.0
	// MaxRuns is how many runs are measured at most.
	MaxRuns = 200_000
)

func (j *Job) setDefaults() {
	j.Limits.MemoryBytes = cmp.Or(j.Limits.MemoryBytes, DefaultMemoryBytes)
	if j.Limits.ModelBytes == 0 {
		j.Limits.ModelBytes = DefaultModelBytes
	}
	j.Precision.RelativeWidth = cmp.Or(j.Precision.RelativeWidth, DefaultRelativeWidth)
	if j.Precision.MinRuns == 0 {
		j.Precision.MinRuns = DefaultMinRuns
	}
	j.Precision.Seconds = cmp.Or(j.Precision.Seconds, DefaultSeconds)
	if j.Precision.LeastSeconds = leastSeconds; j.Meter != nil {
		j.Precision.LeastSeconds = meteredSeconds
	}
	j.Inputs.IntegersBelow = cmp.Or(j.Inputs.IntegersBelow, 2)
	if j.Limits.Wall == 0 {
		// Loading and warming up may take as long again, and half a minute.
		perCell := 2*j.Precision.Seconds + 10
		j.Limits.Wall = time.Duration((30 + perCell*float64(len(j.Cells))) * float64(time.Second))
	}
}
