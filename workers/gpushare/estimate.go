package gpushare

import (
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
)

const gibibyte = 1 << 30

// Estimate is what a trial should use of a GPU, and why that is expected.
type Estimate struct {
	// Utilization is the share of the time in which it keeps the GPU busy; negative:
	// not known.
	Utilization float64
	// MemoryBytes is the most that it holds, MemoryPart the least that is kept for
	// it as a part of the GPU's memory; 0: not known, or not said.
	MemoryBytes int64
	MemoryPart  float64
	// GPUBytes is the memory of a GPU of the kind on which that was seen.
	GPUBytes int64
	Basis    string
	// model, own and of are what it is judged by whether it may run with another trial.
	model *Model
	own   Training
	of    string
}

// Known reports whether enough is known for it to share a GPU.
func (e Estimate) Known() bool {
	return e.Utilization >= 0 && (e.MemoryBytes > 0 || e.MemoryPart > 0)
}

// Fraction is how much of a GPU it counts as: the larger of its parts of the
// GPU's time and of its memory; all of it, while it runs alone.
func (e Estimate) Fraction() float64 {
	if !e.Known() {
		return 1
	}
	memory := e.MemoryPart
	if e.GPUBytes > 0 {
		memory = max(memory, float64(e.MemoryBytes)/float64(e.GPUBytes))
	}
	return min(1, max(e.Utilization, memory))
}

// String says what is expected.
func (e Estimate) String() string {
	if !e.Known() {
		return "needs one that no trial has (" + e.Basis + ")"
	}
	memory := fmt.Sprintf("%.3g GiB of its memory", float64(e.MemoryBytes)/gibibyte)
	if e.MemoryPart > 0 {
		memory = fmt.Sprintf("%.0f %% of its memory", 100*e.MemoryPart)
	}
	return fmt.Sprintf("should keep one busy for %.0f %% of the time and hold %s (an estimate: %s)", 100*e.Utilization, memory, e.Basis)
}

// Share is the estimate as the pool counts it.
func (e Estimate) Share() pool.GPUShare {
	return pool.GPUShare{
		Utilization: e.Utilization, MemoryBytes: e.MemoryBytes, MemoryPart: e.MemoryPart, Fraction: e.Fraction(), Basis: e.Basis,
		Refuses: func(resident trial.ID) bool { return e.Refuses(resident) != "" }, Prefers: e.gain,
	}
}

// Noted is the estimate as a trial keeps it, of a GPU on which it takes so much memory.
func (e Estimate) Noted(memoryBytes int64) *trial.GPUShare {
	if !e.Known() {
		return &trial.GPUShare{Alone: true, Fraction: 1, MemoryBytes: max(0, e.MemoryBytes), Basis: e.Basis}
	}
	return &trial.GPUShare{Utilization: e.Utilization, MemoryBytes: memoryBytes, Fraction: e.Fraction(), Basis: e.Basis}
}

// Refuses says why the trial must not run on one GPU with another: both together would
// do less than one after the other, by what was seen of such two, or learned of others.
// It is empty where the trial may.
func (e Estimate) Refuses(resident trial.ID) (why string) {
	said := e.model.colocated(e.own, resident)
	if !said.Loses() {
		return ""
	}
	who := "a trial of another study" // these have no names here
	if study, number, _ := strings.Cut(string(resident), "-"); study == e.of {
		who = "trial " + number
	}
	why = fmt.Sprintf("beside %s it would lose: %s", who, said)
	e.model.refuse(e.of, why)
	return why
}

// gain is how much the trial and another do together on one GPU, in parts of what one
// does alone.
func (e Estimate) gain(resident trial.ID) float64 {
	return e.model.colocated(e.own, resident).Gain()
}

// Part is the part of a GPU at a place of a worker's room that is kept for a trial.
type Part struct {
	Place int
	Share pool.GPUShare
	Room  pool.Room
}

// Refuses says why the trial must not run with those that have shares of the GPU; empty
// where it may.
func (p Part) Refuses(e Estimate) (why string) {
	for _, resident := range p.Room.Residents(p.Place) {
		if said := e.Refuses(resident); why == "" {
			why = said
		}
	}
	return why
}

// Holds reports whether the part is enough for a trial of which that is expected. Of one
// that is kept as a whole GPU only the memory counts.
func (p Part) Holds(e Estimate) bool {
	needs := p.Room.OnGPU(p.Place, e.Share())
	if p.Share.Utilization < 0 {
		return needs.MemoryBytes <= p.Room.GPUBytes(p.Place) || p.Room.GPUBytes(p.Place) == 0
	}
	const rounding = 1e-9
	return e.Known() && needs.Utilization <= p.Share.Utilization+rounding && needs.MemoryBytes <= p.Share.MemoryBytes
}

// Noted is what a trial of which that is expected takes of the GPU, as the trial keeps
// it.
func (p Part) Noted(e Estimate) *trial.GPUShare {
	return e.Noted(p.Room.OnGPU(p.Place, e.Share()).MemoryBytes)
}

// ShareOf is the part of a GPU that a trial keeps of one, as the pool counts it;
// nil where it has none.
func ShareOf(t trial.Trial) *pool.GPUShare {
	if t.GPUShare == nil {
		return nil
	}
	share := pool.GPUShare{Utilization: t.GPUShare.Utilization, MemoryBytes: t.GPUShare.MemoryBytes, Fraction: t.GPUShare.Fraction}
	if t.GPUShare.Alone {
		share.Utilization = -1
	}
	return &share
}

// Expect is what a trial of the study should use of a GPU that it shares; nil stands for
// one that the search has not begun yet.
//
// What the study file says goes first. Then comes what the trial itself was seen to use,
// then what its architecture says, then what others of its study used
// (docs/benchmarks/pool.md, "Sharing GPUs"). Of a trial that has not begun nobody knows
// the configuration, so others of its study go before the architecture. What the trial
// learned from running out of memory always counts. The store is not read.
func (m *Model) Expect(of Study, t *trial.Trial) Estimate {
	one := Estimate{Utilization: -1, Basis: "nothing is known of it yet, so it runs alone until it was observed for a minute"}
	var own *trial.GPUUse
	next := trial.Trial{}
	if t != nil {
		own, next = of.Observed(*t), *t
	}
	predicted, known := m.predictAnywhere(of, next)
	switch all, part := of.usually(), of.part(); {
	case part > 0:
		one = Estimate{Utilization: part, MemoryPart: part, Basis: fmt.Sprintf("the study says %g of a GPU", part)}
	case enough(own):
		one = Estimate{Utilization: own.Utilization, MemoryBytes: own.MemoryBytes, GPUBytes: own.GPUMemoryBytes, Basis: fmt.Sprintf("it was observed alone for %.0f s", own.Seconds)}
	case known && (t != nil || all.trials == 0):
		one = predicted
	case all.trials > 0:
		one = all.estimate()
	}
	if own != nil {
		one.MemoryBytes, one.GPUBytes = max(one.MemoryBytes, own.MemoryBytes), max(one.GPUBytes, own.GPUMemoryBytes)
	}
	switch shortage := next.GPUShortage; {
	case shortage == nil:
	case needsWholeGPU(next):
		one.Utilization, one.MemoryPart, one.MemoryBytes = -1, 0, 0
		if own != nil {
			one.MemoryBytes = own.MemoryBytes
		}
		one.Basis = fmt.Sprintf("it ran out of memory beside others %d times, and has a GPU to itself since", shortage.Times)
	default:
		one.MemoryBytes, one.GPUBytes = max(one.MemoryBytes, shortage.NeedBytes), max(one.GPUBytes, shortage.GPUMemoryBytes)
	}
	one.model, one.of = m, of.ID
	one.own = Training{Kind: of.kindOf(next), Utilization: max(0, one.Utilization), MemoryBytes: float64(one.MemoryBytes)}
	return one
}

// predictAnywhere is what the models predict of the trial on whatever GPU it comes to:
// the most of all connected types, and of each the upper end of where two of three
// trainings fall. False where one of them predicts nothing. The store is not read.
func (m *Model) predictAnywhere(of Study, t trial.Trial) (Estimate, bool) {
	key := of.architectureOf(t)
	if key == "" {
		return Estimate{}, false
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	outline, known := m.outlines[key]
	if !known || len(m.connected) == 0 {
		return Estimate{}, false
	}
	features := outline.With(batchOf(t.Configuration))
	one := Estimate{}
	for _, name := range m.connected {
		gpu := m.gpus[name]
		if gpu == nil {
			return Estimate{}, false
		}
		said, verdict, err := gpu.Expect(features, key)
		if err != nil {
			return Estimate{}, false
		}
		if said.UtilizationHigh >= one.Utilization {
			one.Basis = fmt.Sprintf("by its architecture, from %d trainings on an %s, usually off by %.2f and %.0f %% of the memory", gpu.Learned().Model.Samples, name, verdict.Off, 100*verdict.MemoryOff)
		}
		one.Utilization, one.MemoryBytes = max(one.Utilization, said.UtilizationHigh), max(one.MemoryBytes, said.MemoryHigh)
	}
	return one, true
}
