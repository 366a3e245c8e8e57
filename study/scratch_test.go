package study

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
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/rules"
	"github.com/tandem-tune/tandem/workers/scheduler"
)

// scratch makes a plan as it was made before anything was kept between two: each study
// is asked of each worker, all studies are sorted for each trial, and every trial is
// looked at anew.
type scratch struct {
	*mixture
}

func (s scratch) plan() []planned {
	stands := s.stands()
	if len(scheduler.Types(stands)) < 2 {
		return nil
	}
	return s.place(s.offers(stands), stands)
}

// stands are the workers that wait, each looked at by itself.
func (s scratch) stands() (stands []allocator.Stand) {
	for _, one := range s.s.allocator.Snapshot().Workers {
		worker, here, calls := one.Registration.ID, s.s.allocator.SiteOf(one.Registration.ID, ""), one.Calls
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

func (s scratch) may(r *session, t *trial.Trial, stands []allocator.Stand, back pool.Amount) *scheduler.Answer {
	one := &scheduler.Answer{May: make([]bool, len(stands)), First: -1}
	for i, stand := range stands {
		if one.May[i] = s.s.allocator.MayRun(s.s.ask(r, t), []allocator.Stand{stand}, back)[0]; one.May[i] {
			one.Trials += stand.Trials
			if one.First < 0 {
				one.First = i
			}
		}
	}
	return one
}

// probes are gathered from what each worker has said.
func (s scratch) probes() allocator.Probes {
	plain, set := map[string][]placement.Probe{}, map[string][]placement.Probe{}
	for _, worker := range s.s.allocator.Snapshot().Workers {
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
	return allocator.Probes{Known: plain}
}

func (s scratch) ready(id string, stands []allocator.Stand, most int) (ready []offer) {
	r := s.s.sessions[id]
	needs := map[int]pool.Need{}
	for _, one := range stands {
		needs[one.Room.Machine] = s.s.ask(r, nil).Need(one.Room.Machine)
	}
	q := question{Field: &scheduler.Field{Stands: stands}, types: scheduler.Types(stands), probes: s.probes()}
	kept := s.s.heldTrials(r)
	for _, number := range kept.First(r.queue) {
		if len(ready) >= most {
			break
		}
		one := r.offered(s.may(r, nil, stands, pool.Amount{}), needs, stands)
		if worker, moved := kept[number]; moved {
			back, name := s.s.allocator.HeldAmount(r.id, worker)
			one.open = s.may(r, &r.trials[number], stands, back).May
			one.suits = slices.Clone(one.open)
			for i := range stands {
				one.suits[i] = one.suits[i] && stands[i].Worker == worker
			}
			one.kept, one.need, one.takes = name, pool.Need{}, pool.Amount{}
			if at := slices.Index(one.suits, true); at >= 0 {
				one.need = needs[stands[at].Room.Machine]
				one.takes = stands[at].Room.Takes(one.need)
			}
		}
		one.number, one.epochs = number, sights(r.outlook, r.outlook.encode(r.trials[number].Configuration), r.trials[number].Budget.DataFraction, q)
		ready = append(ready, one)
	}
	ready = slices.DeleteFunc(ready, func(one offer) bool { return !slices.Contains(one.suits, true) })
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
	candidates, ready := s.s.candidates(Caller{}, s.s.allocator.Shares()), map[string][]offer{}
	for _, one := range candidates {
		ready[one.Study] = s.ready(one.Study, stands, asked)
	}
	books := s.s.books(candidates)
	for len(offers) < asked {
		candidates = slices.DeleteFunc(candidates, func(c pool.Candidate) bool { return len(ready[c.Study]) == 0 })
		if len(candidates) == 0 {
			break
		}
		slices.SortFunc(candidates, func(a, b pool.Candidate) int { return scheduler.Compare(&a, &b) })
		first := candidates[0]
		one := ready[first.Study][0]
		if !books.allow(first, one) {
			ready[first.Study] = nil
			continue
		}
		offers, ready[first.Study] = append(offers, one), ready[first.Study][1:]
		candidates[0].Running++
		if one.kept == "" {
			share := books.charge(first.Owner, one.takes)
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
func (s scratch) place(offers []offer, stands []allocator.Stand) []planned {
	list, rooms, left := make([]planned, len(offers)), roomsOf(stands), make([]int, len(stands))
	for i := range stands {
		left[i] = stands[i].Trials
	}
	for i := range offers {
		one := offers[i]
		best, score, scores := -1, 0.0, one.scores()
		// Only types on which it has room are compared with each other.
		var types []string
		var predictions []placement.Prediction
		firstOf := map[string]int{}
		for at := range stands {
			need := one.needs[rooms[at].Machine]
			if !one.suits[at] || left[at] < 1 || len(rooms[at].GPUs) < one.need.GPUs || !rooms[at].Fits(need) {
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
		list[i] = planned{offer: &one, scores: scores}
		if best >= 0 {
			list[i].worker, list[i].machine = stands[best].Worker, stands[best].Machine
			rooms[best], left[best] = rooms[best].With(one.needs[rooms[best].Machine]), left[best]-1
		}
	}
	return list
}

// mixture is a pool that a test changes at random.
type mixture struct {
	t      *testing.T
	s      *Service
	random *rand.Rand
	now    time.Time
	leaves map[string][]func()
	// callers are whose calls wait, by worker.
	callers map[string]Caller
	leased  []trial.ID
	learnt  int
}

func newMixture(t *testing.T, seed uint64) *mixture {
	m := &mixture{t: t, random: rand.New(rand.NewPCG(seed, 7)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), leaves: map[string][]func(){}, callers: map[string]Caller{}}
	m.s = New(nil, nil, Options{Now: func() time.Time { return m.now }})
	m.s.allocator.Govern(func(r *rules.Rules) { r.SetQuota("ada", &pool.Quota{Trials: 6, Weight: 2}) })
	m.s.allocator.Govern(func(r *rules.Rules) { r.SetQuota("bob", &pool.Quota{GPUs: 3}) })
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
	def, err := studyfile.Parse([]byte(fmt.Sprintf(`
name: study-%d
command: [train]
objective: {metric: accuracy, direction: maximize}
space: {x: {type: float, low: 0, high: 1}, z: {values: [a, b, c]}}
%s
`, i, extra)), studyfile.YAML)
	if err != nil {
		m.t.Fatal(err)
	}
	r := &session{id: fmt.Sprint("study", i), owner: []string{"", "ada", "bob"}[i%3], ladder: def.Budget.Ladder(), waiting: true, use: use{}}
	r.study = Study{ID: r.id, Owner: r.owner, Definition: def, Status: protocol.StudyRunning, Created: m.now.Add(time.Duration(i/2) * time.Second)}
	r.outlook = newOutlook(def.Space)
	m.s.sessions[r.id] = r
}

func (m *mixture) machine(kind int) protocol.Machine {
	return []protocol.Machine{
		{CPUModel: "plain", Cores: 4, MemoryBytes: 16 << 30}, {CPUModel: "large", Cores: 16, MemoryBytes: 64 << 30},
		{CPUModel: "gpus", Cores: 8, MemoryBytes: 32 << 30, GPUs: []string{"A100", "A100"}},
	}[kind]
}

func (m *mixture) anyStudy() *session { return m.s.sessions[fmt.Sprint("study", m.random.IntN(8))] }

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
		caller := Caller{Holder: []string{"", "", "", "user:ada"}[m.random.IntN(4)]}
		if err := m.s.allocator.Register(caller, one); err != nil {
			m.t.Fatal(err)
		}
	case 2, 3, 4, 16, 17: // one waits
		if member, _, known := m.s.allocator.Worker(worker); known {
			m.callers[worker] = []Caller{{}, {}, {}, {Owner: "ada", Sight: Own}}[m.random.IntN(4)]
			only := member.Only
			m.leaves[worker] = append(m.leaves[worker], enqueue(m.t, m.s, m.callers[worker], worker))
			m.only(worker, only) // it waits for what it asked for before
		}
	case 5: // one waits no more, or says goodbye
		if leaves := m.leaves[worker]; len(leaves) > 0 {
			leaves[0]()
			m.leaves[worker] = leaves[1:]
		} else {
			m.s.allocator.Remove(Caller{}, worker)
		}
	case 6, 7, 18, 19: // a trial is queued
		number := len(r.trials)
		r.trials = append(r.trials, trial.Trial{
			ID: trialID(r.id, number), Number: number, State: trial.Queued, Budget: r.ladder[m.random.IntN(len(r.ladder))].Budget,
			Configuration: space.Configuration{"x": space.Float(m.random.Float64()), "z": space.String("b")},
		})
		r.queue = append(r.queue, number)
	case 8, 15: // one starts
		if _, _, known := m.s.allocator.Worker(worker); known && len(r.queue) > 0 {
			t := &r.trials[r.queue[0]]
			r.queue = r.queue[1:]
			r.held++
			lease := pool.Lease{Trial: t.ID, Epoch: 1, Study: r.id, Owner: r.owner, Priority: r.study.Definition.Priority, Worker: worker, Cores: 1}
			if room := m.s.allocator.SiteOf(worker, "").Room; len(room.GPUs) > 0 && m.random.IntN(2) == 0 {
				lease.GPUs = room.GPUs[:1]
			}
			m.s.allocator.Regrant([]pool.Lease{lease})
			m.leased = append(m.leased, t.ID)
		}
	case 9, 13, 14: // one ends, or is kept for a worker
		if len(m.leased) > 0 {
			id := m.leased[0]
			m.leased = m.leased[1:]
			lease, _, _ := m.s.allocator.Leased(id)
			of, number := m.s.sessions[lease.Study], 0
			of.held--
			if _, number = studyOf(id); m.random.IntN(4) > 0 {
				of.queue = append(of.queue, number)
				if waiting := (scratch{m}).stands(); len(waiting) > 0 {
					worker = waiting[m.random.IntN(len(waiting))].Worker
				}
				holdFor(m.s, lease, worker, time.Minute)
			}
			m.s.allocator.Release(id, lease.Epoch)
		}
	case 10: // something is learned
		if len(r.trials) > 0 {
			m.learnt++
			r.outlook.learn(r.trials[m.random.IntN(len(r.trials))], trial.Report{
				Epoch: m.learnt, LeaseEpoch: 1, Seconds: trial.Float(1 + m.random.Float64()), Energy: trial.Energy{Joules: trial.Float(m.random.Float64()), Method: "rapl"}, Machine: m.machine(m.random.IntN(3)).Type(),
			})
		}
	case 11: // a worker is drained, or is not any more, or refuses a study
		m.s.allocator.Refuse(m.anyWorker(), r.id, "no")
		if member, _, known := m.s.allocator.Worker(worker); known {
			drain := &protocol.Drain{Since: m.now}
			if _, drained := m.s.allocator.Snapshot().Rules.Drains[rules.NameOf(member)]; drained {
				drain = nil
			}
			m.s.allocator.Govern(func(r *rules.Rules) { r.SetDrains(map[rules.WorkerName]*protocol.Drain{rules.NameOf(member): drain}) })
		}
	case 12: // a worker is reserved, one asks for one study only, time passes
		m.s.allocator.Govern(func(r *rules.Rules) { r.RemoveReservation("r") })
		m.s.allocator.Govern(func(r *rules.Rules) {
			r.AddReservation(pool.Reservation{ID: "r", User: "bob", Worker: fmt.Sprint("name-", m.random.IntN(9)), From: m.now.Add(-time.Hour), To: m.now.Add(time.Hour)})
		})
		m.only(worker, []string{"", r.id}[m.random.IntN(2)])
		m.now = m.now.Add(2 * time.Second)
	}
}

// only has the worker ask for the study only, if it is there.
func (m *mixture) only(worker, study string) {
	_, _ = m.s.allocator.Arrive(allocator.Visit{Worker: worker, Study: study})
}

// TestAPlanIsTheOneFromScratch: whatever changed in between, and in whichever order.
func TestAPlanIsTheOneFromScratch(t *testing.T) {
	plans, placed, keptPlans := 0, 0, 0
	for seed := range uint64(effort.Times(t, 15)) { // 300 in scripts/test long
		m := newMixture(t, seed)
		for step := range 60 {
			m.change()
			want := scratch{m}.plan()
			p := m.s.newPlan(t.Context(), "")
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
				same := one.study == other.study && one.number == other.number && one.kept == other.kept && one.worker == other.worker && one.machine == other.machine &&
					maps.Equal(one.scores, other.scores) && maps.Equal(one.epochs, other.epochs) && slices.Equal(one.suits, other.suits) && slices.Equal(one.open, other.open) &&
					reflect.DeepEqual(one.need, other.need) && one.takes == other.takes
				if !same {
					t.Fatalf("seed %d, step %d: offer %d is\n%+v, want\n%+v", seed, step, i, one.offer, other.offer)
				}
				if one.worker != "" {
					placed++
				}
				if one.kept != "" {
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
