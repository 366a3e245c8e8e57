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
	r := &runtime{queue: []int{1, 2}, kept: map[int]keeping{2: {"new", now.Add(keptSpan)}}}
	r.study.Definition.Parallel = 1
	if !r.full(r.keptAside("other", now)) || r.full(r.keptAside("new", now)) {
		t.Error("its place is another one's, or nobody's")
	}
	if first := r.waitingTrials(now)[0]; first != 2 {
		t.Errorf("trial %d is offered first", first)
	}
	if now = now.Add(keptSpan); r.full(r.keptAside("other", now)) {
		t.Error("its place is kept for ever")
	}
}
