// Package replay answers: what would this policy have made of this week?
//
// It plays recorded jobs on described machines in simulated time, with the code
// that the pool decides with: placement's Place and Reschedule are called as the
// server calls them, so that what is compared is what would run. It does no I/O,
// knows no clock, and what it draws comes from seeds: the same trace, machines
// and policy give the same outcome, to the bit.
//
// # What is played
//
// A [Cluster] has [Machine]s of [Type]s, with cores, GPUs and memory, the watts
// that they draw idle and asleep, and the time that they take to wake up. A
// [Job] arrives, has resources that it needs, and work, in the units of its
// [Profile]: seconds and joules for each unit on each type of machine. Jobs on
// one GPU slow each other down as [Slowdown] says; one that does not fit beside
// the others (memory, or a slowdown of 0) is out of memory, fails a little
// later, and is submitted again, to run alone.
//
// # What decides
//
// A [Policy] is put together from parts: an order of those that wait, a
// [Chooser] that gives a job its machine (and GPUs, to share them), and where it
// has them a [Mover] that looks at what runs, rules of preemption, drop ratios
// of classes, and a [Knob] for how many GPUs are awake. Package policies has those
// that are compared. A Chooser of one's own reads [State] and returns a [Spot].
//
//	cluster := replay.Cluster{Types: types, Machines: machines}
//	heats := policies.Heats(policies.Recorded(jobs), 1)
//	outcome, err := replay.Play(cluster, jobs, heats, replay.Settings{})
//
// # What comes of it
//
// An [Outcome] has the makespan, the times that jobs waited and took, the share
// of GPU time that was given away and that did work, what each user met with, joules by what they went
// into, and what moves and evictions cost. Its invariants, whatever a policy
// says: no resource is given twice, no work is lost or done twice unless an
// eviction or a lack of memory says so, every job ends, and the joules add up.
// A policy that breaks the first ends the replay with an error.
package replay

import (
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
)

// Settings of a replay.
type Settings struct {
	// JobsPerGPU bounds how many jobs share a GPU; 3 when 0, as in Yeung et al.
	JobsPerGPU int
	// Slowdown is how fast jobs go that share a GPU; nil for [ByUtilization].
	Slowdown Slowdown
	// OutOfMemorySeconds is how long a job runs before it fails for want of
	// memory; 30 when 0.
	OutOfMemorySeconds float64
	// Move is what it costs to take a job to another machine: seconds in which it
	// does not work, and joules.
	Move placement.Prediction
	// Quotas bound what users have, as the server's do, whatever the policy: trials and
	// GPUs at once, and GPU-seconds a day, which begins with the trace and every 86,400
	// seconds after. Their weights count where users take turns.
	Quotas map[string]pool.Quota
	// Record keeps the spans and steps that a report draws.
	Record bool
}

const (
	jobsPerGPU         = 3
	outOfMemorySeconds = 30
)

func (s Settings) filled() Settings {
	if s.JobsPerGPU <= 0 {
		s.JobsPerGPU = jobsPerGPU
	}
	if s.OutOfMemorySeconds <= 0 {
		s.OutOfMemorySeconds = outOfMemorySeconds
	}
	if s.Slowdown == nil {
		s.Slowdown = ByUtilization
	}
	return s
}

// Slowdown is how fast each of several jobs goes that share a GPU of a machine
// of the type, relative to its speed alone there: 1 is as fast, 0 is not at all,
// since it does not fit beside the others.
type Slowdown func(machineType string, jobs []*Job) []float64

// ByUtilization slows jobs down as little as can be: a GPU that all of them
// together keep busy for less than all of the time serves each as if it were
// alone, and a busier one is shared in proportion. An estimate; recorded pairs
// are slower.
func ByUtilization(_ string, jobs []*Job) []float64 {
	sum := 0.0
	for _, one := range jobs {
		sum += one.Utilization
	}
	speeds := make([]float64, len(jobs))
	for i := range speeds {
		speeds[i] = 1 / max(1, sum)
	}
	return speeds
}

// Play plays the jobs on the cluster under the policy, until the last job has
// ended. The error names the first thing of the trace that cannot be played (a
// job that fits on no machine, a profile without a time), or what the policy
// did that cannot be done.
func Play(cluster Cluster, jobs []Job, policy Policy, settings Settings) (Outcome, error) {
	if err := cluster.Check(); err != nil {
		return Outcome{}, err
	}
	if err := checkJobs(cluster, jobs); err != nil {
		return Outcome{}, err
	}
	if err := policy.check(); err != nil {
		return Outcome{}, err
	}
	if err := checkQuotas(jobs, settings.Quotas); err != nil {
		return Outcome{}, err
	}
	e := newEngine(cluster, jobs, policy, settings.filled())
	if err := e.run(); err != nil {
		return Outcome{}, err
	}
	return e.outcome(), nil
}
