package study

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
)

const (
	// observedLong is for how long a trial has to be seen alone before others may
	// join it: the minute of the reactive scheduler (Yeung et al., HotCloud 2020,
	// section 6).
	observedLong = 60.0
	// cautious is the quantile of what a study's trials were seen to use that its
	// next one is expected to.
	cautious = 0.9
)

// expectation is what a trial should use of a GPU, and why that is expected.
type expectation struct {
	// utilization is the share of the time in which it keeps the GPU busy; negative:
	// not known.
	utilization float64
	// memoryBytes is the most that it holds, memoryPart the least that is kept for
	// it as a part of the GPU's memory; 0: not known, or not said.
	memoryBytes int64
	memoryPart  float64
	// refuses says why it must not run beside a trial, empty: it may; prefers how good it is to run
	// beside one (packing.Settings); nil: nothing is known of that.
	refuses func(trial.ID) (why string)
	prefers func(trial.ID) float64
	// gpuBytes is the memory of a GPU of the kind on which that was seen.
	gpuBytes int64
	basis    string
}

func (e expectation) known() bool {
	return e.utilization >= 0 && (e.memoryBytes > 0 || e.memoryPart > 0)
}

// fraction is how much of a GPU it counts as: the larger of its parts of the
// GPU's time and of its memory; all of it, while it runs alone.
func (e expectation) fraction() float64 {
	if !e.known() {
		return 1
	}
	memory := e.memoryPart
	if e.gpuBytes > 0 {
		memory = max(memory, float64(e.memoryBytes)/float64(e.gpuBytes))
	}
	return min(1, max(e.utilization, memory))
}

// words says what is expected.
func (e expectation) words() string {
	if !e.known() {
		return "needs one that no trial has (" + e.basis + ")"
	}
	memory := fmt.Sprintf("%.3g GiB of its memory", float64(e.memoryBytes)/gibibyte)
	if e.memoryPart > 0 {
		memory = fmt.Sprintf("%.0f %% of its memory", 100*e.memoryPart)
	}
	return fmt.Sprintf("should keep one busy for %.0f %% of the time and hold %s (an estimate: %s)", 100*e.utilization, memory, e.basis)
}

// share is the expectation as the pool counts it.
func (e expectation) share() pool.GPUShare {
	return pool.GPUShare{Utilization: e.utilization, MemoryBytes: e.memoryBytes, MemoryPart: e.memoryPart, Fraction: e.fraction(), Basis: e.basis, Refuses: e.refused(), Prefers: e.prefers}
}

// refused reports whether it must not run beside a trial; nil where it may.
func (e expectation) refused() func(trial.ID) bool {
	if e.refuses == nil {
		return nil
	}
	return func(resident trial.ID) bool { return e.refuses(resident) != "" }
}

// noted is the expectation as a trial keeps it: of a GPU on which it takes so
// much memory.
func (e expectation) noted(memoryBytes int64) *trial.GPUShare {
	if !e.known() {
		return &trial.GPUShare{Alone: true, Fraction: 1, MemoryBytes: max(0, e.memoryBytes), Basis: e.basis}
	}
	return &trial.GPUShare{Utilization: e.utilization, MemoryBytes: memoryBytes, Fraction: e.fraction(), Basis: e.basis}
}

// shareOf is the part of a GPU that a trial keeps of one, as the pool counts it;
// nil where it has none.
func shareOf(t trial.Trial) *pool.GPUShare {
	if t.GPUShare == nil {
		return nil
	}
	share := pool.GPUShare{Utilization: t.GPUShare.Utilization, MemoryBytes: t.GPUShare.MemoryBytes, Fraction: t.GPUShare.Fraction}
	if t.GPUShare.Alone {
		share.Utilization = -1
	}
	return &share
}

// expectedUse is what a trial of the study should use of a GPU that it shares;
// nil stands for one that the search has not begun yet. What the trial itself
// was seen to use goes before what is foretold by its architecture, which is nearer than
// what others of its study were seen to use (docs/benchmarks/pool.md, "Sharing GPUs"); of one
// that has not begun, whose configuration nobody knows, that goes first. What the
// study file says goes before all, and what the trial learned from running out of
// memory counts always. Nothing is read, and no lock is taken but that of the
// lessons: the study's is held.
func (s *Service) expectedUse(r *session, t *trial.Trial) expectation {
	one := expectation{utilization: -1, basis: "nothing is known of it yet, so it runs alone until it was observed for a minute"}
	part := r.resources().GPUShare.Part
	own, of := r.observed(t), trial.Trial{}
	if t != nil {
		of = *t
	}
	said, foretold := s.foretold(r, of)
	switch all := r.usually(); {
	case part > 0:
		one = expectation{utilization: part, memoryPart: part, basis: fmt.Sprintf("the study says %g of a GPU", part)}
	case own != nil && own.tells():
		one = expectation{utilization: own.Utilization, memoryBytes: own.MemoryBytes, gpuBytes: own.GPUMemoryBytes, basis: fmt.Sprintf("it was observed alone for %.0f s", own.Seconds)}
	case foretold && (t != nil || all.trials == 0):
		one = said
	case all.trials > 0:
		one = expectation{utilization: all.utilization, memoryBytes: all.memoryBytes, gpuBytes: all.gpuBytes, basis: fmt.Sprintf("nine tenths of its study's observed trials, %d so far, used no more", all.trials)}
	}
	if own != nil {
		one.memoryBytes, one.gpuBytes = max(one.memoryBytes, own.MemoryBytes), max(one.gpuBytes, own.GPUMemoryBytes)
	}
	switch {
	case t == nil || t.GPUShortage == nil:
	case wantsItsOwn(*t):
		one.utilization, one.memoryPart, one.memoryBytes = -1, 0, 0
		if own != nil {
			one.memoryBytes = own.MemoryBytes
		}
		one.basis = fmt.Sprintf("it ran out of memory beside others %d times, and has a GPU to itself since", t.GPUShortage.Times)
	default:
		one.memoryBytes, one.gpuBytes = max(one.memoryBytes, t.GPUShortage.NeedBytes), max(one.gpuBytes, t.GPUShortage.GPUMemoryBytes)
	}
	one.refuses, one.prefers = s.apart(r, of, one), s.together(r, of, one)
	return one
}

// seenUse is what a trial was seen to use.
type seenUse struct{ trial.GPUUse }

// tells reports whether that is enough to put others beside it.
func (u seenUse) tells() bool { return u.Alone && u.Seconds >= observedLong && u.MemoryBytes > 0 }

// observed is what a trial was seen to use, by its reports and by the heartbeats
// since; nil where that is nothing. What heartbeats said is in the report that a
// transaction takes, and counts once.
func (r *session) observed(t *trial.Trial) *seenUse {
	if t == nil {
		return nil
	}
	sum := t.GPUUse
	if t.Number < len(r.trials) && r.trials[t.Number].GPUUse == sum {
		sum = sum.Plus(r.watched[t.Number])
	}
	if sum == nil {
		return nil
	}
	return &seenUse{*sum}
}

// usualUse is what a study's trials were seen to use, of those that were seen
// long enough: cautious quantiles.
type usualUse struct {
	trials      int
	utilization float64
	memoryBytes int64
	gpuBytes    int64
}

// usually sums up the trials, once for all who ask before anything changes.
func (r *session) usually() usualUse {
	if r.seen != nil {
		return *r.seen
	}
	var shares []float64
	var bytes []int64
	all := usualUse{}
	for i := range r.trials {
		if use := r.observed(&r.trials[i]); use != nil && use.tells() {
			need := use.MemoryBytes
			if shortage := r.trials[i].GPUShortage; shortage != nil {
				need = max(need, shortage.NeedBytes)
			}
			shares, bytes = append(shares, use.Utilization), append(bytes, need)
			all.gpuBytes = max(all.gpuBytes, use.GPUMemoryBytes)
		}
	}
	if all.trials = len(shares); all.trials > 0 {
		slices.Sort(shares)
		slices.Sort(bytes)
		at := int(math.Ceil(cautious*float64(all.trials))) - 1
		all.utilization, all.memoryBytes = shares[at], bytes[at]
	}
	r.seen = &all
	return all
}

// watch notes what a heartbeat says of a trial's GPU since its last report, and
// reports whether others may join the trial for that.
func (r *session) watch(t trial.Trial, use *trial.GPUUse) (opened bool) {
	if use == nil || len(gpuUseFaults(use)) > 0 {
		return false
	}
	before := r.observed(&t)
	if r.watched == nil {
		r.watched = make(map[int]*trial.GPUUse)
	}
	r.watched[t.Number] = use
	now := r.observed(&t)
	r.seen = nil
	return now.tells() && (before == nil || !before.tells())
}

// mostGPUBytes bounds what a worker may say of a GPU's memory: sums of that stay
// numbers.
const mostGPUBytes = 1 << 50

// gpuUseFaults says what is wrong with what a worker saw of a trial's GPUs.
func gpuUseFaults(use *trial.GPUUse) []problem.Field {
	if use == nil {
		return nil
	}
	var faults []problem.Field
	if !(use.Utilization >= 0 && use.Utilization <= 1) {
		faults = append(faults, problem.Field{Path: "gpu_use.utilization", Value: use.Utilization, Message: "must be a number from 0 to 1"})
	}
	if !(use.Seconds >= 0 && use.Seconds <= maxSeconds) {
		faults = append(faults, problem.Field{Path: "gpu_use.seconds", Value: use.Seconds, Message: "must be a number from 0 to 1e9"})
	}
	if use.MemoryBytes < 0 || use.MemoryBytes > mostGPUBytes {
		faults = append(faults, problem.Field{Path: "gpu_use.memory_bytes", Value: use.MemoryBytes, Message: "must be from 0 to 2^50"})
	}
	if use.GPUMemoryBytes < 0 || use.GPUMemoryBytes > mostGPUBytes {
		faults = append(faults, problem.Field{Path: "gpu_use.gpu_memory_bytes", Value: use.GPUMemoryBytes, Message: "must be from 0 to 2^50"})
	}
	return faults
}

// forgetUse forgets what heartbeats said of a trial's GPU: it has reported since,
// or its lease is over.
func (tx *transaction) forgetUse(before, now trial.Trial) {
	r := tx.session
	if before.GPUUse != now.GPUUse || before.LeaseEpoch != now.LeaseEpoch || !now.State.Held() || before.GPUShortage != now.GPUShortage {
		if watched, was := r.watched[now.Number]; was {
			delete(r.watched, now.Number)
			tx.undo = append(tx.undo, func() { r.watched[now.Number] = watched })
		}
		r.seen = nil
	}
}

// typicalFraction is how much of a GPU a trial of the study counts as.
func (r *session) typicalFraction() float64 {
	all := r.usually()
	switch part := r.resources().GPUShare.Part; {
	case part > 0:
		return part
	case all.trials > 0:
		return expectation{utilization: all.utilization, memoryBytes: all.memoryBytes, gpuBytes: all.gpuBytes}.fraction()
	default:
		return 1
	}
}

// sharersCores is how many cores the command of a lease counts on: those that are
// kept for it, or, beside others on an elastic worker, its part of the machine.
func (r *session) sharersCores(lease protocol.Lease, here site) int {
	if lease.Cores > 0 || here.part == nil || !here.room.Elastic {
		return lease.Cores
	}
	return here.room.CoresOf(pool.Need{Cores: r.demands(here.room.Machine), GPUShare: &here.part.share})
}

// saysCores reports whether the configuration says how many cores it keeps busy.
func saysCores(configuration system.Configuration) bool {
	_, threads := configuration[system.CPUThreads]
	_, cores := configuration[system.Cores]
	return threads || cores
}
