package allocator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/selector"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/rules"
)

const gibibyte = 1 << 30

// Ask is a study that asks for a place for a trial.
type Ask struct {
	// Study is its id, Name and Reference are what workers may ask for it by.
	Study, Name, Reference, Owner string
	Priority                      int
	// Preempt says that it wants others to make way.
	Preempt bool
	// Strict says that it runs only where the sandbox is complete.
	Strict     bool
	SharesGPUs bool
	// Wants are the machines that may run it.
	Wants selector.Selector
	// Recipients are who can read its checkpoints: workers need the key of the first.
	Recipients []string
	// Policy is which confidential machines may run it; empty: others do.
	Policy string
	// Features are what workers have to know for it.
	Features []protocol.Feature
	// Need is what the trial needs of a machine with so many cores. It takes no lock.
	Need func(cores int) pool.Need
}

func (a Ask) needOn(member pool.Member) pool.Need {
	return a.Need(max(1, member.Registration.Machine.Cores))
}

func (a Ask) asker(need pool.Need) pool.Asker {
	return pool.Asker{Owner: a.Owner, Study: a.Study, Need: need}
}

// Eligible reports whether the study may run on the worker, by what its owner has
// said of it, by whose worker it is and what the study wants.
func (a Ask) Eligible(member pool.Member) bool {
	if _, refuses := member.Refuses[a.Study]; refuses {
		return false
	}
	if _, excluded := member.Excluded[a.Study]; excluded {
		return false
	}
	if only := member.Only; only != "" && only != a.Study && only != a.Name && only != a.Reference {
		return false
	}
	if user, ofUser := access.UserOf(member.Holder); ofUser && user != a.Owner {
		return false // it asks for nobody else's studies
	}
	return (!a.Strict || member.Registration.Sandbox.Complete()) && member.Suits(a.Wants) && a.opens(member) && a.unknown(member) == ""
}

// unknown is a feature that the worker does not know; empty: it knows all.
func (a Ask) unknown(member pool.Member) protocol.Feature {
	for _, one := range a.Features {
		if !member.Registration.Knows(one) {
			return one
		}
	}
	return ""
}

// outdated says what the worker cannot do for the study, where nothing else is against it.
func (a Ask) outdated(member pool.Member) string {
	lacks, version := a.unknown(member), ""
	if a.Features = nil; lacks == "" || !a.Fits(member) {
		return ""
	}
	if of := member.Registration.Program.Version; of != "" {
		version = "is tandem " + of + ", which "
	}
	return fmt.Sprintf("worker %s %scannot %s: upgrade it", member.Registration.Name, version, lacks.Words())
}

// opens reports whether the worker holds the study's key. One with keys runs nothing else.
func (a Ask) opens(member pool.Member) bool {
	if claim := member.Registration.Confidential; claim != nil || a.Policy != "" {
		return claim != nil && claim.Policy == a.Policy // a broker gives it the key
	}
	held := member.Registration.Recipients
	return len(a.Recipients) == 0 && len(held) == 0 || len(a.Recipients) > 0 && slices.Contains(held, a.Recipients[0])
}

// Fits reports whether the worker could run the trial if it ran nothing else.
func (a Ask) Fits(member pool.Member) bool {
	return a.Eligible(member) && pool.RoomOf(member, nil).Fits(a.needOn(member))
}

// Refusal says why a worker gives a study nothing now; the zero value: it gives.
type Refusal struct {
	Cause  protocol.WaitCause
	Reason string
}

// denied says why the study may not have what it needs of the worker, whatever
// room there is. back is what it gives back for that, when a trial moves.
func (s *state) denied(ask Ask, member pool.Member, need pool.Need, back pool.Amount) Refusal {
	if drain := s.rules.DrainOf(member); drain != nil {
		return Refusal{protocol.WaitDrained, "worker " + member.Registration.Name + " is drained" + because(drain.Reason)}
	}
	if no := s.overQuota(ask.Owner, need, back); no.Reason != "" {
		return no
	}
	if no := s.occupied(ask.Study, member); no.Reason != "" {
		return no
	}
	asker := ask.asker(need)
	if reason := s.reservedFor(member, asker); reason != "" {
		return Refusal{protocol.WaitReserved, reason}
	}
	if claim, claimed := s.leases.Claimed(member.Registration.ID); claimed && claim.Study != ask.Study && !s.atLeast(ask, claim) {
		of := "higher priority"
		if claim.Priority == ask.Priority {
			of = "the same priority that preempts"
		}
		return Refusal{protocol.WaitGang, fmt.Sprintf("trials on worker %s are making way for a study of %s (%d)", member.Registration.Name, of, claim.Priority)}
	}
	if need.GPUShare != nil && pool.RoomOf(member, s.heldOf(member.Registration.ID)).Opens(need) {
		asker.Need.GPUs = 1 // nobody has the GPU yet that it would take a part of
	}
	if reason := s.gpusReserved(asker, back); reason != "" {
		return Refusal{protocol.WaitReserved, reason}
	}
	if gang, kept := s.gangs.Keeps(member.Registration.ID, ask.Study, ask.Priority); kept {
		return Refusal{protocol.WaitGang, fmt.Sprintf("worker %s is being cleared for a trial that needs %s, which was let pass %d times", member.Registration.Name, shownNeed(gang.Need), gang.Passed)}
	}
	return Refusal{}
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

// overQuota says why the owner's quota lets no further trial start. One that goes on
// elsewhere with no more than it gives back is none.
func (s *state) overQuota(owner string, need pool.Need, back pool.Amount) Refusal {
	quota, has := s.rules.Quotas[owner]
	if !has || back.Trials > 0 && need.HeldGPUs() <= back.GPUs {
		return Refusal{}
	}
	return Refusal{protocol.WaitQuota, quota.Refusal(rules.NamedOwner(owner), s.holdings().ByOwner[owner], s.rules.SpentBy(s.now(), owner), need)}
}

// reservedFor says which reservations keep the worker from who asks.
func (s *state) reservedFor(member pool.Member, asker pool.Asker) string {
	return pool.KeepsWorker(s.rules.Reservations, member.Registration.Name, asker, s.now())
}

// gpusReserved says which reservations keep the GPUs from who asks.
func (s *state) gpusReserved(asker pool.Asker, back pool.Amount) string {
	if len(s.rules.Reservations) == 0 || float64(asker.Need.GPUs) <= back.GPUs {
		return ""
	}
	return pool.KeepsGPUs(s.rules.Reservations, s.holdings(), asker, s.now())
}

// atLeast reports whether the study comes before the one that claims a place: its
// priority is higher, or the same and it preempts too.
func (s *state) atLeast(ask Ask, claim pool.Claim) bool {
	return ask.Priority > claim.Priority || ask.Priority == claim.Priority && ask.Preempt && s.rules.MayPreempt(ask.Owner)
}

// roomOn is what the worker has left. It has room for no trial where its slots are taken.
func (s *state) roomOn(member pool.Member) pool.Room {
	return pool.RoomOf(member, s.heldOf(member.Registration.ID))
}

// loadOf is the worker's load with the trials that are being chosen for it. The cores
// kept meanwhile are no load: it will have at most those that the trials take.
func (s *state) loadOf(member pool.Member) float64 {
	member.Reserved = 0
	return s.roomOn(member).Load()
}

func takesOne(room pool.Room, need pool.Need) bool {
	return room.Trials < room.Slots && room.Fits(need)
}

// seekRoom has a worker cleared for a study that asks for resources and found no room
// on one that is eligible and large enough. It reports whether it looked for one.
func (s *state) seekRoom(ask Ask, asking pool.Member) (sought bool) {
	need := ask.Need(1)
	if !need.Asked() || !pool.RoomOf(asking, nil).Fits(need) {
		return false
	}
	var options []pool.Option
	for _, member := range s.workers.Members() {
		if !s.usable(member) || !ask.Eligible(member) || !pool.RoomOf(member, nil).Fits(need) || s.reservedFor(member, ask.asker(need)) != "" {
			continue
		}
		room := s.roomOn(member)
		if takesOne(room, need) {
			return true // a worker that has not asked yet takes it
		}
		options = append(options, pool.Option{Worker: member.Registration.ID, Name: member.Registration.Name, FreeGPUs: len(room.GPUs), FreeCores: room.Cores})
	}
	if len(options) > 0 {
		s.gangs.Wait(pool.Gang{Study: ask.Study, Priority: ask.Priority, Need: need, Since: s.now()}, options)
	}
	return true
}

// yields reports whether the worker leaves a trial of the study to another one that
// waits as well, on a machine of the same type, has room for it, and has less load:
// the same trial would run with fewer others there. That one is woken. Nobody yields
// for longer than its patience. Trials that share GPUs are to be packed; one that is
// held for the worker, or for which that was cleared, runs there.
func (s *state) yields(ask Ask, asking pool.Member) bool {
	worker, load := asking.Registration.ID, s.loadOf(asking)
	w, waits := s.queue.Waiter(worker)
	if !waits || load <= level || len(s.queue.Sorted()) == 1 || ask.SharesGPUs || s.heldAmount(ask.Study, worker) != (pool.Amount{}) {
		return false
	}
	if gang, some := s.gangs.Waiting(ask.Study); some && gang.Worker == worker {
		return false
	}
	for _, id := range s.queue.Sorted() {
		other, _ := s.queue.Waiter(id)
		member, known := s.workers.Member(id)
		if id == worker || !known || other.Machine != w.Machine || !other.Caller.Sees(ask.Study, ask.Owner) || !ask.Eligible(member) {
			continue
		}
		here := s.roomOn(member)
		need := ask.Need(here.Machine)
		if s.loadOf(member) < load-level && takesOne(here, need) && s.denied(ask, member, need, pool.Amount{}).Reason == "" {
			return s.queue.Skip(s.now(), worker, ask.Study, id)
		}
	}
	return false
}

// level is by how much the loads of two workers may differ and count as the same: sums
// of fractions are rounded.
const level = 1e-9

// Shares are what gives candidates their owners' weighted shares of the pool.
type Shares struct {
	held   pool.Holdings
	quotas map[string]pool.Quota
	// Clearing says that workers are being cleared for large trials.
	Clearing bool
}

func (s *state) shares() Shares { return Shares{s.holdings(), s.rules.Quotas, !s.gangs.Empty()} }

// Shares are those of this moment.
func (a *Allocator) Shares() Shares {
	defer a.locked()()
	return a.shares()
}

// Give notes the shares on the candidates.
func (s Shares) Give(candidates []pool.Candidate) {
	if !slices.ContainsFunc(candidates, func(c pool.Candidate) bool { return c.Owner != candidates[0].Owner }) {
		return // of one owner: its share says nothing
	}
	for i, one := range candidates {
		candidates[i].Share = pool.Weighted(s.held.ByOwner[one.Owner].DominantShare(s.held.Pool), s.quotas[one.Owner].Weight)
	}
}

// KeepClearing forgets the large trials of studies that have no work any more.
func (a *Allocator) KeepClearing(working map[string]bool) {
	defer a.locked()()
	a.gangs.Keep(func(study string) bool { return working[study] })
}
