package study

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
)

// scratch makes a plan as it was made before anything was kept between two: each study
// is asked of each worker, all studies are sorted for each trial, and every trial is
// looked at anew.
type scratch struct {
	*Service
	t *testing.T
}

func (s scratch) plan() []planned {
	stands := s.stands()
	if len(typesOf(stands)) < 2 {
		return nil
	}
	return s.place(s.offers(stands), stands)
}

// stands are the workers that wait, each looked at by itself.
func (s scratch) stands() (stands []stand) {
	for _, worker := range slices.Sorted(maps.Keys(s.line.waiting)) {
		w, here := s.line.waiting[worker], s.lockedSite(worker, "")
		member, known := s.workers.Member(worker)
		voices := w.voices
		if here.room.Elastic {
			voices = min(voices, here.room.Slots-here.room.Trials)
		}
		if known && voices > 0 {
			stands = append(stands, stand{worker: worker, host: member.Registration.Name, machine: member.Registration.Machine.Type(), caller: w.caller, trials: voices, room: here.room})
		}
	}
	return stands
}

func (s scratch) may(r *session, t *trial.Trial, stands []stand, back pool.Amount) *answer {
	one := &answer{may: make([]bool, len(stands)), first: -1}
	for i, stand := range stands {
		member, _ := s.workers.Member(stand.worker)
		need := s.needOf(r, t, stand.room.Machine)
		if one.may[i] = stand.caller.sees(r.id, r.owner) && suited(r, member) && s.withheld(r, member, need, back).reason == "" && stand.room.Fits(need); one.may[i] {
			one.trials += stand.trials
			if one.first < 0 {
				one.first = i
			}
		}
	}
	return one
}

func (s scratch) ready(id string, stands []stand, most int) (ready []offer) {
	r := s.sessions[id]
	needs := map[int]pool.Need{}
	for _, one := range stands {
		needs[one.room.Machine] = s.needOf(r, nil, one.room.Machine)
	}
	q := question{field: &field{stands: stands}, types: typesOf(stands), probes: probed{known: s.gatherProbes()}}
	kept := s.awaitingOf(r)
	for _, number := range r.waitingTrials(kept) {
		if len(ready) >= most {
			break
		}
		one := r.offered(s.may(r, nil, stands, pool.Amount{}), needs, stands)
		if worker, moved := kept[number]; moved {
			one.open = s.may(r, &r.trials[number], stands, s.keptAmount(r, worker)).may
			one.suits = slices.Clone(one.open)
			for i := range stands {
				one.suits[i] = one.suits[i] && stands[i].worker == worker
			}
			one.kept, one.need, one.takes = s.workerName(worker), pool.Need{}, pool.Amount{}
			if at := slices.Index(one.suits, true); at >= 0 {
				one.need = needs[stands[at].room.Machine]
				one.takes = stands[at].room.Takes(one.need)
			}
		}
		one.number, one.epochs = number, sights(r.outlook, r.outlook.encode(r.trials[number].Configuration), r.trials[number].Budget.DataFraction, q)
		ready = append(ready, one)
	}
	ready = slices.DeleteFunc(ready, func(one offer) bool { return !slices.Contains(one.suits, true) })
	room := 0
	for i := range stands {
		if len(ready) > 0 && ready[0].open[i] {
			room += stands[i].trials
		}
	}
	return ready[:min(len(ready), room)]
}

func (s scratch) offers(stands []stand) (offers []offer) {
	asked := 0
	for _, one := range stands {
		asked += one.trials
	}
	candidates, ready := s.candidates(Caller{}), map[string][]offer{}
	for _, one := range candidates {
		ready[one.Study] = s.ready(one.Study, stands, asked)
	}
	books := s.books(candidates)
	for len(offers) < asked {
		candidates = slices.DeleteFunc(candidates, func(c pool.Candidate) bool { return len(ready[c.Study]) == 0 })
		if len(candidates) == 0 {
			break
		}
		slices.SortFunc(candidates, func(a, b pool.Candidate) int { return compareTurns(&a, &b) })
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
func (s scratch) place(offers []offer, stands []stand) []planned {
	list, rooms, left := make([]planned, len(offers)), roomsOf(stands), make([]int, len(stands))
	for i := range stands {
		left[i] = stands[i].trials
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
			machine := stands[at].machine
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
			list[i].worker, list[i].machine = stands[best].worker, stands[best].machine
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
	leased []trial.ID
	learnt int
}

func newMixture(t *testing.T, seed uint64) *mixture {
	m := &mixture{t: t, random: rand.New(rand.NewPCG(seed, 7)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), leaves: map[string][]func(){}}
	m.s = New(nil, nil, Options{Now: func() time.Time { return m.now }})
	m.s.rules.quotas = map[string]pool.Quota{"ada": {Trials: 6, Weight: 2}, "bob": {GPUs: 3}}
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
		m.s.workers.Register(one, []string{"", "", "", "user:ada"}[m.random.IntN(4)], m.now)
	case 2, 3, 4, 16, 17: // one waits
		if _, known := m.s.workers.Member(worker); known {
			ctx := WithCaller(m.t.Context(), []Caller{{}, {}, {}, {Owner: "ada", Sight: Own}}[m.random.IntN(4)])
			m.leaves[worker] = append(m.leaves[worker], m.s.standInLine(ctx, protocol.LeaseRequest{Worker: worker, WaitSeconds: 20}))
		}
	case 5: // one waits no more, or says goodbye
		if leaves := m.leaves[worker]; len(leaves) > 0 {
			leaves[0]()
			m.leaves[worker] = leaves[1:]
		} else {
			m.s.workers.Remove(worker)
		}
	case 6, 7, 18, 19: // a trial is queued
		number := len(r.trials)
		r.trials = append(r.trials, trial.Trial{
			ID: trialID(r.id, number), Number: number, State: trial.Queued, Budget: r.ladder[m.random.IntN(len(r.ladder))].Budget,
			Configuration: space.Configuration{"x": space.Float(m.random.Float64()), "z": space.String("b")},
		})
		r.queue = append(r.queue, number)
	case 8, 15: // one starts
		if _, known := m.s.workers.Member(worker); known && len(r.queue) > 0 {
			t := &r.trials[r.queue[0]]
			r.queue = r.queue[1:]
			r.held++
			lease := pool.Lease{Trial: t.ID, Epoch: 1, Study: r.id, Owner: r.owner, Priority: r.study.Definition.Priority, Worker: worker, Cores: 1}
			if room := m.s.lockedSite(worker, "").room; len(room.GPUs) > 0 && m.random.IntN(2) == 0 {
				lease.GPUs = room.GPUs[:1]
			}
			m.s.leases.Grant(lease)
			m.leased = append(m.leased, t.ID)
		}
	case 9, 13, 14: // one ends, or is kept for a worker
		if len(m.leased) > 0 {
			id := m.leased[0]
			m.leased = m.leased[1:]
			lease, _ := m.s.leases.Lease(id)
			of, number := m.s.sessions[lease.Study], 0
			m.s.leases.Release(id)
			of.held--
			if _, number = studyOf(id); m.random.IntN(4) > 0 {
				of.queue = append(of.queue, number)
				if waiting := m.s.line.sorted; len(waiting) > 0 {
					worker = waiting[m.random.IntN(len(waiting))]
				}
				lease.Worker = worker
				m.s.leases.Keep(pool.Keeping{Lease: lease, Until: m.now.Add(time.Minute), Awaited: m.now})
			}
		}
	case 10: // something is learned
		if len(r.trials) > 0 {
			m.learnt++
			r.outlook.learn(r.trials[m.random.IntN(len(r.trials))], trial.Report{
				Epoch: m.learnt, LeaseEpoch: 1, Seconds: trial.Float(1 + m.random.Float64()), Energy: trial.Energy{Joules: trial.Float(m.random.Float64()), Method: "rapl"}, Machine: m.machine(m.random.IntN(3)).Type(),
			})
		}
	case 11: // a worker is drained, or is not any more, or refuses a study
		m.s.workers.Refuse(m.anyWorker(), r.id, "no")
		if member, known := m.s.workers.Member(worker); known {
			key := drainKey{member.Registration.Name, member.Holder}
			if _, drained := m.s.rules.drains[key]; drained {
				delete(m.s.rules.drains, key)
			} else {
				m.s.rules.drains[key] = protocol.Drain{Since: m.now}
			}
		}
	case 12: // a worker is reserved, one asks for one study only, time passes
		m.s.rules.reservations = []pool.Reservation{{ID: "r", User: "bob", Worker: fmt.Sprint("name-", m.random.IntN(9)), From: m.now.Add(-time.Hour), To: m.now.Add(time.Hour)}}
		m.s.workers.NoteOnly(worker, []string{"", r.id}[m.random.IntN(2)])
		m.now = m.now.Add(2 * time.Second)
	}
}

// TestAPlanIsTheOneFromScratch: whatever changed in between, and in whichever order.
func TestAPlanIsTheOneFromScratch(t *testing.T) {
	plans, placed, keptPlans := 0, 0, 0
	for seed := range uint64(effort.Times(t, 15)) { // 300 in scripts/test long
		m := newMixture(t, seed)
		for step := range 60 {
			m.change()
			want := scratch{m.s, t}.plan()
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
