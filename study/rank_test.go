package study_test

import (
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestATrialHasOneRank compares the leaderboard with what each trial says.
func TestATrialHasOneRank(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create()
		w.register("worker-1")
		for range 20 {
			w.train(w.mustLease("worker-1"))
		}
		w.mustLease("worker-1")
		page, err := w.service.Trials(w.ctx, created.ID, protocol.TrialQuery{})
		if err != nil || len(page.Trials) < 10 {
			t.Fatalf("%d trials, %v", len(page.Trials), err)
		}
		for place, listed := range page.Trials {
			detail, err := w.service.TrialDetail(w.ctx, created.ID, listed.Number)
			if err != nil || detail.Trial.Rank != listed.Rank || listed.Rank > 0 && listed.Rank != place+1 {
				t.Errorf("trial %d is at place %d with rank %d, and says %d, %v", listed.Number, place+1, listed.Rank, detail.Trial.Rank, err)
			}
		}
	})(t)
}
