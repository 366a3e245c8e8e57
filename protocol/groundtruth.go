package protocol

import (
	"time"

	"github.com/tandem-tune/tandem/similarity"
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
