package session

import (
	"fmt"
	"math"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/starts"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/scheduler"
)

const gibibyte = 1 << 30

// Ask is what the pool hears of the study: of that trial, or of whichever comes next
// where that is nil. The study's lock is held for as long as it is used.
func (r *Session) Ask(t *trial.Trial) allocator.Ask {
	def := &r.Study.Definition
	return allocator.Ask{
		Study: r.ID, Name: def.Name, Reference: r.Study.Reference(), Owner: r.Owner(), Priority: def.Priority, Preempt: def.Preempt,
		Strict: def.Sandbox == protocol.StrictSandbox, SharesGPUs: def.SharesGPUs(), Wants: def.Asked().Selector, Need: r.needs(t), Recipients: def.Recipients(), Policy: def.PolicyOf(), Features: protocol.FeaturesOf(def),
	}
}

// needs is what the trial of the study needs at least of a machine with so many cores;
// nil: whichever comes next.
func (r *Session) needs(t *trial.Trial) func(machine int) pool.Need {
	asked := r.Study.Definition.Asked()
	all := pool.Need{Cores: asked.Cores, KeptCores: asked.Cores > 0, MemoryBytes: r.Resident}
	all.GPUs, _ = r.Study.Definition.GPUsEach()
	if r.Study.Definition.SharesGPUs() {
		expected := r.firstSharer()
		if t != nil {
			expected = r.ExpectedUse(t)
		}
		share := expected.Share()
		all.GPUShare = &share
	}
	if asked.MemoryGiB > 0 {
		all.MemoryBytes, all.KeptMemory = int64(asked.MemoryGiB*gibibyte), true
	}
	if all.KeptCores {
		return func(int) pool.Need { return all }
	}
	known := map[int]pool.Need{} // most machines have as many cores as others
	return func(machine int) pool.Need {
		need, has := known[machine]
		if !has {
			need = all
			need.Cores = r.Tuning().Demands(machine)
			known[machine] = need
		}
		return need
	}
}

// Usage is what the trial takes of a machine with so many cores: what is kept for
// it, or more where its configuration keeps more busy. memory is what it was seen
// to use.
func (r *State) Usage(t trial.Trial, machine int, memory int64) pool.Need {
	asked := r.Study.Definition.Asked()
	taken := pool.Need{GPUs: len(t.GPUs), GPUShare: gpushare.ShareOf(t), Cores: r.Tuning().Occupies(t, machine), MemoryBytes: memory, KeptCores: asked.Cores > 0, KeptMemory: asked.MemoryGiB > 0}
	switch {
	case asked.Cores > 0 && t.Setting == nil:
		taken.Cores = asked.Cores
	case asked.Cores > 0 && taken.Cores > 0:
		taken.Cores = max(taken.Cores, asked.Cores)
	}
	taken.MemoryBytes = max(memory, int64(asked.MemoryGiB*gibibyte))
	return taken
}

// LeaseRecord is the trial's lease as the pool keeps it.
func (r *State) LeaseRecord(t trial.Trial, taken pool.Need, granted time.Time) pool.Lease {
	lease := pool.Lease{
		Trial: t.ID, Epoch: t.LeaseEpoch, Study: r.ID, Owner: r.Owner(), Priority: r.Study.Definition.Priority, Worker: t.Worker, Holder: t.Holder,
		Cores: taken.Cores, MemoryBytes: taken.MemoryBytes, KeptCores: taken.KeptCores, KeptMemory: taken.KeptMemory, GPUs: t.GPUs, GPUShare: taken.GPUShare,
		Granted: granted, Resumable: t.ResumesAt(r.Ladder[t.Rung]),
	}
	if t.Preempted != nil {
		lease.Preempted = *t.Preempted
	}
	return lease
}

// GPUStudy is the study as the model of GPUs sees it. The study's lock is held for as
// long as it is used.
func (r *State) GPUStudy() gpushare.Study {
	return gpushare.Study{ID: r.ID, Owner: r.Owner(), Definition: &r.Study.Definition, Trials: r.Trials, Usage: &r.gpuUsage}
}

// CoresFor is how many cores the command of a lease counts on: those that are
// kept for it, or, beside others on an elastic worker, its part of the machine.
func (r *State) CoresFor(lease protocol.Lease, here *allocator.Reservation) int {
	if lease.Cores > 0 || here.Part == nil || !here.Room.Elastic {
		return lease.Cores
	}
	return here.Room.CoresOf(pool.Need{Cores: r.Tuning().Demands(here.Room.Machine), GPUShare: &here.Part.Share})
}

// ExpectedUse is what a trial of the study should use of a GPU that it shares; nil
// stands for one that the search has not begun yet. The study's lock is held.
func (r *Session) ExpectedUse(t *trial.Trial) gpushare.Estimate {
	return r.options.GPUs.Expect(r.GPUStudy(), t)
}

// firstSharer is what the study's next trial is expected to use.
func (r *Session) firstSharer() gpushare.Estimate {
	now := r.options.Now()
	for _, number := range r.Queue {
		if !r.rests(number, now) {
			return r.ExpectedUse(&r.Trials[number])
		}
	}
	return r.ExpectedUse(nil)
}

// LeaseFor is the trial as its worker is told about it.
func (r *State) LeaseFor(t trial.Trial, timing protocol.Timing) *protocol.Lease {
	def, rung := r.Study.Definition, r.Ladder[t.Rung]
	lease := &protocol.Lease{
		Trial: t.ID, Study: def.Name, StudyID: r.Study.ID, Number: t.Number, LeaseEpoch: t.LeaseEpoch,
		Rung: t.Rung, Budget: t.Budget, FirstEpoch: t.NextEpoch(rung),
		Params: t.Configuration, System: def.System.Constants, Seed: t.Seed,
		Command: def.Command, Processes: def.Processes, Directory: def.Directory, Environment: def.Environment,
		Sandbox: def.Sandbox, Secrets: def.Secrets, Recipients: def.Recipients(), Datasets: def.Datasets(), Confidential: def.Confidential,
		EpochTimeoutSeconds: def.EpochTimeoutSeconds, StallSeconds: def.StallSeconds, StallEnds: def.StallEnds, Objectives: r.toReport(), Precisions: def.Inference.WantedAt(t.Rung, r.Ladder), Timing: timing, Sprint: def.Sprint,
	}
	if def.GPUCount(t.Setting) != nil {
		count := len(t.GPUs)
		lease.GPUs, lease.GPUCount, lease.GPUShared = t.GPUs, &count, t.GPUShare != nil
	}
	lease.Cores = def.Asked().Cores
	if t.Setting != nil {
		lease.System = t.Setting.Configuration
	}
	if lease.System == nil {
		lease.System = map[string]space.Value{} // an object, as the interface promises
	}
	if t.ResumesAt(rung) {
		lease.Checkpoint = t.Checkpoint
	}
	return lease
}

// failedLately are the failed starts of the queued trials that failed to start not long
// ago, by number.
func (r *State) failedLately(now time.Time) map[int][]trial.FailedStart {
	failed := map[int][]trial.FailedStart{}
	for _, number := range r.Queue {
		before := r.Trials[number].FailedStarts
		if last := len(before) - 1; last >= 0 && now.Sub(before[last].At) < starts.FirstExclusion {
			failed[number] = before
		}
	}
	return failed
}

// seekEvery is how often a machine is looked for that could be cleared for a
// study.
const seekEvery = time.Second

// Request is what a worker is asked for that a trial of the study may have.
func (r *Session) Request(chosen scheduler.Choice) allocator.Request {
	now := r.options.Now()
	request := allocator.Request{
		Ask: r.Ask(nil), Parallel: r.Study.Definition.Parallel, Running: r.Held, Queue: r.Queue, Failed: r.failedLately(now),
		Meant: chosen.Number, Seek: now.Sub(r.sought) >= seekEvery, Chosen: len(chosen.Types) > 0, Alone: chosen.Alone,
	}
	_, request.MostGPUs = r.Study.Definition.GPUsEach()
	if len(request.Failed) > 0 {
		request.Hosts = starts.Hosts(r.Trials)
	}
	if request.SharesGPUs {
		for _, number := range r.Queue {
			if !r.rests(number, now) {
				request.Sharers = append(request.Sharers, allocator.Sharer{Number: number, Share: r.ExpectedUse(&r.Trials[number]).Share()})
			}
		}
		request.Fresh = allocator.Sharer{Number: next, Share: r.ExpectedUse(nil).Share()}
	}
	return request
}

// Denied notes why there was no room.
func (r *Session) Denied(why allocator.Denied) {
	if why.Sought {
		r.sought = r.options.Now()
	}
	if why.OverQuota {
		r.overQuota = true
		r.noted()
	}
}

// Obstacle is what the study's next trial waits for, as far as the study itself knows; it
// is the pool's to say where the ask is not empty.
func (r *Session) Obstacle() (one allocator.Waiting, own []protocol.Wait) {
	if r.Study.Status != protocol.StudyRunning || len(r.Study.Definition.Command) == 0 || r.Broken != nil || !r.mayStart() {
		return one, nil
	}
	if why := r.Shifted(r.options.Now()); why != "" {
		return one, []protocol.Wait{{Cause: protocol.WaitHours, Reason: why}}
	}
	if r.Full(0) {
		return one, []protocol.Wait{{Cause: protocol.WaitParallel, Reason: fmt.Sprintf("it runs %d of at most %d trials at once (parallel)", r.Held, r.Study.Definition.Parallel)}}
	}
	one = allocator.Waiting{Ask: r.Ask(nil), Running: r.Held}
	if one.SharesGPUs {
		one.Expected = r.firstSharer().String()
	}
	for _, number := range r.Queue {
		if t := &r.Trials[number]; protocol.Unbegun(t.Reason) {
			one.Returned = append(one.Returned, allocator.Returned{Worker: t.Worker, Number: t.Number, Reason: trial.FirstLine(t.Reason)})
		}
	}
	return one, nil
}

// Shifted says why the study starts no trial at this hour; empty: it may.
func (r *Session) Shifted(now time.Time) string {
	return r.options.Tariff.Waits(r.Study.Definition.When, r.Study.Created, now)
}

// Demand is what the study takes and could start now, whatever workers there are.
func (r *Session) Demand() demand.Ask {
	one := demand.Ask{Owner: r.Owner(), Study: r.ID, Priority: r.Study.Definition.Priority}
	if r.Study.Status.Over() && r.Held == 0 {
		return one
	}
	each, constant := r.places()
	one.Each = each
	if constant {
		one.Running = float64(r.Held) * each
	} else {
		for _, t := range r.Trials {
			if t.State.Held() {
				one.Running += placesOf(t)
			}
		}
	}
	if r.Study.Status != protocol.StudyRunning || len(r.Study.Definition.Command) == 0 || r.Broken != nil || r.Shifted(r.options.Now()) != "" {
		return one
	}
	all := len(r.Queue) + r.fresh()
	if most := r.Study.Definition.Parallel; most > 0 {
		one.Ready = min(all, max(0, most-r.Held)) // more would not run at once
		return one
	}
	one.Ready = max(len(r.Queue), min(1, all))
	one.More = all - one.Ready
	return one
}

// fresh is how many trials the study could start beside its queue, if a worker came
// for each now: those that its search would begin or send up, as far as its budgets
// pay for them, by what those before came to.
func (r *State) fresh() int {
	if r.waiting || r.Method == nil {
		return 0
	}
	most := r.Method.Startable()
	if most == 0 || len(r.Trials) == 0 {
		return most
	}
	for _, bound := range r.spending.Limits(r.Study.Definition.Stop) {
		if each := bound.Used / float64(len(r.Trials)); each > 0 && bound.Limit/each < maxStartable {
			most = min(most, max(1, int(math.Ceil((bound.Limit-bound.Used)/each))-len(r.Queue)-r.Held))
		}
	}
	return most
}

// places is how many GPUs each trial of the study takes: at least one, which
// stands for a slot where there are none, or which part of one. It is no constant
// where they are tuned or shared.
func (r *State) places() (each float64, constant bool) {
	if r.Study.Definition.SharesGPUs() {
		return max(leastPlace, r.GPUStudy().Fraction()), false
	}
	least, most := r.Study.Definition.GPUsEach()
	return float64(max(1, least)), least == most
}

// leastPlace is the smallest part of a GPU that a trial counts as.
const leastPlace = 0.01

// placesOf is how many GPUs the trial runs with, at least one, or which part of
// one.
func placesOf(t trial.Trial) float64 {
	if t.GPUShare != nil {
		return max(leastPlace, t.GPUShare.Fraction)
	}
	return float64(max(1, len(t.GPUs)))
}
