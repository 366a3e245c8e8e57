package gpushare

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

const (
	// observedLong is for how many seconds a trial has to be seen alone before others
	// may join it: the minute of the reactive scheduler (Yeung et al., HotCloud 2020,
	// section 6).
	observedLong = 60.0
	// cautious is the quantile of what a study's trials were seen to use that its
	// next one is expected to use.
	cautious = 0.9
	// mostBytes and mostSeconds bound what a worker may report: sums stay numbers.
	mostBytes, mostSeconds = 1 << 50, 1e9
)

// Study is a study as a model sees it. Its owner's lock is held for as long as it is
// used.
type Study struct {
	ID, Owner  string
	Definition *definition.Definition
	Trials     []trial.Trial // by number
	*Usage
}

// Usage is what the trials of a study were seen to use and train, besides what trials
// hold themselves. The zero value is ready. It is guarded by the study's lock.
type Usage struct {
	// watched is what heartbeats said of trials' GPUs since their last reports, by
	// number.
	watched map[int]*trial.GPUUse
	// usual sums up all trials; nil until somebody asks.
	usual *usualUse
	// architectures are what trials train, by their parameters; nil until somebody
	// asks, and when a script has said something new. earlier are trials of earlier
	// studies that train the same models; nil before they are looked for.
	architectures *architectures
	earlier       *[]trial.Trial
}

// Reload forgets what may not hold of trials that were read from the store.
func (n *Usage) Reload(trials []trial.Trial) {
	n.architectures, n.usual = nil, nil
	maps.DeleteFunc(n.watched, func(number int, _ *trial.GPUUse) bool {
		return number >= len(trials) || !trials[number].State.Held()
	})
}

// Replace forgets what heartbeats said of a trial's GPU when the trial has reported
// since, or its lease is over. It returns how to undo that; nil where nothing was
// forgotten.
func (n *Usage) Replace(before, now trial.Trial) (undo func()) {
	if now.Inference != nil && (before.Inference == nil || before.Inference.Architecture != now.Inference.Architecture) {
		n.architectures = nil
	}
	if before.GPUUse == now.GPUUse && before.LeaseEpoch == now.LeaseEpoch && now.State.Held() && before.GPUShortage == now.GPUShortage {
		return nil
	}
	n.usual = nil
	watched, was := n.watched[now.Number]
	if !was {
		return nil
	}
	delete(n.watched, now.Number)
	return func() { n.watched[now.Number] = watched }
}

// Watch notes what a heartbeat says of a trial's GPU since its last report, and
// reports whether others may join the trial from now on.
func (s Study) Watch(t trial.Trial, use *trial.GPUUse) (opened bool) {
	if use == nil || len(Faults(use)) > 0 {
		return false
	}
	before := s.Observed(t)
	if s.watched == nil {
		s.watched = make(map[int]*trial.GPUUse)
	}
	s.watched[t.Number] = use
	s.usual = nil
	return enough(s.Observed(t)) && !enough(before)
}

// Observed is what a trial was seen to use, by its reports and by the heartbeats
// since; nil where that is nothing. What heartbeats said is in the report that a
// transaction takes, and counts once.
func (s Study) Observed(t trial.Trial) *trial.GPUUse {
	if t.Number < len(s.Trials) && s.Trials[t.Number].GPUUse == t.GPUUse {
		return t.GPUUse.Plus(s.watched[t.Number])
	}
	return t.GPUUse
}

// enough reports whether what was seen of a trial lets others join it.
func enough(use *trial.GPUUse) bool {
	return use != nil && use.Alone && use.Seconds >= observedLong && use.MemoryBytes > 0
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
func (s Study) usually() usualUse {
	if s.usual != nil {
		return *s.usual
	}
	var shares []float64
	var bytes []int64
	all := usualUse{}
	for _, t := range s.Trials {
		if use := s.Observed(t); enough(use) {
			need := use.MemoryBytes
			if shortage := t.GPUShortage; shortage != nil {
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
	s.usual = &all
	return all
}

// estimate is what the next trial should use by what those before it did.
func (u usualUse) estimate() Estimate {
	return Estimate{Utilization: u.utilization, MemoryBytes: u.memoryBytes, GPUBytes: u.gpuBytes,
		Basis: fmt.Sprintf("nine tenths of its study's observed trials, %d so far, used no more", u.trials)}
}

// Fraction is how much of a GPU a trial of the study counts as.
func (s Study) Fraction() float64 {
	all := s.usually()
	switch part := s.part(); {
	case part > 0:
		return part
	case all.trials > 0:
		return all.estimate().Fraction()
	default:
		return 1
	}
}

// part is the part of a GPU that the study file says; 0 for none.
func (s Study) part() float64 {
	if asked := s.Definition.Resources; asked != nil {
		return asked.GPUShare.Part
	}
	return 0
}

// Faults says what is wrong with what a worker saw of a trial's GPUs.
func Faults(use *trial.GPUUse) []problem.Field {
	if use == nil {
		return nil
	}
	var faults []problem.Field
	if !(use.Utilization >= 0 && use.Utilization <= 1) {
		faults = append(faults, problem.Field{Path: "gpu_use.utilization", Value: use.Utilization, Message: "must be a number from 0 to 1"})
	}
	if !(use.Seconds >= 0 && use.Seconds <= mostSeconds) {
		faults = append(faults, problem.Field{Path: "gpu_use.seconds", Value: use.Seconds, Message: "must be a number from 0 to 1e9"})
	}
	if use.MemoryBytes < 0 || use.MemoryBytes > mostBytes {
		faults = append(faults, problem.Field{Path: "gpu_use.memory_bytes", Value: use.MemoryBytes, Message: "must be from 0 to 2^50"})
	}
	if use.GPUMemoryBytes < 0 || use.GPUMemoryBytes > mostBytes {
		faults = append(faults, problem.Field{Path: "gpu_use.gpu_memory_bytes", Value: use.GPUMemoryBytes, Message: "must be from 0 to 2^50"})
	}
	return faults
}
