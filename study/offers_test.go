package study

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/workers/pool"
)

// TestOffersTakeTurnsByShare: what was offered counts as if it were had.
func TestOffersTakeTurnsByShare(t *testing.T) {
	candidates := []pool.Candidate{{Study: "a", Owner: "ada", Share: 0.1}, {Study: "b", Owner: "bob", Share: 0.15}}
	all := books{pool.Amount{GPUs: 10}, map[string]*account{"ada": {has: pool.Amount{GPUs: 1}}, "bob": {has: pool.Amount{GPUs: 2}, quota: pool.Quota{Weight: 4.0 / 3}}}}
	order := ""
	for range 5 {
		pool.Order(candidates)
		order += candidates[0].Study
		all.charge(candidates, candidates[0].Owner, pool.Amount{GPUs: 1})
	}
	if order != "ababa" {
		t.Errorf("the turns are %s", order)
	}
}

// TestATrialThatMovesKeepsItsPlace among those of a study that may have one at once.
func TestATrialThatMovesKeepsItsPlace(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := New(nil, nil, Options{Now: func() time.Time { return now }})
	r := &runtime{id: "study", queue: []int{1, 2}}
	r.study.Definition.Parallel = 1
	s.leases.Keep(pool.Keeping{Lease: pool.Lease{Trial: "study-2", Study: r.id, Worker: "new"}, Until: now.Add(keptSpan)})
	if kept := s.awaitingOf(r); !r.full(kept.besides("other")) || r.full(kept.besides("new")) {
		t.Error("its place is another one's, or nobody's")
	}
	if first := r.waitingTrials(s.awaitingOf(r))[0]; first != 2 {
		t.Errorf("trial %d is offered first", first)
	}
	if now = now.Add(keptSpan); r.full(s.awaitingOf(r).besides("other")) {
		t.Error("its place is kept for ever")
	}
}
