package protocol

import "time"

// AutoscaleMode says whether a server drains workers by itself.
type AutoscaleMode string

// The modes.
const (
	AutoscaleOff    AutoscaleMode = "off"
	AutoscaleDryRun AutoscaleMode = "dry-run" // it says what it would do
	AutoscaleOn     AutoscaleMode = "on"
)

// PoolAutoscale is how a server drains workers by its forecast of the demand, and
// what it did.
type PoolAutoscale struct {
	Mode AutoscaleMode `json:"mode" enum:"off,dry-run,on" doc:"whether the server drains workers by itself; dry-run: it says what it would do"`
	// Least and Most bound how many GPUs take trials, whatever is forecast; a Most
	// of 0 is none.
	Least float64 `json:"least" minimum:"0" doc:"the least number of GPUs (or trial slots) that accept trials, whatever the forecast"`
	Most  float64 `json:"most,omitempty" minimum:"0" doc:"the largest number that accept trials; absent: no limit"`
	// Steady is for how many minutes in a row a worker must not be wanted before it
	// is drained, PauseSeconds how long one is left alone that was taken back.
	Steady       int     `json:"steady,omitempty" minimum:"0" doc:"consecutive minutes without need for a worker before it is drained"`
	PauseSeconds float64 `json:"pause_seconds,omitempty" minimum:"0" doc:"how long a worker stays unchanged after a drain or its cancellation"`
	// Changes are what was done and seen, the newest first.
	Changes []PoolChange `json:"changes" doc:"what was done and seen, the newest first"`
}

// PoolChange is a worker that the server drained or took back, or what was seen of
// one.
type PoolChange struct {
	At     time.Time `json:"at"`
	Worker string    `json:"worker" doc:"its name"`
	// Action is drain, wake (the drain is taken back), slept (it is not heard of any
	// more), woke (it is heard of again), taken back (by a person)
	// or forgotten (it was silent for a month).
	Action string `json:"action" enum:"drain,wake,slept,woke,taken back,forgotten" doc:"wake: the drain is cancelled; slept: heartbeats ended; woke: heartbeats resumed; taken back: a person cancelled the drain; forgotten: no heartbeat for 30 days, so the drain was removed"`
	Reason string `json:"reason,omitempty" doc:"absent for callers who may not see all studies"`
	// Capacity is the worker's, in GPUs, or in slots where it has none.
	Capacity  float64 `json:"capacity" minimum:"0" doc:"its GPUs, or slots where it has none"`
	Asleep    bool    `json:"asleep,omitempty" doc:"for a wake: the worker sends no heartbeats; wake its machine"`
	Pretended bool    `json:"pretended,omitempty" doc:"nothing was done: this is a dry run"`
}
