package protocol

import "github.com/tandem-tune/tandem/trial"

// PoolGPU is what a running trial has of its machine's GPUs.
type PoolGPU struct {
	// Places are the GPUs, by their place in the worker's list.
	Places []int `json:"places" doc:"places in the worker's list of GPUs"`
	// Share is the part of one GPU that it should take beside others; absent where it
	// has its GPUs for itself.
	Share *trial.GPUShare `json:"share,omitempty" doc:"expected part of a shared GPU: an estimate; absent: its GPUs are exclusive"`
	// Use is what it was seen to use, heartbeats included.
	Use *trial.GPUUse `json:"use,omitempty" doc:"measured use so far; absent: none"`
	// Beside are the trials that share the GPU now, Others how many there are whose
	// studies the caller does not see.
	Beside []trial.ID `json:"beside,omitempty" doc:"the trials that share the GPU now"`
	Others int        `json:"others,omitempty" minimum:"0" doc:"trials of other users that share it"`
}
