package scheduler

import (
	"testing"

	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

// TestOffersTakeTurnsByShare: what was offered counts as if it were had.
func TestOffersTakeTurnsByShare(t *testing.T) {
	candidates := []pool.Candidate{{Study: "a", Owner: "ada", Share: 0.1}, {Study: "b", Owner: "bob", Share: 0.15}}
	all := books{pool.Amount{GPUs: 10}, map[string]*allocator.Account{"ada": {Has: pool.Amount{GPUs: 1}}, "bob": {Has: pool.Amount{GPUs: 2}, Quota: pool.Quota{Weight: 4.0 / 3}}}}
	order := ""
	turns := NewTurns(candidates)
	for range 5 {
		first, _ := turns.Next()
		order += first.Study
		turns.Reckon(first.Owner, all.charge(first.Owner, pool.Amount{GPUs: 1}))
	}
	if order != "ababa" {
		t.Errorf("the turns are %s", order)
	}
}

// TestAPlanLeavesRoomForWhatItPlaced: two trials want the faster worker, which asks
// for two and has the cores, the memory or the GPUs of one.
func TestAPlanLeavesRoomForWhatItPlaced(t *testing.T) {
	room := pool.Room{Elastic: true, Machine: 4, Cores: 4, MemoryBytes: 8 * gibibyte, MachineBytes: 8 * gibibyte, GPUs: []int{0, 1}, MachineGPUs: 2, Slots: 4}
	busy := room.With(pool.Need{Cores: 1, KeptCores: true})
	stands := []allocator.Stand{{Worker: "fast-1", Machine: "fast", Trials: 2, Room: busy}, {Worker: "slow-1", Machine: "slow", Trials: 2, Room: busy}}
	known := map[string]costmodel.Estimate{"fast": {Prediction: placement.Prediction{Seconds: 1}, Basis: trial.OwnEpochs}, "slow": {Prediction: placement.Prediction{Seconds: 2}, Basis: trial.OwnEpochs}}
	for name, test := range map[string]struct {
		need pool.Need
		want string
	}{
		"room for both": {pool.Need{Cores: 1, GPUs: 1}, "fast-1"},
		"cores":         {pool.Need{Cores: 2, KeptCores: true}, "slow-1"},
		"memory":        {pool.Need{Cores: 1, MemoryBytes: 5 * gibibyte}, "slow-1"},
		"GPUs":          {pool.Need{Cores: 1, GPUs: 2}, "slow-1"},
	} {
		one := offer{need: test.need, needs: map[int]pool.Need{4: test.need}, epochs: known, eligible: []bool{true, true}}
		list := []offer{one, one}
		place(list, stands)
		if list[0].worker != "fast-1" || list[1].worker != test.want {
			t.Errorf("%s: they are placed on %s and %s, want fast-1 and %s", name, list[0].worker, list[1].worker, test.want)
		}
	}
}
