package study

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/pool"
)

// waits says why the study's next trial does not start; nil where nothing is in
// its way, or it has none. The study's lock is held.
func (s *Service) waits(r *session) []protocol.Wait {
	if r.study.Status != protocol.StudyRunning || len(r.study.Definition.Command) == 0 || r.broken != nil || !r.mayStart() {
		return nil
	}
	if r.full(0) {
		return []protocol.Wait{{Cause: protocol.WaitParallel, Reason: fmt.Sprintf("it runs %d of at most %d trials at once (parallel)", r.held, r.study.Definition.Parallel)}}
	}
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	members := s.alive()
	need := s.need(r, 1)
	if reason := pool.Unfit(need, members); reason != "" {
		return []protocol.Wait{{Cause: protocol.WaitUnfit, Reason: reason}}
	}
	if no := s.overQuota(r, need, pool.Amount{}); no.reason != "" {
		return []protocol.Wait{{Cause: no.cause, Reason: no.reason}}
	}
	if waits := s.waitsForWorkers(r, members); waits != nil {
		return waits
	}
	return s.givenBack(r)
}

// givenBack says that the next trial's worker could not begin it, and why: without
// another one it is tried there again. The pool's lock is held.
func (s *Service) givenBack(r *session) []protocol.Wait {
	if len(r.queue) == 0 || !strings.HasPrefix(r.trials[r.queue[0]].Reason, protocol.CannotRun) {
		return nil
	}
	t := &r.trials[r.queue[0]]
	member, _ := s.workers.Member(t.Worker)
	return []protocol.Wait{{Cause: protocol.WaitUnsuited, Reason: fmt.Sprintf("worker %s gave trial %d back: %s", orElse(member.Registration.Name, t.Worker), t.Number, firstLine(t.Reason))}}
}

// alive are the workers that were heard of. The pool's lock is held.
func (s *Service) alive() []pool.Member {
	now := s.options.Now()
	return slices.DeleteFunc(s.workers.Members(), func(m pool.Member) bool { return now.Sub(m.LastSeen) >= s.leaseTerm() })
}

// mostWaits bounds the reasons that are told.
const mostWaits = 5

// waitsForWorkers says what each worker has against the study; nil as soon as one
// has nothing. The pool's lock is held.
func (s *Service) waitsForWorkers(r *session, members []pool.Member) []protocol.Wait {
	var waits []protocol.Wait
	needs := s.needs(r)
	busy, unsuited, leaving := 0, 0, 0
	for _, member := range members {
		need := needs(max(1, member.Registration.Machine.Cores))
		if one, excluded := member.Excluded[r.id]; excluded {
			waits = append(waits, protocol.Wait{Cause: protocol.WaitExcluded, Reason: one.Reason})
			continue
		}
		if !suited(r, member) || !pool.RoomOf(member, nil).Fits(need) {
			unsuited++
			continue
		}
		held := s.heldOf(member.Registration.ID)
		if room := pool.RoomOf(member, held); room.Trials >= room.Slots || !room.Fits(need) {
			busy++
			if slices.ContainsFunc(held, func(l pool.Lease) bool { return l.Leave != "" }) {
				leaving++
			}
			continue
		}
		no := s.withheld(r, member, need, pool.Amount{})
		if no.reason == "" {
			return nil
		}
		if wait := (protocol.Wait{Cause: no.cause, Reason: no.reason}); !slices.Contains(waits, wait) {
			waits = append(waits, wait)
		}
	}
	waits = waits[:min(len(waits), mostWaits)]
	if gang, waiting := s.gangs.Waiting(r.id); waiting && gang.Worker != "" {
		member, _ := s.workers.Member(gang.Worker)
		waits = append(waits, protocol.Wait{Cause: protocol.WaitGang, Reason: fmt.Sprintf("worker %s is being cleared for its next trial, which needs %s", member.Registration.Name, shownNeed(gang.Need))})
	}
	switch {
	case leaving > 0 && r.study.Definition.Preempt:
		waits = append(waits, protocol.Wait{Cause: protocol.WaitPreempted, Reason: "trials are making way on " + numbered(leaving, "worker", "workers")})
	case busy > 0 && r.study.Definition.SharesGPUs():
		refusal := s.gpus.Refusal(r.id)
		if refusal != "" {
			refusal = "; " + refusal
		}
		waits = append(waits, protocol.Wait{Cause: protocol.WaitBusy, Reason: fmt.Sprintf("none of the %d workers that suit it has room for a part of a GPU: its next trial %s%s", busy, s.firstSharer(r), refusal)})
	case busy > 0 && r.held == 0:
		waits = append(waits, protocol.Wait{Cause: protocol.WaitBusy, Reason: numbered(busy, "worker that suits it is", "workers that suit it are") + " busy" + s.mayNotPreempt(r)})
	case len(waits) == 0 && busy == 0:
		waits = append(waits, protocol.Wait{Cause: protocol.WaitUnsuited, Reason: fmt.Sprintf("none of the %d connected workers runs it: they refuse it, belong to other users, lack a layer of the sandbox that it wants, or are too small", unsuited)})
	}
	return waits
}

// mayNotPreempt says that the study asks for preemption and its owner may not; empty
// where that is not so. The pool's lock is held.
func (s *Service) mayNotPreempt(r *session) string {
	if !r.study.Definition.Preempt || s.mayPreempt(r) {
		return ""
	}
	return fmt.Sprintf("; no trial makes way for it (preempt), as user %s may not ask for that: an administrator allows it with tandem quota set %s --preempt", r.owner, r.owner)
}

// numbered says how many there are of something.
func numbered(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
