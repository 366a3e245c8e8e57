package pool_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
)

// cluster is a pool that is served as the server does it: whichever worker asks,
// the candidates are tried in order, and the first whose trial has room is given
// one. It keeps the owners' claims to fairness.
type cluster struct {
	registry pool.Registry
	leases   pool.Leases
	gangs    pool.Gangs
	members  []pool.Member
	studies  []pool.Candidate
	needs    map[string]pool.Need
	granted  int
	now      time.Time
}

func newCluster(t *rapid.T, elastic bool) *cluster {
	c := &cluster{needs: map[string]pool.Need{}, now: start}
	for i := range rapid.IntRange(1, 3).Draw(t, "machines") {
		cores := rapid.SampledFrom([]int{4, 8, 16}).Draw(t, "cores")
		machine := protocol.Machine{Cores: cores, MemoryBytes: 64 * gib, GPUs: slices.Repeat([]string{"A100"}, rapid.IntRange(0, 8).Draw(t, "gpus"))}
		c.registry.Register(protocol.WorkerRegistration{ID: fmt.Sprint("worker-", i), Name: fmt.Sprint("rack-", i), Slots: 32, Elastic: elastic, Machine: machine}, "", start)
	}
	c.members = c.registry.Members()
	for i := range rapid.IntRange(1, 5).Draw(t, "studies") {
		study := fmt.Sprint("s", i)
		c.studies = append(c.studies, pool.Candidate{Study: study, Owner: rapid.SampledFrom([]string{"ada", "bob", "eve"}).Draw(t, "owner"), Created: at(i)})
		c.needs[study] = pool.Need{GPUs: rapid.IntRange(0, 4).Draw(t, "gpus each"), Cores: rapid.IntRange(1, 4).Draw(t, "cores each"), KeptCores: true}
	}
	return c
}

func everybody(pool.Member) bool { return true }

// candidates are all studies in order: each always has work.
func (c *cluster) candidates() []pool.Candidate {
	held := pool.Hold(&c.registry, &c.leases, everybody)
	list := slices.Clone(c.studies)
	for i, one := range list {
		list[i].Share = held.ByOwner[one.Owner].DominantShare(held.Pool)
		for _, lease := range c.leases.All() {
			if lease.Study == one.Study {
				list[i].Running++
			}
		}
	}
	pool.Order(list)
	return list
}

func (c *cluster) fits(member pool.Member, study string) bool {
	return pool.RoomOf(member, c.leases.Of(member.Registration.ID)).Fits(c.needs[study])
}

// grant starts a trial of the study on the worker.
func (c *cluster) grant(member pool.Member, one pool.Candidate) {
	need := c.needs[one.Study]
	c.granted++
	c.now = c.now.Add(time.Second)
	room := pool.RoomOf(member, c.leases.Of(member.Registration.ID))
	c.leases.Grant(pool.Lease{
		Trial: trial.ID(fmt.Sprintf("%s-%d", one.Study, c.granted)), Epoch: 1, Study: one.Study, Owner: one.Owner, Worker: member.Registration.ID,
		Cores: need.Cores, KeptCores: true, GPUs: room.GPUs[:need.GPUs], Granted: c.now,
	})
	c.gangs.Gone(one.Study)
	c.gangs.Pass(one.Study, one.Priority, member)
}

// ask serves the worker once, as the server does; false if it gets nothing.
func (c *cluster) ask(member pool.Member) bool {
	for _, one := range c.candidates() {
		if _, kept := c.gangs.Keeps(member.Registration.ID, one.Study, one.Priority); kept {
			continue
		}
		if c.fits(member, one.Study) {
			c.grant(member, one)
			return true
		}
		c.wait(one)
	}
	return false
}

// wait notes a study that found no room, unless some worker has some.
func (c *cluster) wait(one pool.Candidate) {
	var options []pool.Option
	for _, member := range c.members {
		if !pool.RoomOf(member, nil).Fits(c.needs[one.Study]) {
			continue
		}
		if c.fits(member, one.Study) {
			return
		}
		room := pool.RoomOf(member, c.leases.Of(member.Registration.ID))
		options = append(options, pool.Option{Worker: member.Registration.ID, Name: member.Registration.Name, FreeGPUs: len(room.GPUs), FreeCores: room.Cores})
	}
	if len(options) > 0 {
		c.gangs.Wait(pool.Gang{Study: one.Study, Need: c.needs[one.Study], Since: c.now}, options)
	}
}

// fitsSomewhere reports whether an empty machine is large enough for the study.
func (c *cluster) fitsSomewhere(study string) bool {
	return slices.ContainsFunc(c.members, func(m pool.Member) bool { return pool.RoomOf(m, nil).Fits(c.needs[study]) })
}

// Whoever gets the next trial had the least of the pool of all whose trials had
// room on the worker that asked (no envy beyond one trial), and no worker with
// room for anybody's trial gets nothing (work-conserving), unless it is being
// cleared. No GPU and no core is given twice.
func TestTheNextTrialIsTheOneOfWhoHasLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t, rapid.Bool().Draw(t, "elastic"))
		for range rapid.IntRange(1, 60).Draw(t, "asks") {
			member := rapid.SampledFrom(c.members).Draw(t, "worker")
			before := pool.Hold(&c.registry, &c.leases, everybody)
			var could []pool.Candidate
			for _, one := range c.studies {
				if _, kept := c.gangs.Keeps(member.Registration.ID, one.Study, 0); c.fits(member, one.Study) && !kept {
					could = append(could, one)
				}
			}
			held := len(c.leases.All())
			if served := c.ask(member); served != (len(c.leases.All()) > held) || !served && len(could) > 0 && !c.cleared(member) {
				t.Fatalf("%d trials had room on %s, and it got one: %v", len(could), member.Registration.Name, served)
			}
			if len(c.leases.All()) > held {
				newest := slices.MaxFunc(c.leases.All(), func(a, b pool.Lease) int { return a.Granted.Compare(b.Granted) })
				share := before.ByOwner[newest.Owner].DominantShare(before.Pool)
				for _, one := range could {
					if other := before.ByOwner[one.Owner].DominantShare(before.Pool); other < share {
						t.Fatalf("%s got a trial with a share of %g, and %s had %g", newest.Owner, share, one.Owner, other)
					}
				}
			}
			c.check(t)
			if all := c.leases.All(); len(all) > 0 && rapid.Bool().Draw(t, "one ends") {
				slices.SortFunc(all, func(a, b pool.Lease) int { return strings.Compare(string(a.Trial), string(b.Trial)) })
				c.leases.Release(rapid.SampledFrom(all).Draw(t, "ended").Trial)
			}
		}
	})
}

// cleared reports whether the worker is being cleared for somebody.
func (c *cluster) cleared(member pool.Member) bool {
	_, kept := c.gangs.Keeps(member.Registration.ID, "nobody", -1)
	return kept
}

func (c *cluster) check(t *rapid.T) {
	for _, member := range c.members {
		given, cores := map[int]bool{}, 0
		for _, lease := range c.leases.Of(member.Registration.ID) {
			cores += lease.Cores
			for _, gpu := range lease.GPUs {
				if given[gpu] || gpu >= len(member.Registration.Machine.GPUs) {
					t.Fatalf("GPU %d of %s is given twice, or is none", gpu, member.Registration.Name)
				}
				given[gpu] = true
			}
		}
		if cores > member.Registration.Machine.Cores {
			t.Fatalf("%d of %d cores of %s are given", cores, member.Registration.Machine.Cores, member.Registration.Name)
		}
	}
}

// Every study whose trials fit some machine gets one, however
// large they are, as long as trials end: the bound is generous, and finite.
func TestNobodyStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t, false)
		served := map[string]int{}
		starved := func(one pool.Candidate) bool { return c.fitsSomewhere(one.Study) && served[one.Study] == 0 }
		// Up to 48 trials run, of which one ends in a round, and eight may pass a large
		// one, of which there are up to five.
		const rounds = 5 * (8 + 1) * 48
		for at := 0; at < rounds && slices.ContainsFunc(c.studies, starved); at++ {
			for _, member := range c.members {
				for c.ask(member) {
				}
			}
			for _, lease := range c.leases.All() {
				served[lease.Study]++ // it runs now
			}
			all := c.leases.All()
			if len(all) == 0 {
				continue
			}
			// The oldest ends, as if all took equally long: small trials are the worst
			// case for a large one, since there is always another of them.
			c.leases.Release(slices.MinFunc(all, func(a, b pool.Lease) int { return a.Granted.Compare(b.Granted) }).Trial)
		}
		for _, one := range c.studies {
			if starved(one) {
				t.Errorf("study %s of %s, whose trials need %+v, never ran; the others: %v", one.Study, one.Owner, c.needs[one.Study], served)
			}
		}
	})
}

func TestDominantShares(t *testing.T) {
	// The example of Ghodsi et al., section 4.1: 9 CPUs and 18 GB; A's tasks take
	// 1 CPU and 4 GB, B's 3 CPUs and 1 GB. A gets 3 tasks and B 2: both have 2/3.
	total := pool.Amount{Cores: 9, MemoryBytes: 18}
	a, b := pool.Amount{Trials: 3, Cores: 3, MemoryBytes: 12}, pool.Amount{Trials: 2, Cores: 6, MemoryBytes: 2}
	if a.DominantShare(total) != 2.0/3 || b.DominantShare(total) != 2.0/3 {
		t.Errorf("the shares are %g and %g, want 2/3 each", a.DominantShare(total), b.DominantShare(total))
	}
	if got := (pool.Amount{GPUs: 1}).DominantShare(pool.Amount{Cores: 4}); got != 0 {
		t.Errorf("of what the pool does not have, the share is %g", got)
	}
	for weight, want := range map[float64]float64{0: 0.5, 1: 0.5, 2: 0.25, -1: 0.5} {
		if got := pool.Weighted(0.5, weight); got != want {
			t.Errorf("with weight %g the share is %g, want %g", weight, got, want)
		}
	}
}

func TestVictims(t *testing.T) {
	member := func(id string, slots int) pool.Member {
		return pool.Member{Registration: protocol.WorkerRegistration{ID: id, Name: id, Slots: slots, Machine: protocol.Machine{Cores: 8, GPUs: []string{"a", "b"}}}}
	}
	lease := func(id trial.ID, priority, granted int, resumable bool, gpus ...int) pool.Lease {
		return pool.Lease{Trial: id, Epoch: 1, Priority: priority, Granted: at(granted), Resumable: resumable, GPUs: gpus}
	}
	one := pool.Need{GPUs: 1}
	for name, test := range map[string]struct {
		need  pool.Need
		hosts []pool.Host
		want  []trial.ID
	}{
		"there is room":                {one, []pool.Host{{Member: member("w", 2), Held: []pool.Lease{lease("a-0", 0, 1, true, 0)}}}, nil},
		"the youngest of the lowest":   {one, []pool.Host{{Member: member("w", 2), Held: []pool.Lease{lease("a-0", 0, 1, true, 0), lease("a-1", 0, 2, true, 1)}}}, []trial.ID{"a-1"}},
		"the lowest, not the youngest": {one, []pool.Host{{Member: member("w", 2), Held: []pool.Lease{lease("a-0", -1, 1, true, 0), lease("b-1", 0, 2, true, 1)}}}, []trial.ID{"a-0"}},
		"rather one with a checkpoint": {one, []pool.Host{{Member: member("w", 2), Held: []pool.Lease{lease("a-0", 1, 1, true, 0), lease("b-1", 0, 2, false, 1)}}}, []trial.ID{"a-0"}},
		"one without, if that is all":  {one, []pool.Host{{Member: member("w", 1), Held: []pool.Lease{lease("a-0", 0, 1, false, 0)}}}, []trial.ID{"a-0"}},
		"nobody of its own priority":   {one, []pool.Host{{Member: member("w", 1), Held: []pool.Lease{lease("a-0", 5, 1, true, 0)}}}, nil},
		"those on one machine": {pool.Need{GPUs: 2}, []pool.Host{
			{Member: member("v", 2), Held: []pool.Lease{lease("a-0", 0, 1, true, 0), lease("a-1", 0, 2, true, 1)}},
			{Member: member("w", 2), Held: []pool.Lease{lease("b-0", 0, 3, true, 0, 1)}},
		}, []trial.ID{"b-0"}},
		"only as many as it takes": {one, []pool.Host{{Member: member("w", 4), Held: []pool.Lease{lease("a-0", 0, 5, true), lease("a-1", 0, 4, true), lease("a-2", 0, 2, true, 0, 1)}}}, []trial.ID{"a-2"}},
		"nothing makes room":       {pool.Need{GPUs: 3}, []pool.Host{{Member: member("w", 2), Held: []pool.Lease{lease("a-0", 0, 1, true, 0, 1)}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []trial.ID
			for _, victim := range pool.Victims(5, test.need, test.hosts, at(100), 10*time.Minute) {
				got = append(got, victim.Trial)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%v make way, want %v", got, test.want)
			}
		})
	}
	recent := lease("a-0", 0, 1, true, 0)
	recent.Preempted = at(0)
	hosts := []pool.Host{{Member: member("w", 1), Held: []pool.Lease{recent}}}
	if got := pool.Victims(5, one, hosts, at(599), 10*time.Minute); got != nil {
		t.Errorf("one that made way 599 s ago is asked again: %v", got)
	}
	if got := pool.Victims(5, one, hosts, at(600), 10*time.Minute); len(got) != 1 {
		t.Errorf("one that made way 600 s ago is left in peace")
	}
	recent.Leave = "it leaves already"
	hosts[0].Held = []pool.Lease{recent}
	if got := pool.Victims(5, one, hosts, at(1000), 10*time.Minute); got != nil {
		t.Errorf("beside one that leaves, %v make way", got)
	}
}

func TestQuotasRefuseWhatGoesBeyondThem(t *testing.T) {
	for want, test := range map[string]struct {
		quota pool.Quota
		held  pool.Amount
		spent pool.Spent
		need  pool.Need
	}{
		"":                                  {pool.Quota{Trials: 2, GPUs: 4, GPUSeconds: 10, Joules: 5}, pool.Amount{Trials: 1, GPUs: 2}, pool.Spent{GPUSeconds: 9, Joules: 4}, pool.Need{GPUs: 2}},
		"user ada runs 2 of their 2 trials": {pool.Quota{Trials: 2}, pool.Amount{Trials: 2}, pool.Spent{}, pool.Need{}},
		"user ada holds 3 of their 4 GPUs":  {pool.Quota{GPUs: 4}, pool.Amount{GPUs: 3}, pool.Spent{}, pool.Need{GPUs: 2}},
		"may have 1 at once":                {pool.Quota{GPUs: 1}, pool.Amount{}, pool.Spent{}, pool.Need{GPUs: 2}},
		"used 24 of their 24 GPU-hours":     {pool.Quota{GPUSeconds: 86400}, pool.Amount{}, pool.Spent{GPUSeconds: 86400}, pool.Need{GPUs: 1}},
		"user ada has used 6 of their 5 J":  {pool.Quota{Joules: 5}, pool.Amount{}, pool.Spent{Joules: 6}, pool.Need{}},
	} {
		got := test.quota.Refusal("ada", test.held, test.spent, test.need)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	without := pool.Quota{GPUs: 1, GPUSeconds: 1}
	if got := without.Refusal("ada", pool.Amount{GPUs: 1}, pool.Spent{GPUSeconds: 5}, pool.Need{}); got != "" {
		t.Errorf("a trial without a GPU is refused: %s", got)
	}
}
