package study

import (
	"cmp"
	"context"
	"slices"

	"github.com/tandem-tune/tandem/workers/pool"
)

// offers is what the studies have ready for the workers that wait: as many as
// these ask for, in the order in which they would be served one after the other.
// What none of these workers may run, or no quota and no bound leaves room for, is
// not among them: it must not stand in the way of what can start.
func (s *Service) offers(ctx context.Context, stands []stand) []offer {
	asked := 0
	for _, one := range stands {
		asked += one.trials
	}
	candidates, q := s.candidates(Caller{}), question{field: fieldOf(stands), types: typesOf(stands), probes: s.probesByType(), most: asked}
	q.joined = joined(q.types)
	turns, ready, all := newTurns(candidates), make(map[string][]offer, len(candidates)), 0
	for _, candidate := range candidates {
		list := placeable(s.offersOf(ctx, candidate.Study, q))
		ready[candidate.Study], all = list, all+len(list)
	}
	books, offers := s.books(candidates), make([]offer, 0, min(asked, all))
	for len(offers) < asked {
		first, some := turns.next()
		if !some {
			break
		}
		list := ready[first.Study]
		if len(list) == 0 || !books.allow(first, list[0]) {
			turns.done()
			continue
		}
		one := list[0]
		offers = append(offers, one)
		ready[first.Study] = list[1:]
		turns.served()
		if one.kept == "" {
			turns.reckon(first.Owner, books.charge(first.Owner, one.takes))
		}
	}
	return offers
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

// account is what an owner's trials would have if all offers so far were taken.
type account struct {
	quota pool.Quota
	spent pool.Spent
	has   pool.Amount
}

// books are the accounts of the owners, and what the pool has.
type books struct {
	pool   pool.Amount
	owners map[string]*account
}

func (s *Service) books(candidates []pool.Candidate) books {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	held := s.holdings()
	all := books{held.Pool, map[string]*account{}}
	for _, one := range candidates {
		all.owners[one.Owner] = &account{s.rules.quotas[one.Owner], s.spentBy(one.Owner), held.ByOwner[one.Owner]}
	}
	return all
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
	return of.quota.Refusal(candidate.Owner, of.has, of.spent, one.need) == ""
}

// charge gives the owner what an offer takes, so that the next one goes to whoever
// has the least then. It returns the owner's share.
func (b books) charge(owner string, takes pool.Amount) float64 {
	of := b.owners[owner]
	of.has = of.has.Plus(takes)
	return pool.Weighted(of.has.DominantShare(b.pool), of.quota.Weight)
}

// offered is what all of a study's offers have in common.
func (r *session) offered(may *answer, needs map[int]pool.Need, stands []stand) offer {
	def := r.study.Definition
	one := offer{study: r.id, number: next, energy: def.Placement.Energy, suits: may.may, open: may.may, suited: may.first >= 0, places: may.trials, needs: needs, parallel: def.Parallel}
	if may.first >= 0 {
		one.need = needs[stands[may.first].room.Machine]
		one.takes = stands[may.first].room.Takes(one.need)
	}
	return one
}

// waitingTrials is the queue, first those that are kept for a worker.
func (r *session) waitingTrials(kept awaiting) []int {
	if len(kept) == 0 {
		return r.queue
	}
	rank := func(number int) int {
		if _, moved := kept[number]; moved {
			return 0
		}
		return 1
	}
	queue := slices.Clone(r.queue)
	slices.SortStableFunc(queue, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
	return queue
}
