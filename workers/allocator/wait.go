package allocator

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/rules"
)

// mostWaits bounds the reasons that are told.
const mostWaits = 5

// Waiting is a study whose next trial does not start.
type Waiting struct {
	Ask
	// Running is how many trials it has.
	Running int
	// Expected says what its next trial should use of a GPU, and why it was kept from one.
	Expected string
	// Returned are the trials in line that their workers could not begin.
	Returned []Returned
}

// Returned is a trial that a worker gave back, and why.
type Returned struct {
	Worker string
	Number int
	Reason string
}

// Waits says why the study's next trial does not start; nil where nothing is in its way.
func (p Placements) Waits(one Waiting) []protocol.Wait {
	defer p.locked()()
	members, need := p.alive(), one.Need(1)
	if len(members) == 0 {
		return []protocol.Wait{{Cause: protocol.WaitUnfit, Reason: protocol.NoWorker + ": " + one.start()}}
	}
	reason, wants := pool.Unsuited(one.Wants, members), one.Wants.String()
	all := len(members)
	members = slices.DeleteFunc(members, func(m pool.Member) bool { return !m.Suits(one.Wants) })
	if wants == "" && len(members) < all {
		wants = "taints that it tolerates"
	}
	if reason == "" {
		if reason = pool.Unfit(need, members); reason != "" && wants != "" {
			reason += "; only workers with " + wants + " count"
		}
	}
	if reason != "" {
		return []protocol.Wait{{Cause: protocol.WaitUnfit, Reason: reason}}
	}
	if no := p.overQuota(one.Owner, need, pool.Amount{}); no.Reason != "" {
		return []protocol.Wait{{Cause: no.Cause, Reason: no.Reason}}
	}
	if waits := p.waitsForWorkers(one, members); waits != nil {
		return waits
	}
	return p.gaveBack(one.Returned)
}

// gaveBack says of each worker what it gave back, and why: without another one it is tried
// there again.
func (p Placements) gaveBack(trials []Returned) (waits []protocol.Wait) {
	told := map[string]bool{}
	for _, one := range trials {
		if !told[one.Worker] && len(waits) < mostWaits {
			told[one.Worker] = true
			member, _ := p.workers.Member(one.Worker)
			waits = append(waits, protocol.Wait{Cause: protocol.WaitUnsuited, Reason: fmt.Sprintf("worker %s gave trial %d back: %s", cmp.Or(member.Registration.Name, one.Worker), one.Number, one.Reason)})
		}
	}
	return waits
}

// against is what workers have against a study.
type against struct {
	waits                   []protocol.Wait
	busy, unsuited, leaving int
}

// waitsForWorkers says what each worker has against the study; nil as soon as one
// has nothing.
func (p Placements) waitsForWorkers(one Waiting, members []pool.Member) []protocol.Wait {
	found, some := p.against(one.Ask, members)
	if !some {
		return nil
	}
	waits := found.waits[:min(len(found.waits), mostWaits)]
	if gang, waiting := p.gangs.Waiting(one.Study); waiting && gang.Worker != "" {
		member, _ := p.workers.Member(gang.Worker)
		waits = append(waits, protocol.Wait{Cause: protocol.WaitGang, Reason: fmt.Sprintf("worker %s is being cleared for its next trial, which needs %s", member.Registration.Name, shownNeed(gang.Need))})
	}
	switch busy := found.busy; {
	case found.leaving > 0 && one.Preempt:
		waits = append(waits, protocol.Wait{Cause: protocol.WaitPreempted, Reason: "trials are making way on " + numbered(found.leaving, "worker", "workers")})
	case busy > 0 && one.SharesGPUs:
		waits = append(waits, protocol.Wait{Cause: protocol.WaitBusy, Reason: fmt.Sprintf("none of the %d workers that suit it has room for a part of a GPU: its next trial %s", busy, one.Expected)})
	case busy > 0 && one.Running == 0:
		waits = append(waits, protocol.Wait{Cause: protocol.WaitBusy, Reason: numbered(busy, "worker that suits it is", "workers that suit it are") + " busy" + p.mayNotPreempt(one.Ask)})
	case len(waits) == 0 && busy == 0 && !slices.ContainsFunc(members, one.opens):
		waits = append(waits, protocol.Wait{Cause: protocol.WaitUnsuited, Reason: one.unopened(len(members))})
	case len(waits) == 0 && busy == 0:
		waits = append(waits, protocol.Wait{Cause: protocol.WaitUnsuited, Reason: fmt.Sprintf("none of the %d connected workers runs it: they refuse it, belong to other users, lack a layer of the sandbox that it wants, or are too small", found.unsuited)})
	}
	return waits
}

// start says how a worker is started that may run the study.
func (a Ask) start() string {
	switch {
	case a.Policy != "":
		return "start one with 'tandem worker --confidential auto --broker URL --policy " + a.Policy + "'"
	case len(a.Recipients) > 0:
		return "start one with 'tandem worker --identity FILE', the file of the key " + sealed.Short(a.Recipients[0])
	}
	return "start one with 'tandem worker'"
}

// unopened says what a worker of those connected needs to run the study, or must not have.
func (a Ask) unopened(connected int) string {
	switch {
	case a.Policy != "":
		return fmt.Sprintf("its key goes to confidential machines only, and none of the workers that suit it otherwise (%d) is one by its policy: %s", connected, a.start())
	case len(a.Recipients) > 0:
		return fmt.Sprintf("none of the workers that suit it otherwise (%d) holds the key %s: %s", connected, sealed.Short(a.Recipients[0]), a.start())
	}
	return fmt.Sprintf("all %d workers that suit it otherwise run encrypted studies only: start one without --identity or --confidential, or give the study encryption.recipients", connected)
}

// against is what all workers have against the study; false if one has nothing.
func (p Placements) against(ask Ask, members []pool.Member) (found against, all bool) {
	for _, member := range members {
		need := ask.needOn(member)
		if one, excluded := member.Excluded[ask.Study]; excluded {
			found.waits = append(found.waits, protocol.Wait{Cause: protocol.WaitExcluded, Reason: one.Reason})
			continue
		}
		if reason, refuses := member.Refuses[ask.Study]; refuses {
			found.waits = append(found.waits, protocol.Wait{Cause: protocol.WaitUnsuited, Reason: reason})
			continue
		}
		if reason := ask.outdated(member); reason != "" {
			found.waits = append(found.waits, protocol.Wait{Cause: protocol.WaitUnsuited, Reason: reason})
			continue
		}
		if !ask.Fits(member) {
			found.unsuited++
			continue
		}
		held := p.heldOf(member.Registration.ID)
		if !takesOne(pool.RoomOf(member, held), need) {
			found.busy++
			if slices.ContainsFunc(held, func(l pool.Lease) bool { return l.Leave != "" }) {
				found.leaving++
			}
			continue
		}
		no := p.denied(ask, member, need, pool.Amount{})
		if no.Reason == "" {
			return found, false
		}
		if wait := (protocol.Wait{Cause: no.Cause, Reason: no.Reason}); !slices.Contains(found.waits, wait) {
			found.waits = append(found.waits, wait)
		}
	}
	return found, true
}

// mayNotPreempt says that the study asks for preemption and its owner may not; empty
// where that is not so.
func (p Placements) mayNotPreempt(ask Ask) string {
	if !ask.Preempt || p.rules.MayPreempt(ask.Owner) {
		return ""
	}
	return "; " + rules.MayNotPreempt(ask.Owner)
}

// numbered says how many there are of something.
func numbered(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
