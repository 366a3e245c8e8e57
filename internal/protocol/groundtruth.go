package protocol

import (
	"time"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/system"
)

// GroundTruthVersion is the version of the document that a ground truth is
// exported as and imported from.
const GroundTruthVersion = 1

// GroundTruth is what runs taught about their workloads: what is exported from
// one server and imported into another. It holds nothing of the user's.
type GroundTruth struct {
	Version int `json:"version" doc:"of this document: 1"`
	// Records come the oldest first.
	Records []similarity.Record `json:"records"`
}

// GroundTruthMachine sums up what is known of one type of machine.
type GroundTruthMachine struct {
	// Machine is the type (see Machine.Type).
	Machine string `json:"machine"`
	// Records is how many runs taught something.
	Records int `json:"records"`
	// Configurations is how many system configurations they ran with, counted
	// once however many ran with the same.
	Configurations int `json:"configurations"`
	// Epochs is how many were timed, over all runs and configurations.
	Epochs int `json:"epochs"`
	// Oldest and Newest are when the records were last written.
	Oldest time.Time `json:"oldest"`
	Newest time.Time `json:"newest"`
}

// GroundTruthImported is what became of records that were sent.
type GroundTruthImported struct {
	// Imported is how many were taken.
	Imported int `json:"imported"`
	// Skipped is how many were not needed: the same record or a newer version of
	// it is there, or there are enough newer ones of its type of machine.
	Skipped int `json:"skipped"`
}

// GroundTruthForgotten is what became of records that were to be forgotten.
type GroundTruthForgotten struct {
	// Forgotten is how many there were.
	Forgotten int `json:"forgotten"`
}

// GroundTruthRuns is one page of the runs on a type of machine.
type GroundTruthRuns struct {
	// Runs come the newest first.
	Runs []GroundTruthRun `json:"runs"`
	// Total is how many there are.
	Total int `json:"total"`
}

// GroundTruthRun sums up what one run taught.
type GroundTruthRun struct {
	ID      string    `json:"id"`
	Updated time.Time `json:"updated"`
	// Configurations is how many system configurations it had.
	Configurations int `json:"configurations"`
	// Epochs is how many were timed.
	Epochs int `json:"epochs"`
	// Comparison is absent where no epoch was timed.
	Comparison *GroundTruthComparison `json:"comparison,omitempty"`
}

// GroundTruthComparison is how a run's configurations compare by time, among
// those that ran beside as many other trials.
type GroundTruthComparison struct {
	// Configurations is how many are compared; with 1 there is nothing to be
	// faster than.
	Configurations int `json:"configurations"`
	// Neighbours is beside how many other trials they ran.
	Neighbours int `json:"neighbours"`
	// Fastest is the configuration with the shortest epochs, and Seconds what an
	// epoch over the whole data took with it (the geometric mean), or would have.
	Fastest system.Configuration `json:"fastest"`
	Seconds float64              `json:"seconds"`
	// SlowestSeconds is the same of the slowest.
	SlowestSeconds float64 `json:"slowest_seconds"`
}

// GroundTruthClusters are the workloads known on a type of machine, as they
// look under one system configuration.
type GroundTruthClusters struct {
	// Configurations are those that epochs were profiled under, the one with most
	// runs first.
	Configurations []GroundTruthConfiguration `json:"configurations"`
	// Configuration is the one that was asked for, or else the first; absent where
	// there is none.
	Configuration system.Configuration `json:"configuration,omitempty"`
	// Runs is how many were profiled under it. Those that are like none of the
	// workloads are in none of them.
	Runs int `json:"runs"`
	// Workloads come the one with most runs first.
	Workloads []GroundTruthWorkload `json:"workloads"`
}

// GroundTruthConfiguration is a system configuration that runs had.
type GroundTruthConfiguration struct {
	// Key is the configuration in one line, as it is asked for.
	Key           string               `json:"key"`
	Configuration system.Configuration `json:"configuration"`
	Runs          int                  `json:"runs"`
}

// GroundTruthWorkload is a group of runs that are similar.
type GroundTruthWorkload struct {
	similarity.ClusterView
	// Compared is how many of its runs timed more than one configuration.
	Compared int `json:"compared"`
	// Fastest is the configuration that was the fastest in most of those, and
	// FastestIn in how many; absent where none was compared.
	Fastest   system.Configuration `json:"fastest,omitempty"`
	FastestIn int                  `json:"fastest_in"`
}
