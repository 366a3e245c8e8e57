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
	probes := s.probesByType()
	candidates := s.candidates(Caller{})
	ready := map[string][]offer{}
	for _, candidate := range candidates {
		ready[candidate.Study] = placeable(s.offersOf(ctx, candidate.Study, question{stands: stands, types: typesOf(stands), probes: probes, most: asked}), stands)
	}
	books := s.books(candidates)
	var offers []offer
	for len(offers) < asked {
		candidates = slices.DeleteFunc(candidates, func(c pool.Candidate) bool { return len(ready[c.Study]) == 0 })
		if len(candidates) == 0 {
			break
		}
		pool.Order(candidates)
		first := candidates[0]
		one := ready[first.Study][0]
		if !books.allow(first, one) {
			ready[first.Study] = nil
			continue
		}
		offers = append(offers, one)
		ready[first.Study] = ready[first.Study][1:]
		candidates[0].Running++
		if one.kept == "" {
			books.charge(candidates, first.Owner, one.takes)
		}
	}
	return offers
}

// placeable are a study's offers that one of the workers could take, as many as
// those that suit it ask for.
func placeable(offers []offer, stands []stand) []offer {
	offers = slices.DeleteFunc(offers, func(one offer) bool { return !slices.Contains(one.suits, true) })
	room := 0
	for i := range stands {
		if len(offers) > 0 && offers[0].open[i] {
			room += stands[i].trials
		}
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
// has the least then.
func (b books) charge(candidates []pool.Candidate, owner string, takes pool.Amount) {
	of := b.owners[owner]
	of.has = of.has.Plus(takes)
	for i := range candidates {
		if candidates[i].Owner == owner {
			candidates[i].Share = pool.Weighted(of.has.DominantShare(b.pool), of.quota.Weight)
		}
	}
}

// offered is what all of a study's offers have in common.
func (r *runtime) offered(suits []bool, needs map[int]pool.Need, stands []stand) offer {
	def := r.study.Definition
	one := offer{study: r.id, number: next, energy: def.Placement.Energy, suits: suits, open: suits, needs: needs, parallel: def.Parallel}
	if at := slices.Index(suits, true); at >= 0 {
		one.need = needs[stands[at].room.Machine]
		one.takes = stands[at].room.Takes(one.need)
	}
	return one
}

// waitingTrials is the queue, first those that are kept for a worker.
func (r *runtime) waitingTrials(kept awaiting) []int {
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
