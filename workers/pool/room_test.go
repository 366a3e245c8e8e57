package pool_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
)

const gib = int64(1) << 30

func TestRoom(t *testing.T) {
	elastic := protocol.WorkerRegistration{Slots: 3, Elastic: true, Machine: protocol.Machine{Cores: 4, MemoryBytes: 10 * gib}}
	fixed := protocol.WorkerRegistration{Slots: 2, Machine: protocol.Machine{Cores: 4}}
	for name, test := range map[string]struct {
		registration protocol.WorkerRegistration
		held         []pool.Lease
		cores        int
		memory       int64
		fits         bool
	}{
		"an idle machine takes what needs all of it":        {elastic, nil, 0, 100 * gib, true},
		"one core beside three":                             {elastic, []pool.Lease{{Cores: 3}}, 1, 0, true},
		"two cores beside three":                            {elastic, []pool.Lease{{Cores: 3}}, 2, 0, false},
		"beside one that needs all":                         {elastic, []pool.Lease{{Cores: 0}}, 1, 0, false},
		"what needs all beside one":                         {elastic, []pool.Lease{{Cores: 1}}, 0, 0, false},
		"a fourth, of three slots":                          {elastic, []pool.Lease{{Cores: 1}, {Cores: 1}, {Cores: 1}}, 1, 0, false},
		"memory for it":                                     {elastic, []pool.Lease{{Cores: 1, MemoryBytes: 5 * gib}}, 1, 4 * gib, true},
		"no memory for it":                                  {elastic, []pool.Lease{{Cores: 1, MemoryBytes: 6 * gib}}, 1, 4 * gib, false},
		"more trials than there is room for":                {elastic, []pool.Lease{{Cores: 4}, {Cores: 4}}, 1, 0, false},
		"a worker that divides its machine itself is asked": {fixed, []pool.Lease{{Cores: 0}}, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pool.RoomOf(pool.Member{Registration: test.registration}, test.held).Fits(pool.Need{Cores: test.cores, MemoryBytes: test.memory}); got != test.fits {
				t.Errorf("fits: %v, want %v", got, test.fits)
			}
		})
	}
	reserving := pool.Member{Registration: elastic, Reserved: 3}
	if room := pool.RoomOf(reserving, []pool.Lease{{Cores: 1}}); room.Cores != 0 || room.Fits(pool.Need{Cores: 1}) {
		t.Errorf("beside a reservation of 3 of 4 cores and a trial on the fourth there are %d free", room.Cores)
	}
	if share := pool.RoomOf(pool.Member{Registration: fixed}, nil).Share(); share != 2 {
		t.Errorf("a trial's share of 4 cores for 2 is %d", share)
	}
}

// TestCoresAreNotGivenTwice grants whatever fits: the cores of the trials never
// add up to more than there are, but for one that has the machine alone.
func TestCoresAreNotGivenTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cores := rapid.IntRange(1, 8).Draw(t, "cores")
		member := pool.Member{Registration: protocol.WorkerRegistration{Slots: 8, Elastic: true, Machine: protocol.Machine{Cores: cores}}}
		var leases pool.Leases
		id := rapid.SampledFrom([]trial.ID{"a-0", "a-1", "a-2", "a-3"})
		t.Repeat(map[string]func(*rapid.T){
			"grant": func(t *rapid.T) {
				wanted, of := rapid.IntRange(0, cores).Draw(t, "wanted"), id.Draw(t, "trial")
				if !leases.Has(of, 1) && pool.RoomOf(member, leases.Of("w")).Fits(pool.Need{Cores: wanted}) {
					leases.Grant(pool.Lease{Trial: of, Epoch: 1, Worker: "w", Cores: wanted})
				}
			},
			"release": func(t *rapid.T) { leases.Release(id.Draw(t, "trial")) },
			"resize": func(t *rapid.T) {
				of := id.Draw(t, "trial")
				held := leases.Of("w")
				at := slices.IndexFunc(held, func(l pool.Lease) bool { return l.Trial == of })
				if at < 0 {
					return
				}
				own := held[at].Cores
				if own == 0 {
					own = cores
				}
				free := pool.RoomOf(member, held).Cores + own
				leases.Resize(of, 1, rapid.IntRange(1, max(1, free)).Draw(t, "cores"), 0)
			},
			"": func(t *rapid.T) {
				used := 0
				for _, lease := range leases.Of("w") {
					if lease.Cores == 0 {
						used += cores
					}
					used += lease.Cores
				}
				if used > cores {
					t.Fatalf("%d of %d cores are given to %v", used, cores, leases.Of("w"))
				}
			},
		})
	})
}
