package trial

import "time"

// Estimate is what something should take: a prediction, never a measurement.
type Estimate struct {
	Seconds Float `json:"seconds" doc:"an estimate"`
	// Joules are absent where energy is not known.
	Joules Float `json:"joules,omitempty" doc:"an estimate; absent where energy is not known"`
}

// Basis is what a prediction of an epoch stands on.
type Basis string

// The bases.
const (
	// OwnEpochs: epochs of the same study on machines of that type.
	OwnEpochs Basis = "epochs"
	// EarlierEpochs: epochs of an earlier study of the same owner and command there.
	EarlierEpochs Basis = "earlier"
	// ProbesOnly: epochs of the study elsewhere, and what known workloads took on
	// both types of machine.
	ProbesOnly Basis = "probes"
	// Unknown: nothing.
	Unknown Basis = "none"
)

// PlacementOption is a type of machine on which a trial could have run.
type PlacementOption struct {
	// Machine is the type, Waiting how many workers on such machines waited then.
	Machine string `json:"machine" doc:"type of machine"`
	Waiting int    `json:"waiting" doc:"workers on such machines that waited then"`
	// Score is from 0 to 1, higher is better (Rocha, algorithm 4); 0 where nothing
	// is known.
	Score Float `json:"score" minimum:"0" maximum:"1"`
	// Epoch is what an epoch should take there; nil where nothing is known.
	Epoch *Estimate `json:"epoch,omitempty" doc:"what an epoch should take there"`
	Basis Basis     `json:"basis" enum:"epochs,earlier,probes,none" doc:"source of the estimate: the study's own epochs there, those of an earlier study of its command, probes of the machines, or nothing"`
	// Estimated says that the joules it stands on were estimates themselves.
	Estimated bool `json:"estimated,omitempty" doc:"the joules that were learned from were estimates"`
}

// Assignment is why a trial's lease went to its machine (Rocha, chapter 3).
type Assignment struct {
	// Energy is the study's H at that time: 0 as fast as possible, 1 with the least
	// energy.
	Energy float64 `json:"energy" minimum:"0" maximum:"1"`
	// ByTime says that energy was not known of all types, so that time alone decided.
	ByTime bool `json:"by_time,omitempty" doc:"energy is not known of all types: time alone decided"`
	// Machine is the type it went to, Why a sentence for people.
	Machine string `json:"machine"`
	Why     string `json:"why"`
	// Options are the types that were compared, the best one first.
	Options []PlacementOption `json:"options"`
	// Instead is the type that the first worker to ask has, if that was made to
	// wait for a better one.
	Instead string `json:"instead,omitempty" doc:"type of the worker that asked first and was made to wait"`
	// Saved is what this lease should save against the order in which workers asked;
	// nil where that would have led to the same.
	Saved *Saving `json:"saved,omitempty" doc:"what this lease should save against the order in which workers asked; an estimate"`
}

// Migration is a move of a running trial to another machine, by its checkpoint
// (Rocha, algorithm 3).
type Migration struct {
	At time.Time `json:"at"`
	// LeaseEpoch is that of the lease it ended.
	LeaseEpoch LeaseEpoch `json:"lease_epoch"`
	// From and To are the names of the workers; FromType and ToType the types of their
	// machines.
	From     string `json:"from"`
	FromType string `json:"from_type"`
	To       string `json:"to"`
	ToType   string `json:"to_type"`
	// Stays and Goes are what was left of it then on both, the move included; Here
	// and There are the scores.
	Stays Estimate `json:"stays" doc:"remaining cost on the old machine"`
	Goes  Estimate `json:"goes" doc:"remaining cost on the new machine, with the move"`
	Here  Float    `json:"score_here" minimum:"0" maximum:"1"`
	There Float    `json:"score_there" minimum:"0" maximum:"1"`
	Why   string   `json:"why"`
	// Arrived is the name of the worker that went on with it, ArrivedType the type of
	// its machine; empty while it waits.
	Arrived     string `json:"arrived,omitempty"`
	ArrivedType string `json:"arrived_type,omitempty"`
	// Epochs is how many it has trained since; Seconds and Energy are what they
	// really took.
	Epochs  int    `json:"epochs"`
	Seconds Float  `json:"seconds" doc:"measured cost of its epochs since"`
	Energy  Energy `json:"energy" doc:"of its epochs since, as its workers measured or estimated it"`
}
