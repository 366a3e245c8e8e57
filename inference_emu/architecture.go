// Package emu holds what is known of architectures: what an inference does, and
// how long it really took where.
//
// Trials that train the same architecture share one [Architecture], whatever
// their weights and training hyperparameters are: it is looked at once (Rocha,
// section 7.3.4). It holds no weights, and nothing of a user's data.
//
// The package is pure; what reads files, estimates, tunes and runs is below it.
package emu

import (
	"slices"
	"time"

	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// Architecture is what is known of one.
type Architecture struct {
	// Key names the graph without weights (graph.Graph.Key).
	Key  string    `json:"key" minLength:"8" maxLength:"128"`
	Seen time.Time `json:"seen"`
	// Graph has the operators and what they cost, without names of the user's.
	Graph graph.Graph `json:"graph"`
	// ActivationBytes is the most memory that what flows between operators takes
	// at once for one sample.
	ActivationBytes int64 `json:"activation_bytes" minimum:"0"`
	// StoredBytes are the weights, those that several operators share once.
	StoredBytes int64 `json:"stored_bytes" minimum:"0"`
	// Skeleton is the model without weights and names, for boards that measure it
	// (onnx/document.Pack); nil where none could be made.
	Skeleton []byte `json:"skeleton,omitempty" maxLength:"174764"`
	// Runs are real inferences of it, by type of machine.
	Runs []Run `json:"runs,omitempty" maxItems:"1024"`
	// Sites are what the types of machine are made of that trained it.
	Sites []Site `json:"sites,omitempty" maxItems:"64"`
}

// Site is what a worker found out about its machine.
type Site struct {
	// Machine is the type of machine (protocol.Machine.Type).
	Machine   string `json:"machine" maxLength:"1024"`
	Processor string `json:"processor" maxLength:"256"`
	// Cores are those that may be used.
	Cores int `json:"cores" minimum:"1" maximum:"4096"`
	// LowestHertz and HighestHertz are equal where the clock cannot be set.
	LowestHertz  float64 `json:"lowest_hertz"`
	HighestHertz float64 `json:"highest_hertz"`
	MemoryBytes  int64   `json:"memory_bytes"`
	// MemoryBytesPerSecond was measured.
	MemoryBytesPerSecond float64 `json:"memory_bytes_per_second"`
	// Features are the processor's extensions by Linux's names.
	Features []string `json:"features,omitempty" maxItems:"1024"`
	// Providers are the execution providers that its runtime can use beside [CPU].
	Providers []string `json:"providers,omitempty" maxItems:"16" doc:"execution providers that its ONNX Runtime can use beside cpu"`
	// Software is what inferences of a board run with; empty where it does not tell.
	Software string `json:"software,omitempty" maxLength:"256" doc:"the runtime's library and the kernel: what was measured with others is measured again"`
}

// With returns the architecture with the runs, of which one of the same setting takes the
// place of an older one.
func (a Architecture) With(runs []Run) Architecture {
	kept := slices.DeleteFunc(slices.Clone(a.Runs), func(old Run) bool {
		return slices.ContainsFunc(runs, func(r Run) bool { return r.replaces(old) })
	})
	kept = append(kept, runs...)
	a.Runs = kept[max(0, len(kept)-MaxRuns):]
	return a
}

// maxSites bounds the types of machine that are kept.
const maxSites = 64

// At returns the architecture with what is known of a type of machine.
func (a Architecture) At(site Site) Architecture {
	kept := slices.DeleteFunc(slices.Clone(a.Sites), func(old Site) bool { return old.Machine == site.Machine })
	kept = append(kept, site)
	a.Sites = kept[max(0, len(kept)-maxSites):]
	return a
}

// Run is what real inferences of an architecture took on a type of machine with
// one batch size, one number of threads and one execution provider. Times are of one batch.
type Run struct {
	// Machine is the type of machine (protocol.Machine.Type), or the name of a
	// device of the catalogue that was measured itself.
	Machine string `json:"machine" maxLength:"1024"`
	Batch   int    `json:"batch" minimum:"1"`
	Threads int    `json:"threads" minimum:"1"`
	// Provider is empty for [CPU].
	Provider string `json:"provider,omitempty" maxLength:"64" doc:"the execution provider; absent: cpu"`
	// Seconds is the median of so many repetitions, Low and High the confidence
	// interval of it.
	Seconds     float64 `json:"seconds"`
	Low         float64 `json:"low"`
	High        float64 `json:"high"`
	P90         float64 `json:"p90"`
	P99         float64 `json:"p99"`
	Repetitions int     `json:"repetitions" minimum:"1"`
	// Joules are of one batch; EnergyMethod says how they were obtained.
	Joules       float64 `json:"joules"`
	EnergyMethod string  `json:"energy_method,omitempty" maxLength:"256"`
	// MemoryBytes is the most memory the process took beyond the library.
	MemoryBytes int64     `json:"memory_bytes" minimum:"0"`
	At          time.Time `json:"at"`
	// Software is the site's then.
	Software string `json:"software,omitempty" maxLength:"256"`
	// Drift is the last one that was found; nil: none was.
	Drift *Drift `json:"drift,omitempty"`
	// First is when the setting was measured first, Repeated for how many seconds before this run.
	First    time.Time `json:"first,omitzero"`
	Repeated float64   `json:"repeated_seconds,omitempty"`
}
