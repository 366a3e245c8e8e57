package replay

import (
	"cmp"
	"fmt"

	"github.com/tandem-tune/tandem/workers/placement"
)

// Spot is a place for a job.
type Spot struct {
	Machine int
	// GPUs are which of the machine's, as many as the job needs; nil for the first
	// ones that no job is on.
	GPUs []int
}

// Chooser gives a waiting job its place; false: it has to wait.
type Chooser interface {
	Choose(state *State, job *Waiting) (Spot, bool)
}

// Learner is a Chooser that is told what a job took that ran by itself on one
// machine from its start to its end.
type Learner interface {
	Learn(job *Job, machineType string, took placement.Prediction) error
}

// Move is a running job that goes elsewhere.
type Move struct {
	Job *Running
	To  Spot
	// With is a job on that machine which comes back in exchange, where all are busy; it
	// needs the same. To has no GPUs then: each gets those of the other.
	With *Running
}

// Mover says which running jobs should go elsewhere. It is asked every
// Policy.Every seconds, when something became free since the last time.
type Mover interface {
	Moves(state *State) []Move
}

// Knob says how many GPUs should be awake. It is asked every Policy.Every
// seconds. Machines on which something runs stay awake, and a job that only a
// sleeping machine has room for wakes it up.
type Knob interface {
	Awake(state *State) (gpus int)
}

// Preemption is what happens to jobs of a lower priority when one of a higher
// one finds no room.
type Preemption int

// The rules.
const (
	// Never lets them end.
	Never Preemption = iota
	// Resumes ends them, and they go on from a checkpoint later, for the cost of
	// a move.
	Resumes
	// Repeats ends them, and they begin again: what they did is lost. Engines
	// without checkpoints do that (thesis, section 4.4).
	Repeats
)

// Policy is what decides.
type Policy struct {
	Name string
	// Order puts those that wait in order; equal ones, and all without it, are in
	// the order of their arrival.
	Order func(a, b *Waiting) int
	// Turns gives users their turns as the server does: the highest priority first,
	// then who has the least dominant share by weight, then the fewest jobs running.
	Turns bool
	// Chooser gives each its place. Shares says that it looks at more than what is
	// free: it puts several jobs on a GPU. It is then asked again at looks for
	// two periods after a job started or left, and not only when something became
	// free.
	Chooser Chooser
	Shares  bool
	// MostPassed is how many jobs that came later may start before one that waits, in
	// a cluster with so many GPUs of which each holds so many jobs; then that one is
	// asked about first. Negative: any number, as without it.
	MostPassed func(gpus, jobsPerGPU int) int
	Mover      Mover
	Knob       Knob
	// Every is how often the mover and the knob are asked, in seconds.
	Every float64
	// Preemption is what a job of a higher priority may do to others.
	Preemption Preemption
	// Drop is the share of its work that a job of each priority leaves out
	// (DiAS, thesis, section 4.2), from 0 to less than 1; priorities beyond the
	// list leave nothing out.
	Drop []float64
}

// ByPriority is the order of priorities, the highest first.
func ByPriority(a, b *Waiting) int { return cmp.Compare(b.Priority, a.Priority) }

func (p Policy) check() error {
	switch {
	case p.Chooser == nil:
		return fmt.Errorf("policy %q has no chooser", p.Name)
	case (p.Mover != nil || p.Knob != nil) && !(p.Every > 0):
		return fmt.Errorf("policy %q looks every %g seconds: that must be positive", p.Name, p.Every)
	}
	for class, drop := range p.Drop {
		if !(drop >= 0 && drop < 1) {
			return fmt.Errorf("policy %q drops %g of the work of priority %d: it must be from 0 to less than 1", p.Name, drop, class)
		}
	}
	return nil
}
