package replay

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/workers/placement"
)

// Profile is what a kind of job takes: one unit of its work, by itself, on each
// type of machine that it runs on.
type Profile struct {
	Name string
	// On has seconds and joules of one unit by the type's name. The joules are
	// what the job adds to an idle machine.
	On map[string]placement.Prediction
}

// Job is one of a trace.
type Job struct {
	// Name tells it from all others of the trace.
	Name string
	// User is whose it is.
	User    string
	Profile *Profile
	// Work is how much there is to do, in units of the profile.
	Work float64
	// Arrives is in seconds since the trace began.
	Arrives float64
	// Needs are of one machine; GPUs are whole ones unless a policy shares them.
	Needs placement.Resources
	// Utilization is the share of the time in which the job alone keeps each of
	// its GPUs busy, above 0 and at most 1; 1 when 0.
	Utilization float64
	// GPUMemoryBytes is what it needs on each of its GPUs; 0: not known.
	GPUMemoryBytes int64
	// Told is what a policy is told of the two before it ran, where that differs:
	// a prediction.
	Told *Claim
	// Priority is higher for what matters more; from 0 on.
	Priority int
	// Features describe it to models that learn.
	Features []float64
}

// Claim is what a job is said to take of a GPU.
type Claim struct {
	Utilization    float64
	GPUMemoryBytes int64
}

// Claim is what a policy may know of the job before it runs.
func (j *Job) Claim() Claim {
	if j.Told != nil {
		return *j.Told
	}
	return Claim{j.Utilization, j.GPUMemoryBytes}
}

// Alone is what the whole job takes by itself on a machine of the type; false
// where it does not run there.
func (j *Job) Alone(machineType string) (placement.Prediction, bool) {
	unit, known := j.Profile.On[machineType]
	return placement.Prediction{Seconds: unit.Seconds * j.Work, Joules: unit.Joules * j.Work}, known
}

// Length is how long the job takes by itself on the type of machine where it takes
// the least, in seconds.
func (j *Job) Length() float64 {
	least := math.Inf(1)
	for _, unit := range j.Profile.On {
		least = min(least, unit.Seconds*j.Work)
	}
	return least
}

// Task is the job as placement sees it.
func (j *Job) Task() placement.Task {
	return placement.Task{Name: j.Name, Needs: j.Needs, Features: j.Features}
}

// check names the job, the field and the value of the first mistake.
func (j *Job) check(cluster Cluster) error {
	fail := func(format string, values ...any) error {
		return fmt.Errorf("job %s: "+format, append([]any{j.Name}, values...)...)
	}
	switch {
	case j.Name == "":
		return fmt.Errorf("a job that arrives at %g s has no name", j.Arrives)
	case j.Profile == nil || len(j.Profile.On) == 0:
		return fail("it has no profile: say what it takes on at least one type of machine")
	case !(j.Work > 0) || math.IsInf(j.Work, 0):
		return fail("work of %g: it must be positive", j.Work)
	case !(j.Arrives >= 0) || math.IsInf(j.Arrives, 0):
		return fail("it arrives at %g s: that must be 0 or later", j.Arrives)
	case j.Needs.Cores < 0 || j.Needs.GPUs < 0 || j.Needs.MemoryBytes < 0 || j.GPUMemoryBytes < 0:
		return fail("it needs %+v and %d bytes of GPU memory: none may be negative", j.Needs, j.GPUMemoryBytes)
	case !(j.Utilization >= 0 && j.Utilization <= 1):
		return fail("utilization %g: it must be from 0 to 1", j.Utilization)
	case j.Priority < 0:
		return fail("priority %d: it must be 0 or higher", j.Priority)
	}
	for name, unit := range j.Profile.On {
		if !(unit.Seconds > 0) || !(unit.Joules >= 0) || math.IsInf(unit.Seconds, 0) || math.IsInf(unit.Joules, 0) {
			return fail("a unit takes %g s and %g J on %s: seconds must be positive, joules 0 or more", unit.Seconds, unit.Joules, name)
		}
	}
	for _, one := range cluster.Types {
		_, runs := j.Profile.On[one.Name]
		if runs && cluster.has(one.Name) && one.Capacity.Holds(j.Needs) && (one.GPUMemoryBytes == 0 || j.GPUMemoryBytes <= one.GPUMemoryBytes) {
			return nil
		}
	}
	return fail("it needs %d GPUs, %d cores and %d bytes of memory (%d on each GPU) and runs on %v: no machine of the cluster has that", j.Needs.GPUs, j.Needs.Cores, j.Needs.MemoryBytes, j.GPUMemoryBytes, j.Profile.types())
}

// CanRun reports whether a cluster has a machine that the job fits on, empty.
func (j *Job) CanRun(cluster Cluster) bool { return j.check(cluster) == nil }
