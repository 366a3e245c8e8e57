package protocol

import "time"

// WorkerHistory is how busy a worker's machine was in the last hour.
type WorkerHistory struct {
	StepSeconds float64 `json:"step_seconds" doc:"how long each step is"`
	// Steps leaves out those in which the worker said nothing.
	Steps []LoadStep `json:"steps" doc:"the oldest first; those in which the worker said nothing are left out"`
}

// LoadStep is the mean of the loads that a worker has told in one step.
type LoadStep struct {
	Load
	Begin      time.Time `json:"begin"`
	Heartbeats int       `json:"heartbeats" doc:"how many it is the mean of"`
}
