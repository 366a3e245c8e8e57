package scheduler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/rules"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

// scratch makes a plan as it was made before anything was kept between two: each study
// is asked of each worker, all studies are sorted for each trial, and every trial is
// looked at anew.
type scratch struct {
	*mixture
}

func (s scratch) plan() []offer {
	stands := s.stands()
	if len(Types(stands)) < 2 {
		return nil
	}
	return s.place(s.offers(stands), stands)
}

// stands are the workers that wait, each looked at by itself.
func (s scratch) stands() (stands []allocator.Stand) {
	for _, one := range s.allocator.Snapshot().Workers {
		worker, here, calls := one.Registration.ID, s.allocator.SiteOf(one.Registration.ID, ""), one.Calls
		if here.Room.Elastic {
			calls = min(calls, here.Room.Slots-here.Room.Trials)
		}
		if calls > 0 {
			stands = append(stands, allocator.Stand{Worker: worker, Host: one.Registration.Name, Machine: one.Registration.Machine.Type(), Caller: s.callers[worker], Trials: calls, Room: here.Room})
		}
	}
	slices.SortFunc(stands, func(a, b allocator.Stand) int { return strings.Compare(a.Worker, b.Worker) })
	return stands
}

func (s scratch) may(r *entry, stands []allocator.Stand, back pool.Amount) *Answer {
	one := &Answer{May: make([]bool, len(stands)), First: -1}
	for i, stand := range stands {
		if one.May[i] = s.allocator.MayRun(r.ask(), []allocator.Stand{stand}, back)[0]; one.May[i] {
			one.Trials += stand.Trials
			if one.First < 0 {
				one.First = i
			}
		}
	}
	return one
}

// probes are gathered from what each worker has said.
func (s scratch) probes() map[string][]placement.Probe {
	plain, set := map[string][]placement.Probe{}, map[string][]placement.Probe{}
	for _, worker := range s.allocator.Snapshot().Workers {
		for _, one := range worker.Registration.Probes {
			probe := placement.Probe{Workload: one.Workload, Setting: one.Setting, Took: placement.Prediction{Seconds: one.Seconds, Joules: one.Joules}}
			if one.Setting == "" {
				plain[worker.Type] = append(plain[worker.Type], probe)
			} else {
				set[worker.Type] = append(set[worker.Type], probe)
			}
		}
	}
	for machine, probes := range set {
		if len(plain[machine]) == 0 {
			plain[machine] = probes
		}
	}
	return plain
}

func (s scratch) ready(id string, stands []allocator.Stand, most int) (ready []offer) {
	r := s.studies[id]
	needs := map[int]pool.Need{}
	for _, one := range stands {
		needs[one.Room.Machine] = r.ask().Need(one.Room.Machine)
	}
	types := costmodel.TypesOf(Types(stands), s.probes(), 0)
	held := s.allocator.Placements.Held(r.ID, r.Queue)
	for _, number := range held.First(r.Queue) {
		if len(ready) >= most {
			break
		}
		one := r.offered(s.may(r, stands, pool.Amount{}), needs, stands)
		if worker, migrates := held[number]; migrates {
			back, name := s.allocator.HeldAmount(r.ID, worker)
			one.open = s.may(r, stands, back).May
			one.eligible = slices.Clone(one.open)
			for i := range stands {
				one.eligible[i] = one.eligible[i] && stands[i].Worker == worker
			}
			one.held, one.need, one.usage = name, pool.Need{}, pool.Amount{}
			if at := slices.Index(one.eligible, true); at >= 0 {
				one.need = needs[stands[at].Room.Machine]
				one.usage = stands[at].Room.Takes(one.need)
			}
		}
		one.number, one.epochs = number, r.costs.Each(r.costs.Encode(r.Trials[number].Configuration), r.Trials[number].Budget.DataFraction, types)
		ready = append(ready, one)
	}
	ready = slices.DeleteFunc(ready, func(one offer) bool { return !slices.Contains(one.eligible, true) })
	room := 0
	for i := range stands {
		if len(ready) > 0 && ready[0].open[i] {
			room += stands[i].Trials
		}
	}
	return ready[:min(len(ready), room)]
}

func (s scratch) offers(stands []allocator.Stand) (offers []offer) {
	asked := 0
	for _, one := range stands {
		asked += one.Trials
	}
	candidates, ready := s.s.Candidates(access.Caller{}, s.allocator.Shares()), map[string][]offer{}
	for _, one := range candidates {
		ready[one.Study] = s.ready(one.Study, stands, asked)
	}
	books := s.s.books(candidates)
	for len(offers) < asked {
		candidates = slices.DeleteFunc(candidates, func(c pool.Candidate) bool { return len(ready[c.Study]) == 0 })
		if len(candidates) == 0 {
			break
		}
		slices.SortFunc(candidates, func(a, b pool.Candidate) int { return Compare(&a, &b) })
		first := candidates[0]
		one := ready[first.Study][0]
		if !books.allow(first, one) {
			ready[first.Study] = nil
			continue
		}
		offers, ready[first.Study] = append(offers, one), ready[first.Study][1:]
		candidates[0].Running++
		if one.held == "" {
			share := books.charge(first.Owner, one.usage)
			for i := range candidates {
				if candidates[i].Owner == first.Owner {
					candidates[i].Share = share
				}
			}
		}
	}
	return offers
}

// place looks at each machine for each offer.
func (s scratch) place(offers []offer, stands []allocator.Stand) []offer {
	list, rooms, left := make([]offer, len(offers)), roomsOf(stands), make([]int, len(stands))
	for i := range stands {
		left[i] = stands[i].Trials
	}
	for i := range offers {
		one := offers[i]
		best, score, scores := -1, 0.0, costmodel.Scores(one.epochs, one.energy)
		// Only types on which it has room are compared with each other.
		var types []string
		var predictions []placement.Prediction
		firstOf := map[string]int{}
		for at := range stands {
			need := one.needs[rooms[at].Machine]
			if !one.eligible[at] || left[at] < 1 || len(rooms[at].GPUs) < one.need.GPUs || !rooms[at].Fits(need) {
				continue
			}
			machine := stands[at].Machine
			first, known := firstOf[machine]
			if !known {
				types, predictions = append(types, machine), append(predictions, one.epochs[machine].Prediction)
			}
			if !known || left[at] > left[first] || left[at] == left[first] && len(rooms[at].GPUs) > len(rooms[first].GPUs) {
				firstOf[machine] = at
			}
		}
		for k, value := range placement.Scores(predictions, one.energy) {
			at := firstOf[types[k]]
			emptier := best >= 0 && (left[at] > left[best] || left[at] == left[best] && len(rooms[at].GPUs) > len(rooms[best].GPUs))
			even := best >= 0 && left[at] == left[best] && len(rooms[at].GPUs) == len(rooms[best].GPUs)
			if best < 0 || value > score || value == score && (emptier || even && at < best) {
				best, score = at, value
			}
		}
		list[i] = one
		list[i].scores = scores
		if best >= 0 {
			list[i].worker, list[i].machine = stands[best].Worker, stands[best].Machine
			rooms[best], left[best] = rooms[best].With(one.needs[rooms[best].Machine]), left[best]-1
		}
	}
	return list
}

// mixture is a pool that a test changes at random.
type mixture struct {
	t         *testing.T
	s         *Scheduler
	allocator *allocator.Allocator
	studies   studies
	random    *rand.Rand
	now       time.Time
	leaves    map[string][]func()
	// callers are whose calls wait, by worker.
	callers map[string]access.Caller
	leased  []trial.ID
	learnt  int
}

func newMixture(t *testing.T, seed uint64) *mixture {
	m := &mixture{t: t, random: rand.New(rand.NewPCG(seed, 7)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), leaves: map[string][]func(){}, callers: map[string]access.Caller{}}
	now := func() time.Time { return m.now }
	m.allocator, m.studies = allocator.New(allocator.Options{Now: now, Term: time.Minute}), studies{}
	m.s = New(m.studies, m.allocator, now)
	m.allocator.Govern(func(r *rules.Rules) { r.SetQuota("ada", &pool.Quota{Trials: 6, Weight: 2}) })
	m.allocator.Govern(func(r *rules.Rules) { r.SetQuota("bob", &pool.Quota{GPUs: 3}) })
	for i := range 8 {
		m.study(i)
	}
	for range 100 {
		m.change()
	}
	return m
}

func (m *mixture) study(i int) {
	extra := []string{"", "priority: 1", "resources: {gpus: 1}", "parallel: 3", "resources: {cores: 2}", "resources: {memory_gib: 4}", "sandbox: strict", "placement: {energy: 0.7}"}[i]
	e := newEntry(m.t, fmt.Sprint("study", i), fmt.Sprintf(`
name: study-%d
command: [train]
objective: {metric: accuracy, direction: maximize}
space: {x: {type: float, low: 0, high: 1}, z: {values: [a, b, c]}}
%s
`, i, extra))
	e.owner, e.created = []string{"", "ada", "bob"}[i%3], m.now.Add(time.Duration(i/2)*time.Second)
	m.studies[e.ID] = e
}

func (m *mixture) machine(kind int) protocol.Machine {
	return []protocol.Machine{
		{CPUModel: "plain", Cores: 4, MemoryBytes: 16 << 30}, {CPUModel: "large", Cores: 16, MemoryBytes: 64 << 30},
		{CPUModel: "gpus", Cores: 8, MemoryBytes: 32 << 30, GPUs: []string{"A100", "A100"}},
	}[kind]
}

func (m *mixture) anyStudy() *entry { return m.studies[fmt.Sprint("study", m.random.IntN(8))] }

func (m *mixture) anyWorker() string { return fmt.Sprint("worker-", m.random.IntN(20)) }

// change is one of those that happen to a pool.
func (m *mixture) change() {
	r, worker := m.anyStudy(), m.anyWorker()
	switch m.random.IntN(20) {
	case 0, 1: // a worker comes, or registers again
		one := protocol.WorkerRegistration{ID: worker, Name: fmt.Sprint("name-", m.random.IntN(9)), Slots: 1 + m.random.IntN(2), Elastic: m.random.IntN(4) == 0, Machine: m.machine(m.random.IntN(3))}
		if m.random.IntN(2) == 0 {
			one.Probes = []protocol.Probe{{Workload: "w", Seconds: 1 + m.random.Float64(), Joules: 3}}
		}
		caller := access.Caller{Holder: []string{"", "", "", "user:ada"}[m.random.IntN(4)]}
		if err := m.allocator.Register(caller, one); err != nil {
			m.t.Fatal(err)
		}
	case 2, 3, 4, 16, 17: // one waits
		if member, _, known := m.allocator.Worker(worker); known {
			m.callers[worker] = []access.Caller{{}, {}, {}, {Owner: "ada", Sight: access.Own}}[m.random.IntN(4)]
			only := member.Only
			m.leaves[worker] = append(m.leaves[worker], enqueue(m.t, m.allocator, m.callers[worker], worker))
			m.only(worker, only) // it waits for what it asked for before
		}
	case 5: // one waits no more, or says goodbye
		if leaves := m.leaves[worker]; len(leaves) > 0 {
			leaves[0]()
			m.leaves[worker] = leaves[1:]
		} else {
			m.allocator.Remove(access.Caller{}, worker)
		}
	case 6, 7, 18, 19: // a trial is queued
		r.queue(r.ladder[m.random.IntN(len(r.ladder))].Budget, space.Configuration{"x": space.Float(m.random.Float64()), "z": space.String("b")})
	case 8, 15: // one starts
		if _, _, known := m.allocator.Worker(worker); known && len(r.Queue) > 0 {
			t := &r.Trials[r.Queue[0]]
			r.Queue = r.Queue[1:]
			r.running++
			lease := pool.Lease{Trial: t.ID, Epoch: 1, Study: r.ID, Owner: r.owner, Priority: r.priority, Worker: worker, Cores: 1}
			if room := m.allocator.SiteOf(worker, "").Room; len(room.GPUs) > 0 && m.random.IntN(2) == 0 {
				lease.GPUs = room.GPUs[:1]
			}
			m.allocator.Regrant([]pool.Lease{lease})
			m.leased = append(m.leased, t.ID)
		}
	case 9, 13, 14: // one ends, or is kept for a worker
		if len(m.leased) > 0 {
			id := m.leased[0]
			m.leased = m.leased[1:]
			lease, _, _ := m.allocator.Leased(id)
			of, number := m.studies[lease.Study], 0
			of.running--
			if number, _ = id.Number(); m.random.IntN(4) > 0 {
				of.Queue = append(of.Queue, number)
				if waiting := (scratch{m}).stands(); len(waiting) > 0 {
					worker = waiting[m.random.IntN(len(waiting))].Worker
				}
				holdFor(m.allocator, lease, worker, time.Minute, m.now)
			}
			m.allocator.Release(id, lease.Epoch)
		}
	case 10: // something is learned
		if len(r.Trials) > 0 {
			m.learnt++
			r.costs.Learn(r.Trials[m.random.IntN(len(r.Trials))], trial.Report{
				Epoch: m.learnt, LeaseEpoch: 1, Seconds: trial.Float(1 + m.random.Float64()), Energy: trial.Energy{Joules: trial.Float(m.random.Float64()), Method: "rapl"}, Machine: m.machine(m.random.IntN(3)).Type(),
			})
		}
	case 11: // a worker is drained, or is not any more, or refuses a study
		m.allocator.Refuse(m.anyWorker(), r.ID, "no")
		if member, _, known := m.allocator.Worker(worker); known {
			drain := &protocol.Drain{Since: m.now}
			if _, drained := m.allocator.Snapshot().Rules.Drains[rules.NameOf(member)]; drained {
				drain = nil
			}
			m.allocator.Govern(func(r *rules.Rules) { r.SetDrains(map[rules.WorkerName]*protocol.Drain{rules.NameOf(member): drain}) })
		}
	case 12: // a worker is reserved, one asks for one study only, time passes
		m.allocator.Govern(func(r *rules.Rules) { r.RemoveReservation("r") })
		m.allocator.Govern(func(r *rules.Rules) {
			r.AddReservation(pool.Reservation{ID: "r", User: "bob", Worker: fmt.Sprint("name-", m.random.IntN(9)), From: m.now.Add(-time.Hour), To: m.now.Add(time.Hour)})
		})
		m.only(worker, []string{"", r.ID}[m.random.IntN(2)])
		m.now = m.now.Add(2 * time.Second)
	}
}

// only has the worker ask for the study only, if it is there.
func (m *mixture) only(worker, study string) {
	_, _ = m.allocator.Arrive(allocator.Visit{Worker: worker, Study: study})
}

// TestAPlanIsTheOneFromScratch: whatever changed in between, and in whichever order.
func TestAPlanIsTheOneFromScratch(t *testing.T) {
	plans, placed, keptPlans := 0, 0, 0
	for seed := range uint64(effort.Times(t, 15)) { // 300 in scripts/test long
		m := newMixture(t, seed)
		for step := range 60 {
			m.change()
			want := scratch{m}.plan()
			p := m.s.newPlan(t.Context(), access.Caller{}, "")
			if p == nil {
				if len(want) > 0 {
					t.Fatalf("seed %d, step %d: there is no plan, want %d offers", seed, step, len(want))
				}
				continue
			}
			if len(p.offers) != len(want) {
				t.Fatalf("seed %d, step %d: %d offers, want %d", seed, step, len(p.offers), len(want))
			}
			plans++
			for i, one := range p.offers {
				other := want[i]
				same := one.study == other.study && one.number == other.number && one.held == other.held && one.worker == other.worker && one.machine == other.machine &&
					maps.Equal(one.scores, other.scores) && maps.Equal(one.epochs, other.epochs) && slices.Equal(one.eligible, other.eligible) && slices.Equal(one.open, other.open) &&
					reflect.DeepEqual(one.need, other.need) && one.usage == other.usage
				if !same {
					t.Fatalf("seed %d, step %d: offer %d is\n%+v, want\n%+v", seed, step, i, one, other)
				}
				if one.worker != "" {
					placed++
				}
				if one.held != "" {
					keptPlans++
				}
			}
		}
	}
	t.Logf("%d plans, %d places, %d kept", plans, placed, keptPlans)
	if plans < 500 || placed < 2000 || keptPlans < 50 {
		t.Errorf("only %d plans with %d places and %d trials that are kept were compared", plans, placed, keptPlans)
	}
}
