package study

import (
	"context"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/scheduler"
)

// offers is what the studies have ready for the workers that wait: as many as
// these ask for, in the order in which they would be served one after the other.
// What none of these workers may run, or no quota and no bound leaves room for, is
// not among them: it must not stand in the way of what can start. asked has all
// studies that were asked.
func (s *Service) offers(ctx context.Context, stands []allocator.Stand) (offers []offer, asked map[string][]offer) {
	wanted := 0
	for _, one := range stands {
		wanted += one.Trials
	}
	candidates, q := s.candidates(Caller{}, s.allocator.Shares()), question{Field: scheduler.FieldOf(stands), types: scheduler.Types(stands), probes: s.allocator.Probes(), most: wanted}
	q.joined = joined(q.types)
	turns, all := scheduler.NewTurns(candidates), 0
	asked = make(map[string][]offer, len(candidates))
	for _, candidate := range candidates {
		list := placeable(s.offersOf(ctx, candidate.Study, q))
		asked[candidate.Study], all = list, all+len(list)
	}
	books := s.books(candidates)
	offers = make([]offer, 0, min(wanted, all))
	for len(offers) < wanted {
		first, some := turns.Next()
		if !some {
			break
		}
		list := asked[first.Study]
		if len(list) == 0 || !books.allow(first, list[0]) {
			turns.Done()
			continue
		}
		one := list[0]
		offers = append(offers, one)
		asked[first.Study] = list[1:]
		turns.Served()
		if one.kept == "" {
			turns.Reckon(first.Owner, books.charge(first.Owner, one.takes))
		}
	}
	return offers, asked
}

// placeable are a study's offers that one of the workers could take, as many as
// those that suit it ask for.
func placeable(offers []offer) []offer {
	offers = slices.DeleteFunc(offers, func(one offer) bool { return !one.suited })
	room := 0
	if len(offers) > 0 {
		room = offers[0].places
	}
	return offers[:min(len(offers), room)]
}

// books are the accounts of the owners, and what the pool has.
type books struct {
	pool   pool.Amount
	owners map[string]*allocator.Account
}

func (s *Service) books(candidates []pool.Candidate) books {
	all, accounts := s.allocator.Accounts(candidates)
	return books{all, accounts}
}

// allow reports whether the study may have the offer beside those before it.
func (b books) allow(candidate pool.Candidate, one offer) bool {
	if one.parallel > 0 && candidate.Running >= one.parallel {
		return false
	}
	of := b.owners[candidate.Owner]
	if one.kept != "" {
		return true // what it had when it was given back counts among what its owner has
	}
	return of.Quota.Refusal(candidate.Owner, of.Has, of.Spent, one.need) == ""
}

// charge gives the owner what an offer takes, so that the next one goes to whoever
// has the least then. It returns the owner's share.
func (b books) charge(owner string, takes pool.Amount) float64 {
	of := b.owners[owner]
	of.Has = of.Has.Plus(takes)
	return pool.Weighted(of.Has.DominantShare(b.pool), of.Quota.Weight)
}

// offered is what all of a study's offers have in common.
func (r *session) offered(may *scheduler.Answer, needs map[int]pool.Need, stands []allocator.Stand) offer {
	def := r.study.Definition
	one := offer{study: r.id, number: next, energy: def.Placement.Energy, suits: may.May, open: may.May, suited: may.First >= 0, places: may.Trials, needs: needs, parallel: def.Parallel}
	if may.First >= 0 {
		one.need = needs[stands[may.First].Room.Machine]
		one.takes = stands[may.First].Room.Takes(one.need)
	}
	return one
}

// candidates are the running studies with a command, in the pool's order.
func (s *Service) candidates(caller Caller, shares allocator.Shares) []pool.Candidate {
	var candidates []pool.Candidate
	working := map[string]bool{}
	for _, r := range s.loaded() {
		r.mutex.Lock()
		if r.study.Status == protocol.StudyRunning && len(r.study.Definition.Command) > 0 && (r.stale || r.broken == nil && !r.idle() && !r.full(0)) {
			working[r.id] = true
			if caller.Sees(r.id, r.owner) {
				candidates = append(candidates, pool.Candidate{
					Study: r.study.ID, Owner: r.owner, Priority: r.study.Definition.Priority, Running: r.held, Created: r.study.Created,
				})
			}
		}
		r.mutex.Unlock()
	}
	if shares.Clearing {
		s.allocator.KeepClearing(working)
	}
	shares.Give(candidates)
	pool.Order(candidates)
	return candidates
}

// idle reports that the study surely has nothing to lease now.
func (r *session) idle() bool { return r.waiting && len(r.queue) == 0 }

// startable is how many trials the search may have besides the queued ones: it
// is not asked before somebody gets what it says.
func (r *session) startable() int {
	if r.waiting || r.method == nil {
		return 0
	}
	left := maxStartable
	if most := r.study.Definition.Stop.Trials; most > 0 {
		left = max(1, most-len(r.trials)) // at the end it may have one to promote
	}
	if parallel := r.study.Definition.Parallel; parallel > 0 {
		left = min(left, max(0, parallel-r.held))
	}
	return left
}

// maxStartable is how many new trials a study without a bound is taken to have.
const maxStartable = 1 << 20
