package study

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
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

// need is what one more trial of the study needs at least on a machine with so
// many cores.
func (s *Service) need(r *session, machine int) pool.Need { return s.needOf(r, nil, machine) }

// needOf is need of that trial; nil: of whichever comes next.
func (s *Service) needOf(r *session, t *trial.Trial, machine int) pool.Need {
	asked := r.resources()
	need := pool.Need{Cores: r.demands(machine), MemoryBytes: r.resident}
	need.GPUs, _ = r.gpus()
	if r.study.Definition.SharesGPUs() {
		expected := s.firstSharer(r)
		if t != nil {
			expected = s.expectedUse(r, t)
		}
		share := expected.Share()
		need.GPUShare = &share
	}
	if asked.Cores > 0 {
		need.Cores, need.KeptCores = asked.Cores, true
	}
	if asked.MemoryGiB > 0 {
		need.MemoryBytes, need.KeptMemory = int64(asked.MemoryGiB*gibibyte), true
	}
	return need
}

// needs is need for many machines, most of which have as many cores as others.
func (s *Service) needs(r *session) func(machine int) pool.Need {
	known := map[int]pool.Need{}
	return func(machine int) pool.Need {
		need, has := known[machine]
		if !has {
			need = s.need(r, machine)
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
	if settings := r.tuning(); settings != nil {
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
	taken := pool.Need{GPUs: len(t.GPUs), GPUShare: gpushare.ShareOf(t), Cores: r.occupies(t, machine), MemoryBytes: memory, KeptCores: asked.Cores > 0, KeptMemory: asked.MemoryGiB > 0}
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

// refused says why a worker gives a study nothing now.
type refused struct {
	cause  protocol.WaitCause
	reason string
}

// withheld says why the study may not have what it needs of the worker, whatever
// room there is; the zero value: it may. back is what it gives back for that, when a
// trial moves. The pool's lock is held.
func (s *Service) withheld(r *session, member pool.Member, need pool.Need, back pool.Amount) refused {
	if drain := s.drainOf(member); drain != nil {
		return refused{protocol.WaitDrained, "worker " + member.Registration.Name + " is drained" + because(drain.Reason)}
	}
	if no := s.overQuota(r, need, back); no.reason != "" {
		return no
	}
	if no := s.occupied(r, member); no.reason != "" {
		return no
	}
	now, asker := s.options.Now(), pool.Asker{Owner: r.owner, Study: r.id, Need: need}
	if reason := pool.KeepsWorker(s.rules.reservations, member.Registration.Name, asker, now); reason != "" {
		return refused{protocol.WaitReserved, reason}
	}
	held := s.heldOf(member.Registration.ID)
	if claim, claimed := s.leases.Claimed(member.Registration.ID); claimed && claim.Study != r.id && !s.atLeast(r, claim) {
		of := "higher priority"
		if claim.Priority == r.study.Definition.Priority {
			of = "the same priority that preempts"
		}
		return refused{protocol.WaitGang, fmt.Sprintf("trials on worker %s are making way for a study of %s (%d)", member.Registration.Name, of, claim.Priority)}
	}
	if pool.RoomOf(member, held).Opens(need) {
		asker.Need.GPUs = 1 // nobody has the GPU yet that it would take a part of
	}
	if reason := s.gpusReserved(asker, back, now); reason != "" {
		return refused{protocol.WaitReserved, reason}
	}
	if gang, kept := s.gangs.Keeps(member.Registration.ID, r.id, r.study.Definition.Priority); kept {
		return refused{protocol.WaitGang, fmt.Sprintf("worker %s is being cleared for a trial that needs %s, which was let pass %d times", member.Registration.Name, shownNeed(gang.Need), gang.Passed)}
	}
	return refused{}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// shownNeed says what a study asked for.
func shownNeed(need pool.Need) string {
	var parts []string
	if need.GPUs > 0 {
		parts = append(parts, fmt.Sprintf("%d GPUs", need.GPUs))
	}
	if need.GPUShare != nil {
		parts = append(parts, "a part of a GPU")
	}
	if need.KeptCores {
		parts = append(parts, fmt.Sprintf("%d cores", need.Cores))
	}
	if need.KeptMemory {
		parts = append(parts, fmt.Sprintf("%.4g GiB", float64(need.MemoryBytes)/gibibyte))
	}
	return strings.Join(parts, ", ")
}

// overQuota says why the quota of the study's owner lets no further trial start. One
// that goes on elsewhere with no more than it gives back is none. The pool's lock is
// held.
func (s *Service) overQuota(r *session, need pool.Need, back pool.Amount) refused {
	quota, has := s.rules.quotas[r.owner]
	if !has || back.Trials > 0 && need.HeldGPUs() <= back.GPUs {
		return refused{}
	}
	return refused{protocol.WaitQuota, quota.Refusal(namedOwner(r.owner), s.holdings().ByOwner[r.owner], s.spentBy(r.owner), need)}
}

// gpusReserved says which reservations keep the GPUs from who asks. The pool's
// lock is held.
func (s *Service) gpusReserved(asker pool.Asker, back pool.Amount, now time.Time) string {
	if len(s.rules.reservations) == 0 || float64(asker.Need.GPUs) <= back.GPUs {
		return ""
	}
	return pool.KeepsGPUs(s.rules.reservations, s.holdings(), asker, now)
}

// seekEvery is how often a machine is looked for that could be cleared for a
// study.
const seekEvery = time.Second

// waitsForRoom notes that a study which asks for resources found no room on a
// worker that it suits and that is large enough. The pool's lock is held.
func (s *Service) waitsForRoom(r *session, asking pool.Member) {
	need, now := s.need(r, 1), s.options.Now()
	if !need.Asked() || !pool.RoomOf(asking, nil).Fits(need) || now.Sub(r.sought) < seekEvery {
		return
	}
	r.sought = now
	var options []pool.Option
	for _, member := range s.workers.Members() {
		if !s.usable(member) || !suited(r, member) || !pool.RoomOf(member, nil).Fits(need) {
			continue
		}
		if pool.KeepsWorker(s.rules.reservations, member.Registration.Name, pool.Asker{Owner: r.owner, Study: r.id, Need: need}, now) != "" {
			continue
		}
		room := pool.RoomOf(member, s.heldOf(member.Registration.ID))
		if room.Trials < room.Slots && room.Fits(need) {
			return // a worker that has not asked yet takes it
		}
		options = append(options, pool.Option{Worker: member.Registration.ID, Name: member.Registration.Name, FreeGPUs: len(room.GPUs), FreeCores: room.Cores})
	}
	if len(options) > 0 {
		s.gangs.Wait(pool.Gang{Study: r.id, Priority: r.study.Definition.Priority, Need: need, Since: now}, options)
	}
}

// heldOf are the worker's leases, those that are being decided among them. The
// pool's lock is held.
func (s *Service) heldOf(worker string) []pool.Lease {
	return append(s.leases.Of(worker), s.leases.Deciding(worker)...)
}

// suited reports whether the study may run on the worker, by what its owner has
// said of it, by whose worker it is and what the study wants.
func suited(r *session, member pool.Member) bool {
	if _, refuses := member.Refuses[r.study.ID]; refuses {
		return false
	}
	if _, excluded := member.Excluded[r.study.ID]; excluded {
		return false
	}
	if only := member.Only; only != "" && only != r.id && only != r.study.Definition.Name && only != r.study.Reference() {
		return false
	}
	if user, ofUser := strings.CutPrefix(member.Holder, "user:"); ofUser && user != r.owner {
		return false // it asks for nobody else's studies
	}
	return r.study.Definition.Sandbox != protocol.StrictSandbox || member.Registration.Sandbox.Complete()
}

// shares gives the candidates their owners' weighted shares of the pool, and
// forgets the large trials that wait no more.
func (s *Service) shares(candidates []pool.Candidate, working map[string]bool) {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	if !s.gangs.Empty() {
		s.gangs.Keep(func(study string) bool { return working[study] })
	}
	if !slices.ContainsFunc(candidates, func(c pool.Candidate) bool { return c.Owner != candidates[0].Owner }) {
		return // of one owner: its share says nothing
	}
	held := s.holdings()
	for i, one := range candidates {
		candidates[i].Share = pool.Weighted(held.ByOwner[one.Owner].DominantShare(held.Pool), s.rules.quotas[one.Owner].Weight)
	}
}

// granted notes the lease in the pool, in place of the one that was being
// decided, and that its study waits for room no more.
func (s *Service) granted(r *session, lease pool.Lease, ticket int) {
	s.poolMutex.Lock()
	s.leases.Settle(ticket)
	s.line.served(lease.Worker)
	s.leases.Grant(lease)
	s.gangs.Gone(r.id)
	if member, known := s.workers.Member(lease.Worker); known {
		s.gangs.Pass(r.id, lease.Priority, member)
	}
	passed := s.letGoOfTaken(lease.Worker)
	if s.vacancies[lease.Worker].trial == lease.Trial {
		delete(s.vacancies, lease.Worker)
	}
	s.poolMutex.Unlock()
	if passed {
		s.notify()
	}
}

// directive is what a holder of the trial has to do now: what the study wants of
// it, unless it has to make way.
func (s *Service) directive(r *session, t trial.Trial) protocol.Directive {
	directive := r.directive(t)
	if directive.Action != protocol.Continue {
		return directive
	}
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	if reason := s.leases.Asked(t.ID, t.LeaseEpoch); reason != "" {
		return protocol.Directive{Action: protocol.Pause, Reason: reason}
	}
	if member, known := s.workers.Member(t.Worker); known {
		if drain := s.drainOf(member); drain != nil && drain.Now {
			return protocol.Directive{Action: protocol.Pause, Reason: "worker " + member.Registration.Name + " is drained" + because(drain.Reason)}
		}
	}
	return directive
}
