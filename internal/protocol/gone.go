package protocol

import "github.com/tandem-tune/tandem/trial"

// Cause is how the engine that ran a worker, such as Slurm, says that its job ended.
type Cause string

// The causes.
const (
	Finished    Cause = "finished"      // in order
	Preempted   Cause = "preempted"     // for a job that goes first
	Evicted     Cause = "evicted"       // taken off its node
	NodeFailed  Cause = "node_failed"   // the engine does not hear the node
	TimeLimit   Cause = "time_limit"    // it ran for as long as it may
	Cancelled   Cause = "cancelled"     // somebody took it back
	OutOfMemory Cause = "out_of_memory" // the worker's own; a trial's is its own failure
	Crashed     Cause = "failed"        // anything else
)

// Explains reports whether neither the worker nor its trials are to blame.
func (c Cause) Explains() bool {
	switch c {
	case Preempted, Evicted, NodeFailed, TimeLimit, Cancelled:
		return true
	case Finished, OutOfMemory, Crashed:
	}
	return false
}

// Gone says that the job of a worker has ended, as its engine knows.
type Gone struct {
	// Launch must be what the worker registered with: another one of that id is not meant.
	Launch string `json:"launch" minLength:"1" maxLength:"64" doc:"the launch that the worker registered with"`
	Cause  Cause  `json:"cause" enum:"finished,preempted,evicted,node_failed,time_limit,cancelled,out_of_memory,failed" doc:"how the job ended; losses by preempted, evicted, node_failed, time_limit and cancelled count for nothing"`
	// Why is that in a sentence, which the history of its trials shows.
	Why string `json:"why,omitempty" maxLength:"512" doc:"that in a sentence, for the history of its trials"`
}

// GoneReply are the trials that the worker held: they wait for others now.
type GoneReply struct {
	Trials []trial.ID `json:"trials"`
}

// Causes are all.
func Causes() []Cause {
	return []Cause{Finished, Preempted, Evicted, NodeFailed, TimeLimit, Cancelled, OutOfMemory, Crashed}
}

// Words say what the cause means.
func (c Cause) Words() string {
	switch c {
	case Finished:
		return "ended in order"
	case Preempted:
		return "preempted for a job that goes first"
	case Evicted:
		return "taken off its node"
	case NodeFailed:
		return "its node failed"
	case TimeLimit:
		return "ended at its time limit"
	case Cancelled:
		return "cancelled"
	case OutOfMemory:
		return "the worker ran out of memory: raise memory_gib"
	case Crashed:
	}
	return "the worker failed"
}
