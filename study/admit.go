package study

import (
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/pool"
)

const gibibyte = 1 << 30

// full reports whether the study has as many trials at once as it wants, besides
// so many that move and are about to go on.
func (r *session) full(moving int) bool {
	most := r.study.Definition.Parallel
	return most > 0 && r.held+moving >= most
}

// resources are what the study asks for each trial; the zero value where it does
// not.
func (r *session) resources() definition.Resources {
	if asked := r.study.Definition.Resources; asked != nil {
		return *asked
	}
	return definition.Resources{}
}

// ask is what the pool hears of the study: of that trial, or of whichever comes next
// where that is nil. The study's lock is held for as long as it is used.
func (s *Service) ask(r *session, t *trial.Trial) allocator.Ask {
	def := &r.study.Definition
	return allocator.Ask{
		Study: r.id, Name: def.Name, Reference: r.study.Reference(), Owner: r.owner, Priority: def.Priority, Preempt: def.Preempt,
		Strict: def.Sandbox == protocol.StrictSandbox, SharesGPUs: def.SharesGPUs(), Need: s.needs(r, t),
	}
}

// needs is what the trial of the study needs at least of a machine with so many cores;
// nil: whichever comes next.
func (s *Service) needs(r *session, t *trial.Trial) func(machine int) pool.Need {
	asked := r.resources()
	all := pool.Need{Cores: asked.Cores, KeptCores: asked.Cores > 0, MemoryBytes: r.resident}
	all.GPUs, _ = r.gpus()
	if r.study.Definition.SharesGPUs() {
		expected := s.firstSharer(r)
		if t != nil {
			expected = s.expectedUse(r, t)
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
			need.Cores = r.tuned().Demands(machine)
			known[machine] = need
		}
		return need
	}
}

// gpus is how many GPUs a trial of the study needs at least and takes at most; it
// says nothing of them where both are 0 and saysGPUs is false.
func (r *session) gpus() (least, most int) {
	if asked := r.resources().GPUs; asked != nil {
		return *asked, *asked
	}
	if n, constant := r.study.Definition.System.Constants[system.GPUs].Number(); constant {
		return int(n), int(n)
	}
	if settings := r.study.Definition.System.Tuning; settings != nil {
		for _, tuned := range settings.Tuned {
			if tuned.Name != system.GPUs || len(tuned.Values) == 0 {
				continue
			}
			var counts []int
			for _, value := range tuned.Values {
				n, _ := value.Number()
				counts = append(counts, int(n))
			}
			return slices.Min(counts), slices.Max(counts)
		}
	}
	return 0, 0
}

// gpuCount is how many GPUs the trial's command shall see; nil where that is left
// to its worker.
func (r *session) gpuCount(t trial.Trial) *int {
	count := -1
	if r.study.Definition.SharesGPUs() {
		count = 1
	}
	if asked := r.resources().GPUs; asked != nil {
		count = *asked
	} else if n, has := r.study.Definition.System.Constants[system.GPUs].Number(); has {
		count = int(n)
	}
	if t.Setting != nil {
		if n, has := t.Setting.Configuration[system.GPUs].Number(); has {
			count = int(n)
		}
	}
	if count < 0 {
		return nil
	}
	return &count
}

// takes is what the trial takes of a machine with so many cores: what is kept for
// it, or more where its configuration keeps more busy. memory is what it was seen
// to use.
func (r *session) takes(t trial.Trial, machine int, memory int64) pool.Need {
	asked := r.resources()
	taken := pool.Need{GPUs: len(t.GPUs), GPUShare: gpushare.ShareOf(t), Cores: r.tuned().Occupies(t, machine), MemoryBytes: memory, KeptCores: asked.Cores > 0, KeptMemory: asked.MemoryGiB > 0}
	switch {
	case asked.Cores > 0 && t.Setting == nil:
		taken.Cores = asked.Cores
	case asked.Cores > 0 && taken.Cores > 0:
		taken.Cores = max(taken.Cores, asked.Cores)
	}
	taken.MemoryBytes = max(memory, int64(asked.MemoryGiB*gibibyte))
	return taken
}

// leaseRecord is the trial's lease as the pool keeps it.
func (r *session) leaseRecord(t trial.Trial, taken pool.Need, granted time.Time) pool.Lease {
	lease := pool.Lease{
		Trial: t.ID, Epoch: t.LeaseEpoch, Study: r.id, Owner: r.owner, Priority: r.study.Definition.Priority, Worker: t.Worker, Holder: t.Holder,
		Cores: taken.Cores, MemoryBytes: taken.MemoryBytes, KeptCores: taken.KeptCores, KeptMemory: taken.KeptMemory, GPUs: t.GPUs, GPUShare: taken.GPUShare,
		Granted: granted, Resumable: t.ResumesAt(r.ladder[t.Rung]),
	}
	if t.Preempted != nil {
		lease.Preempted = *t.Preempted
	}
	return lease
}

// directive is what a holder of the trial has to do now: what the study wants of
// it, unless it has to make way.
func (s *Service) directive(r *session, t trial.Trial) protocol.Directive {
	directive := r.directive(t)
	if directive.Action != protocol.Continue {
		return directive
	}
	if reason := s.allocator.PauseReason(t.ID, t.LeaseEpoch, t.Worker); reason != "" {
		return protocol.Directive{Action: protocol.Pause, Reason: reason}
	}
	return directive
}
