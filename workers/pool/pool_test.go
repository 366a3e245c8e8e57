package pool_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// TestLeasesAgainstAModel plays random grants, renewals, releases and waits
// against a plain list.
func TestLeasesAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var leases pool.Leases
		model := map[trial.ID]pool.Lease{}
		id := rapid.SampledFrom([]trial.ID{"s-0", "s-1", "s-2"})
		now := 0
		t.Repeat(map[string]func(*rapid.T){
			"grant": func(t *rapid.T) {
				lease := pool.Lease{
					Trial: id.Draw(t, "trial"), Epoch: trial.LeaseEpoch(rapid.IntRange(1, 3).Draw(t, "epoch")),
					Worker: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "worker"), Deadline: at(now + 60),
				}
				leases.Grant(lease)
				model[lease.Trial] = lease
			},
			"renew": func(t *rapid.T) {
				of, epoch := id.Draw(t, "trial"), trial.LeaseEpoch(rapid.IntRange(1, 3).Draw(t, "epoch"))
				held, out := model[of]
				out = out && held.Epoch == epoch
				if leases.Renew(of, epoch, at(now+60)) != out {
					t.Fatalf("renewing lease %d of %s: want %v", epoch, of, out)
				}
				if out {
					held.Deadline = at(now + 60)
					model[of] = held
				}
			},
			"release": func(t *rapid.T) {
				of := id.Draw(t, "trial")
				leases.Release(of)
				delete(model, of)
			},
			"wait": func(t *rapid.T) { now += rapid.IntRange(1, 50).Draw(t, "seconds") },
			"": func(t *rapid.T) {
				expired := map[trial.ID]bool{}
				for _, lease := range leases.Expired(at(now)) {
					expired[lease.Trial] = true
				}
				for _, of := range []trial.ID{"s-0", "s-1", "s-2"} {
					held, out := model[of]
					if expired[of] != (out && held.Deadline.Before(at(now))) {
						t.Fatalf("at %d s lease %+v: expired %v", now, held, expired[of])
					}
					if leases.Has(of, held.Epoch) != out || out && !slices.Contains(leases.HeldBy(held.Worker), of) {
						t.Fatalf("lease %+v is not found", held)
					}
				}
			},
		})
	})
}

func TestPostponeGivesNobodyMoreThanATerm(t *testing.T) {
	var leases pool.Leases
	leases.Grant(pool.Lease{Trial: "old", Epoch: 1, Deadline: at(10)})
	leases.Grant(pool.Lease{Trial: "new", Epoch: 1, Deadline: at(55)})
	leases.Postpone(30*time.Second, at(60))
	if got := leases.Expired(at(41)); len(got) != 1 || got[0].Trial != "old" {
		t.Errorf("at 41 s %v are over, want the old one, postponed to 40", got)
	}
	if got := leases.Expired(at(61)); len(got) != 2 {
		t.Errorf("at 61 s %v are over, want both", got)
	}
}

func TestOrder(t *testing.T) {
	candidates := []pool.Candidate{
		{Study: "young", Created: at(9)},
		{Study: "old", Created: at(1)},
		{Study: "busy", Running: 5, Created: at(0)},
		{Study: "urgent", Priority: 3, Running: 9, Created: at(5)},
		{Study: "unimportant", Priority: -1, Created: at(0)},
	}
	pool.Order(candidates)
	var got []string
	for _, candidate := range candidates {
		got = append(got, candidate.Study)
	}
	if want := []string{"urgent", "old", "young", "busy", "unimportant"}; !slices.Equal(got, want) {
		t.Errorf("a free worker tries %v, want %v", got, want)
	}
}

func TestRegistry(t *testing.T) {
	var registry pool.Registry
	if registry.Seen("a", at(0)) || registry.Remove("a") {
		t.Error("a worker nobody registered is known")
	}
	registry.Register(protocol.WorkerRegistration{ID: "b", Name: "rack"}, "", at(0))
	registry.Register(protocol.WorkerRegistration{ID: "a", Name: "rack"}, "", at(0))
	registry.Register(protocol.WorkerRegistration{ID: "c", Name: "desk"}, "", at(0))
	if !registry.Seen("a", at(100)) {
		t.Error("a registered worker is not known")
	}
	var ids []string
	for _, member := range registry.Members() {
		ids = append(ids, member.Registration.ID)
	}
	if !slices.Equal(ids, []string{"c", "a", "b"}) {
		t.Errorf("the workers are %v, want them by name, then id", ids)
	}
	registry.Forget(at(50))
	if members := registry.Members(); len(members) != 1 || members[0].Registration.ID != "a" {
		t.Errorf("after a while without a word %v are left, want the one that was heard of", members)
	}
}
