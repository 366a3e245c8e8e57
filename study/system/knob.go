// Package system answers: with what can a training be run, and what does it
// take of the machine?
//
// A [Knob] is one system parameter: something that changes how long an epoch
// takes and what it consumes, but not what is learned (only precision can touch
// that, and is tuned only where a study lists it). The catalogue says of each
// knob when it switches, who applies it and how it is undone. [Settings] are a
// study's knobs and their values; a [Configuration] is one choice of them.
//
// The set of knobs follows the system parameters of Rocha, section 6.4.2 (cores
// and memory) and its remark that others, such as the CPU's frequency, go the
// same way. The package decides nothing: similarity/probing and similarity/reuse do.
package system

import (
	"slices"

	"github.com/tandem-tune/tandem/study/space"
)

// The knobs.
const (
	CPUThreads      = "cpu_threads"
	Cores           = "cores"
	MemoryGiB       = "memory_gib"
	CPUFrequencyMHz = "cpu_frequency_mhz"
	CPUGovernor     = "cpu_governor"
	GPUs            = "gpus"
	GPUPowerWatts   = "gpu_power_watts"
	GPUClockMHz     = "gpu_clock_mhz"
	LoaderWorkers   = "loader_workers"
	Precision       = "precision"
)

// ThreadVariables are the variables of the environment that bound the threads of the
// numeric libraries, which otherwise take every core of the machine for each trial.
func ThreadVariables() []string {
	return []string{"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"}
}

// Kind is what a knob's values are.
type Kind string

// The kinds.
const (
	Whole  Kind = "whole"  // whole numbers
	Number Kind = "number" // numbers
	Word   Kind = "word"   // words
)

// Applier is who makes a knob's value come true.
type Applier string

// The appliers.
const (
	// Agent: the worker's agent, from outside of the command.
	Agent Applier = "agent"
	// Script: the training script, with what its client tells it.
	Script Applier = "script"
)

// Knob is one system parameter.
type Knob struct {
	Name string
	Kind Kind
	Unit string
	// Low and High bound the numbers.
	Low, High float64
	// Live says that it switches between two epochs of a running command. Else
	// it switches when the command is started again: at the next rung.
	Live bool
	// Loads says that a process has to load or compile code for a value that is new to it.
	Loads   bool
	Applier Applier
	// About says what it is, Undo how it is undone when the trial ends or the
	// agent dies.
	About, Undo string
}

// Takes reports whether the value is of the knob's kind and within its bounds.
func (k Knob) Takes(value space.Value) bool {
	number, numeric := value.Number()
	_, whole := value.Integer()
	_, word := value.Text()
	if k.Kind == Word {
		return word
	}
	return numeric && (whole || k.Kind == Number) && number >= k.Low && number <= k.High
}

const ends = "ends with the command"

// Catalogue returns every knob, in the order they are shown.
func Catalogue() []Knob {
	return []Knob{
		{CPUThreads, Whole, "threads", 1, 4096, true, false, Script, "threads of the numeric libraries: the environment at the start, torch.set_num_threads and the OpenMP and BLAS pools between epochs", ends},
		{Cores, Whole, "cores", 1, 4096, true, false, Agent, "processor cores the command may run on, by affinity", ends},
		{MemoryGiB, Number, "GiB", 0.0625, 65536, true, false, Agent, "memory the command may use: its control group's limit, else the data limit of each process", "the control group is removed with the command; a process limit " + ends},
		{CPUFrequencyMHz, Number, "MHz", 100, 10000, true, false, Agent, "highest frequency of the cores, by cpufreq", "the value before is written back when the trial ends; after a crash, when the agent starts again"},
		{CPUGovernor, Word, "", 0, 0, true, false, Agent, "policy that chooses the cores' frequency, by cpufreq", "the governor before is written back when the trial ends; after a crash, when the agent starts again"},
		{GPUs, Whole, "GPUs", 0, 64, false, false, Agent, "how many GPUs the command sees, by CUDA_VISIBLE_DEVICES", ends},
		{GPUPowerWatts, Number, "W", 1, 10000, true, false, Agent, "power limit of the GPUs, by NVML", "the limit before is set again when the trial ends; after a crash, when the agent starts again"},
		{GPUClockMHz, Number, "MHz", 100, 10000, true, false, Agent, "highest clock of the GPUs' cores, by NVML", "the clocks are unlocked when the trial ends; after a crash, when the agent starts again"},
		{LoaderWorkers, Whole, "processes", 0, 1024, true, false, Script, "processes that prepare the data: the script makes its loader anew", ends},
		{Precision, Word, "", 0, 0, true, true, Script, "arithmetic of the training, such as fp32 or bf16; it may change what is learned", ends},
	}
}

// Find returns the knob with the name.
func Find(name string) (Knob, bool) {
	all := Catalogue()
	at := slices.IndexFunc(all, func(k Knob) bool { return k.Name == name })
	if at < 0 {
		return Knob{}, false
	}
	return all[at], true
}

// Names returns the names of all knobs.
func Names() []string {
	var names []string
	for _, knob := range Catalogue() {
		names = append(names, knob.Name)
	}
	return names
}
