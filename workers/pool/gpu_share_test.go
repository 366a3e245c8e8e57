package pool_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare/packing"
	"github.com/tandem-tune/tandem/workers/pool"
)

// gpuBox is a worker with GPUs of so many GiB.
func gpuBox(slots int, gibs ...int64) pool.Member {
	machine := protocol.Machine{Cores: 64}
	for _, one := range gibs {
		machine.GPUs = append(machine.GPUs, "NVIDIA A100")
		machine.GPUMemoryBytes = append(machine.GPUMemoryBytes, one*gib)
	}
	return pool.Member{Registration: protocol.WorkerRegistration{Slots: slots, Machine: machine}}
}

func TestWhichGPUAShareGets(t *testing.T) {
	part := func(utilization float64, gibs int64) pool.GPUShare {
		return pool.GPUShare{Utilization: utilization, MemoryBytes: gibs * gib}
	}
	on := func(id trial.ID, place int, share pool.GPUShare) pool.Lease {
		return pool.Lease{Trial: id, GPUs: []int{place}, GPUShare: &share}
	}
	refusing := part(0.2, 2)
	refusing.Refuses = func(resident trial.ID) bool { return resident == "a" }
	joining := part(0.2, 2)
	joining.Joins = true
	for name, test := range map[string]struct {
		member pool.Member
		held   []pool.Lease
		share  pool.GPUShare
		want   string
	}{
		"an idle one first":                       {gpuBox(9, 16, 16), []pool.Lease{on("a", 0, part(0.2, 2))}, part(0.2, 2), "1"},
		"beside another where none is idle":       {gpuBox(9, 16), []pool.Lease{on("a", 0, part(0.2, 2))}, part(0.2, 2), "0 beside"},
		"three are the most":                      {gpuBox(9, 16), []pool.Lease{on("a", 0, part(0.2, 2)), on("b", 0, part(0.2, 2)), on("c", 0, part(0.2, 2))}, part(0.2, 2), "none"},
		"the time adds up to one":                 {gpuBox(9, 16), []pool.Lease{on("a", 0, part(0.5, 2))}, part(0.5, 2), "0 beside"},
		"and not to more":                         {gpuBox(9, 16), []pool.Lease{on("a", 0, part(0.5, 2))}, part(0.51, 2), "none"},
		"the memory too":                          {gpuBox(9, 16), []pool.Lease{on("a", 0, part(0.1, 9))}, part(0.1, 8), "none"},
		"the smaller GPU is too small":            {gpuBox(9, 8, 24), nil, part(0.1, 9), "1"},
		"a part of the memory":                    {gpuBox(9, 16), []pool.Lease{on("a", 0, part(0.1, 9))}, pool.GPUShare{Utilization: 0.5, MemoryPart: 0.5}, "none"},
		"a part of a larger one's memory":         {gpuBox(9, 20), []pool.Lease{on("a", 0, part(0.1, 9))}, pool.GPUShare{Utilization: 0.5, MemoryPart: 0.5}, "0 beside"},
		"of which nothing is known, alone":        {gpuBox(9, 16, 16), []pool.Lease{on("a", 0, part(0.1, 1))}, part(-1, 0), "1"},
		"and beside nobody":                       {gpuBox(9, 16), []pool.Lease{on("a", 0, part(0.1, 1))}, part(-1, 0), "none"},
		"nobody beside it":                        {gpuBox(9, 16), []pool.Lease{on("a", 0, part(-1, 0))}, part(0.1, 1), "none"},
		"not beside a whole one":                  {gpuBox(9, 16), []pool.Lease{{Trial: "a", GPUs: []int{0}}}, part(0.1, 1), "none"},
		"a pair that is refused":                  {gpuBox(9, 16), []pool.Lease{on("a", 0, part(0.1, 1))}, refusing, "none"},
		"another pair":                            {gpuBox(9, 16), []pool.Lease{on("b", 0, part(0.1, 1))}, refusing, "0 beside"},
		"only beside others":                      {gpuBox(9, 16, 16), []pool.Lease{on("a", 1, part(0.1, 1))}, joining, "1 beside"},
		"a GPU of unknown memory is taken alone":  {gpuBox(9, 0), nil, part(0.1, 1), "0"},
		"and not shared":                          {gpuBox(9, 0), []pool.Lease{on("a", 0, part(0.1, 1))}, part(0.1, 1), "none"},
		"a worker without GPUs":                   {gpuBox(9), nil, part(0.1, 1), "none"},
		"one that is being decided counts as any": {gpuBox(9, 16), []pool.Lease{on("", 0, part(0.6, 1))}, part(0.6, 1), "none"},
	} {
		t.Run(name, func(t *testing.T) {
			room := pool.RoomOf(test.member, test.held)
			got := "none"
			place, _, joins, fits := room.GPUFor(test.share)
			if fits {
				got = fmt.Sprint(place)
				if joins {
					got += " beside"
				}
			}
			if got != test.want || room.Fits(pool.Need{GPUShare: &test.share, Cores: 1}) != fits {
				t.Errorf("it gets %s, want %s", got, test.want)
			}
		})
	}
}

// TestWhatSharesAGPUFitsThere grants whatever fits, releases and learns what
// trials really take: no GPU ever has more trials than may share one, and where
// nothing was learned since, neither the memory nor the time of one is given twice;
// whole GPUs and parts never mix, and a trial of which nothing is known is alone.
func TestWhatSharesAGPUFitsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		member := gpuBox(64, rapid.SliceOfN(rapid.Int64Range(8, 24), 1, 3).Draw(t, "GPUs")...)
		var leases pool.Leases
		next, learned := 0, false
		drawn := func(t *rapid.T) pool.GPUShare {
			share := pool.GPUShare{Utilization: rapid.Float64Range(0, 1).Draw(t, "utilization"), MemoryBytes: gib * rapid.Int64Range(1, 12).Draw(t, "memory")}
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				share.Utilization = -1
			case 1:
				share.MemoryBytes, share.MemoryPart = 0, rapid.Float64Range(0.1, 1).Draw(t, "part")
			}
			return share
		}
		t.Repeat(map[string]func(*rapid.T){
			"share": func(t *rapid.T) {
				share, room := drawn(t), pool.RoomOf(member, leases.Of("w"))
				place, taken, joins, fits := room.GPUFor(share)
				if !fits {
					return
				}
				if joins == slices.Contains(room.GPUs, place) {
					t.Fatalf("GPU %d is idle, or it is not: %v", place, room.GPUs)
				}
				next++
				id := trial.ID(fmt.Sprintf("s-%d", next))
				after := room.With(pool.Need{GPUShare: &share})
				leases.Grant(pool.Lease{Trial: id, Epoch: 1, Worker: "w", Cores: 1, GPUs: []int{place}, GPUShare: &taken})
				if now := pool.RoomOf(member, leases.Of("w")); !slices.Equal(now.GPUs, after.GPUs) || len(now.Shared) != len(after.Shared) {
					t.Fatalf("foreseen were %v and %v, there are %v and %v", after.GPUs, after.Shared, now.GPUs, now.Shared)
				}
				if lease, _ := leases.Lease(id); lease.Beside != joins {
					t.Fatalf("it joins others: %v, and is beside them: %v", joins, lease.Beside)
				}
			},
			"whole": func(t *rapid.T) {
				room := pool.RoomOf(member, leases.Of("w"))
				if room.Fits(pool.Need{GPUs: 1, Cores: 1}) {
					next++
					leases.Grant(pool.Lease{Trial: trial.ID(fmt.Sprintf("w-%d", next)), Epoch: 1, Worker: "w", Cores: 1, GPUs: room.GPUs[:1]})
				}
			},
			"release": func(t *rapid.T) {
				if held := leases.HeldBy("w"); len(held) > 0 {
					leases.Release(rapid.SampledFrom(held).Draw(t, "trial"))
				}
			},
			"learn": func(t *rapid.T) {
				if held := leases.HeldBy("w"); len(held) > 0 {
					learned = true
					leases.Reshare(rapid.SampledFrom(held).Draw(t, "trial"), 1, drawn(t))
				}
			},
			"": func(t *rapid.T) { checkGPUs(t, member, leases.Of("w"), learned) },
		})
	})
}

// checkGPUs holds the invariants of what leases have of the worker's GPUs.
func checkGPUs(t *rapid.T, member pool.Member, held []pool.Lease, learned bool) {
	for place, bytes := range member.Registration.Machine.GPUMemoryBytes {
		whole, parts, alone := 0, 0, false
		time, memory := 0.0, int64(0)
		for _, lease := range held {
			switch {
			case !slices.Contains(lease.GPUs, place):
			case lease.GPUShare == nil:
				whole++
			default:
				parts++
				alone = alone || lease.GPUShare.Utilization < 0
				time, memory = time+lease.GPUShare.Utilization, memory+lease.GPUShare.MemoryBytes
			}
		}
		switch {
		case whole > 1 || whole > 0 && parts > 0 || parts > packing.MostJobs:
			t.Fatalf("GPU %d has %d trials for themselves and %d beside each other", place, whole, parts)
		case learned || parts < 2: // alone, a trial takes what it takes
		case alone || time > 1+1e-9 || memory > bytes:
			t.Fatalf("on GPU %d are %d trials with %g of its time and %d of %d bytes; one unknown: %v", place, parts, time, memory, bytes, alone)
		}
	}
}

// TestAKeptTrialTakesAGPUOfItsNewWorker: the places that it had are those of the
// worker that it comes from.
func TestAKeptTrialTakesAGPUOfItsNewWorker(t *testing.T) {
	var registry pool.Registry
	registration := gpuBox(8, 16, 16, 16).Registration
	registration.ID = "new"
	registry.Register(registration, "", start)
	part := pool.GPUShare{Utilization: 0.4, MemoryBytes: gib, Fraction: 0.4}
	for name, share := range map[string]*pool.GPUShare{"a whole GPU": nil, "a part": &part} {
		var leases pool.Leases
		leases.Grant(pool.Lease{Trial: "a-0", Epoch: 1, Worker: "new", GPUs: []int{0}})
		leases.Keep(pool.Keeping{Lease: pool.Lease{Trial: "b-0", Epoch: 1, Worker: "new", GPUs: []int{0}, GPUShare: share}})
		if held := pool.Hold(&registry, &leases, func(pool.Member) bool { return true }); held.FreeGPUs != 1 {
			t.Errorf("%s: %d GPUs are free of 3, of which one is taken and one awaited", name, held.FreeGPUs)
		}
	}
}

// TestPartsThatAddUpToAGPUAreOne, though their sum in binary is a little more.
func TestPartsThatAddUpToAGPUAreOne(t *testing.T) {
	held := pool.Holdings{ByOwner: map[string]pool.Amount{"bob": {GPUs: math.Nextafter(5, 6)}}, FreeGPUs: 1}
	reservations := []pool.Reservation{{User: "bob", GPUs: 6, From: start, To: start.Add(1)}}
	if pool.KeepsGPUs(reservations, held, pool.Asker{Owner: "ada", Need: pool.Need{GPUs: 1}}, start) == "" {
		t.Error("the sixth GPU of bob's is given away, who has five")
	}
}
