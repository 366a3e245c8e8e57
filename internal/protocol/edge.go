package protocol

import (
	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/trial"
)

// ArchitectureReport says what a trial trains, as the worker read it in its
// sandbox out of the model that the script saved.
type ArchitectureReport struct {
	LeaseEpoch trial.LeaseEpoch `json:"lease_epoch" minimum:"1"`
	// Key names the architecture, Graph is it without weights.
	Key   string      `json:"key" minLength:"8" maxLength:"128"`
	Graph graph.Graph `json:"graph"`
	// ActivationBytes is the most memory that what flows between operators takes
	// at once for one sample.
	ActivationBytes int64 `json:"activation_bytes" minimum:"0"`
	// StoredBytes are the weights, those that several operators share once.
	StoredBytes int64 `json:"stored_bytes" minimum:"0"`
	// Skeleton is the model without weights and names, packed, for boards that measure
	// it; absent where none can be made.
	Skeleton []byte `json:"skeleton,omitempty" maxLength:"174764"`
	// Site is the worker's machine; absent where it could not be found out.
	Site *emu.Site `json:"site,omitempty"`
	// Precision says that it is the trained model in a precision; nil: what the trial trains.
	Precision *trial.Precision `json:"precision,omitempty" doc:"says that it is the trained model in a precision; absent: what the trial trains"`
}

// ArchitectureReply is what is known of it, and what the worker shall run.
type ArchitectureReply struct {
	// Known says that trials of it were met before.
	Known bool `json:"known"`
	// Run are the settings in which the worker shall run real inferences; empty
	// where they are known, or another worker does it.
	Run []InferenceCell `json:"run"`
	// Unmeasured says why nothing more is measured for the study.
	Unmeasured string `json:"unmeasured,omitempty"`
	// Deployments are the answers for the study's devices so far.
	Deployments []deployment.Deployment `json:"deployments"`
}

// InferenceCell is one setting to run.
type InferenceCell struct {
	Batch    int    `json:"batch"`
	Threads  int    `json:"threads"`
	Provider string `json:"provider,omitempty" doc:"the execution provider; absent: cpu"`
}

// InferenceReport is what real inferences on the worker took. It may come after the
// lease: no report and no end of a trial waits for it.
type InferenceReport struct {
	LeaseEpoch trial.LeaseEpoch `json:"lease_epoch" minimum:"1"`
	// Worker is who ran them; empty for the one that had the trial last.
	Worker string `json:"worker,omitempty" maxLength:"128" doc:"the worker's id; the trial's last one if left out"`
	Key    string `json:"key" minLength:"8" maxLength:"128"`
	// Runs are without their machine, which is the worker's.
	Runs []emu.Run `json:"runs" maxItems:"1024"`
	// Failure says why there are none, or not all.
	Failure string `json:"failure,omitempty" maxLength:"4096"`
}

// Deployments are how a trial's model is best run on the study's devices.
type Deployments struct {
	Trial        int                     `json:"trial"`
	Architecture string                  `json:"architecture"`
	Devices      []deployment.Deployment `json:"devices"`
}

// Architectures are those that are known, with what inferences of them took.
type Architectures struct {
	Architectures []emu.Architecture `json:"architectures" maxItems:"1000"`
}

// ArchitecturesImported says what a report of runs changed.
type ArchitecturesImported struct {
	// Architectures and Runs are how many were written.
	Architectures int `json:"architectures"`
	Runs          int `json:"runs"`
}
