package study

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/scheduler"
)

// next is the number of a trial that the search has not started yet.
const next = allocator.Next

// worthWaiting is by how much another machine's score must be better for a worker
// to be made to wait: predictions are not so exact.
const worthWaiting = 0.05

// offer is a trial that a study has ready.
type offer struct {
	study, title string // of the study: its id, and what the caller of a question calls it
	number       int    // of a queued trial, or next
	// kept is the worker that the trial is kept for, if it moved.
	kept   string
	energy float64
	// epochs is what an epoch should take, by type of machine; suits says for each
	// worker that waits whether it may run there and has room.
	epochs map[string]sight
	// scored are the scores by these, where they are known already.
	scored map[string]float64
	suits  []bool
	// open is suits, but for whom it is kept. suited says that one of them suits it, and
	// places how many trials those ask for that are open to it.
	open   []bool
	suited bool
	places int
	// needs is what it needs of a machine with so many cores.
	needs map[int]pool.Need
	// need is what it needs of a machine, and takes what it has there; both are zero
	// where no worker that waits suits it. parallel bounds its study's trials.
	need     pool.Need
	takes    pool.Amount
	parallel int
	// against is what keeps the study's next trial from starting, if that was asked.
	against []protocol.Wait
}

// name tells the offers of a plan from each other.
func (o *offer) name(at int) string { return strconv.Itoa(at) }

// planned is an offer with its place.
type planned struct {
	*offer
	worker  string // empty where none is free for it
	machine string // its type
	// scores has those of the types of machine on which it could run.
	scores map[string]float64
}

// plan is which worker should run what, of those who wait now.
type plan struct {
	stands []allocator.Stand // by their workers
	offers []planned
	// ofStudy has the places of each study's offers, in their order, for all studies
	// that could have had some.
	ofStudy map[string][]int
}

// planning keeps the newest plan, for all who ask before anything changes.
type planning struct {
	mutex   sync.Mutex // taken before those of studies
	plan    *plan
	changed <-chan struct{}
	// rescheduled is when running trials were last reconsidered.
	rescheduled time.Time
}

// plan places what studies have ready on the workers that wait and the one that
// asks (Rocha, algorithm 2); nil where all of them are of one type, so that there
// is nothing to choose.
func (s *Service) plan(ctx context.Context, asker string, candidates []pool.Candidate, arrival allocator.Arrival) *plan {
	changed := s.changes()
	if !arrival.Several {
		return nil
	}
	if !arrival.Waits {
		return s.newPlan(ctx, asker)
	}
	s.planning.mutex.Lock()
	defer s.planning.mutex.Unlock()
	// Who has left since is found to be gone; who came asks by itself. A study may have
	// work again before that is told.
	if s.planning.changed != changed || s.planning.plan == nil || !s.planning.plan.has(asker) || !s.planning.plan.covers(candidates) {
		s.planning.plan, s.planning.changed = s.newPlan(ctx, ""), changed
	}
	return s.planning.plan
}

func (s *Service) newPlan(ctx context.Context, asker string) *plan {
	stands := s.allocator.Stands(asker, callerOf(ctx))
	if len(scheduler.Types(stands)) < 2 {
		return nil
	}
	offers, asked := s.offers(ctx, stands)
	made := &plan{stands, placed(offers, stands), make(map[string][]int, len(asked))}
	for study := range asked {
		made.ofStudy[study] = nil
	}
	for i := range made.offers {
		study := made.offers[i].study
		made.ofStudy[study] = append(made.ofStudy[study], i)
	}
	return made
}

// placed gives the offers, in their order, to the workers that wait.
func placed(offers []offer, stands []allocator.Stand) []planned {
	machines := make([]placement.Machine, len(stands))
	for i, one := range stands {
		machines[i] = placement.Machine{Name: one.Worker, Type: one.Machine, Free: placement.Resources{Cores: one.Trials, GPUs: len(one.Room.GPUs)}}
	}
	rooms, tasks, list := roomsOf(stands), make([]placement.Task, len(offers)), make([]planned, len(offers))
	for i := range offers {
		one := &offers[i]
		tasks[i] = rooms.task(one, one.name(i))
		list[i] = planned{offer: one, scores: one.scored}
		if one.scored == nil {
			list[i].scores = one.scores()
		}
		takes := tasks[i].Placed
		tasks[i].Placed = func(at int) {
			takes(at)
			list[i].worker, list[i].machine = stands[at].Worker, stands[at].Machine
		}
	}
	placement.Place(tasks, machines, sightsOf(offers))
	return list
}

// rooms is what is free of workers that wait, as offers take it up.
type rooms []pool.Room

func roomsOf(stands []allocator.Stand) rooms {
	free := make(rooms, len(stands))
	for i, one := range stands {
		free[i] = one.Room
	}
	return free
}

// task is the offer as the placement sees it: it takes one of the trials that its
// worker asks for, and GPUs; and cores and memory, by the pool's own rule.
func (free rooms) task(one *offer, name string) placement.Task {
	need := func(machine int) pool.Need { return one.needs[free[machine].Machine] }
	return placement.Task{
		Name: name, Needs: placement.Resources{Cores: 1, GPUs: one.need.GPUs}, Energy: one.energy, Spread: one.need.GPUShare == nil,
		Suits: func(machine int) bool {
			return machine < len(one.suits) && one.suits[machine] && free[machine].Fits(need(machine))
		},
		Placed: func(machine int) { free[machine] = free[machine].With(need(machine)) },
	}
}

// question is for whom a study's offers are looked at.
type question struct {
	*scheduler.Field
	// all are the workers that run trials as well; only who asks about moves knows them.
	all    []allocator.Stand
	types  []string
	joined string // the types, as one
	probes allocator.Probes
	most   int
	// explain asks what is in the study's way, too, and what the caller calls it.
	explain bool
	caller  Caller
}

// offersOf is what one study has ready, the first to go first. One that is not in
// memory as it should be has nothing to compare: it is served as workers ask.
func (s *Service) offersOf(ctx context.Context, id string, q question) []offer {
	r := s.inMemory(id)
	if r == nil {
		return nil
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.stale || r.study.Status.Over() {
		return nil
	}
	may, needs := s.mayRun(r, nil, q.Field, pool.Amount{})
	kept := s.heldTrials(r)
	known := s.outlook(ctx, r)
	known.ask(q, r.loads)
	now := s.options.Now()
	offers := make([]offer, 0, min(q.most, len(r.queue)))
	offered := r.offered(may, needs, q.Stands)
	if q.explain {
		offered.against = s.waits(r)
	}
	title := called(r.study, q.caller)
	for _, number := range kept.First(r.queue) {
		if until, rests := r.resting[number]; rests && now.Before(until) || len(offers) >= q.most {
			continue
		}
		t := &r.trials[number]
		one := offered
		if worker, moved := kept[number]; moved {
			one = s.keptOffer(r, *t, worker, q.Field)
		}
		one.number, one.title = number, title
		one.epochs, one.scored = known.sighted(t, one.energy, q)
		offers = append(offers, one)
	}
	fresh := offered
	fresh.title = title
	if left := min(r.startable(), q.most-len(offers)); left > 0 {
		fresh.epochs = sights(known, known.typical, r.ladder[0].Budget.DataFraction, q)
		fresh.scored = fresh.scores()
		offers = append(offers, slices.Repeat([]offer{fresh}, left)...)
	}
	return offers
}

// keptOffer is what a trial of the study that is held for the worker has in common
// with its offers: it takes there what it gave back.
func (s *Service) keptOffer(r *session, t trial.Trial, worker string, f *scheduler.Field) offer {
	back, name := s.allocator.HeldAmount(r.id, worker)
	open, needs := s.mayRun(r, &t, f, back)
	here := &scheduler.Answer{May: make([]bool, len(f.Stands)), First: -1}
	for i := range f.Stands {
		if f.Stands[i].Worker == worker && open.May[i] {
			here.May[i], here.First = true, i
		}
	}
	one := r.offered(here, needs, f.Stands)
	one.kept, one.open, one.places = name, open.May, open.Trials
	return one
}

// mayRun says for each of the workers whether the study may run there and has room,
// if it gives so much back elsewhere; and what it needs, by the cores of a machine: the
// trial, or whichever comes next where that is nil.
func (s *Service) mayRun(r *session, t *trial.Trial, f *scheduler.Field, back pool.Amount) (may *scheduler.Answer, needs map[int]pool.Need) {
	ask, classes, needs := s.ask(r, t), make([]byte, len(f.First)), map[int]pool.Need{}
	stands := make([]allocator.Stand, len(f.First))
	for class, at := range f.First {
		stands[class] = f.Stands[at]
		needs[stands[class].Room.Machine] = ask.Need(stands[class].Room.Machine)
	}
	for class, may := range s.allocator.MayRun(ask, stands, back) {
		if may {
			classes[class] = 1
		}
	}
	return f.Answer(classes), needs
}

// choice is a study that a worker is to have a trial of.
type choice struct {
	study  string
	number int // of the queued trial that is meant for it, or next
	// types are the types of machine that it was chosen among, each with how many
	// workers waited; nil where there was nothing to choose.
	types []trial.PlacementOption
	// better is the worker for which all that the study has is meant, and machine the
	// type of the one that asks; both are empty where it may have it.
	better, machine string
	// asked says that the worker has asked for this study by its name, alone that nobody
	// waited with a machine of another type.
	asked, alone bool
}

// choices are the studies that the worker should get a trial of, the best one
// first: what the plan has for it, then the others in the pool's order.
func (s *Service) choices(ctx context.Context, worker string, arrival allocator.Arrival) (list []choice) {
	candidates := s.candidates(callerOf(ctx), arrival.Shares)
	if len(candidates) == 0 {
		return nil
	}
	p := s.plan(ctx, worker, candidates, arrival)
	if p == nil {
		for _, candidate := range candidates {
			list = append(list, choice{study: candidate.Study, number: next, alone: !arrival.Several})
		}
		return expectedFirst(list, candidates, arrival.Expected)
	}
	meant := map[string]bool{}
	for _, one := range p.offers {
		if one.worker == worker && !meant[one.study] {
			meant[one.study] = true
			list = append(list, choice{study: one.study, number: one.number, types: p.compared(one)})
		}
	}
	for _, candidate := range candidates {
		if meant[candidate.Study] {
			continue
		}
		added := choice{study: candidate.Study, number: next}
		if one, better := p.forOthers(candidate.Study, worker); one != nil {
			added.types = p.compared(*one)
			if better {
				added.better, added.machine = one.worker, p.typeOf(worker)
			}
		}
		list = append(list, added)
	}
	return expectedFirst(list, candidates, arrival.Expected)
}

// at is the place of the worker among those that the plan was made with; -1 if it was
// made without it.
func (p *plan) at(worker string) int {
	at, there := slices.BinarySearchFunc(p.stands, worker, func(one allocator.Stand, worker string) int { return strings.Compare(one.Worker, worker) })
	if !there {
		return -1
	}
	return at
}

// has reports whether the plan was made with the worker.
func (p *plan) has(worker string) bool { return p.at(worker) >= 0 }

// covers reports whether all candidates were asked for offers.
func (p *plan) covers(candidates []pool.Candidate) bool {
	return !slices.ContainsFunc(candidates, func(one pool.Candidate) bool { _, asked := p.ofStudy[one.Study]; return !asked })
}

func (p *plan) typeOf(worker string) string {
	if at := p.at(worker); at >= 0 {
		return p.stands[at].Machine
	}
	return ""
}

// forOthers finds an offer of the study, and whether all that the worker could
// have of it are meant for others on which something better is known of them than
// on the worker's machine. A machine of which nothing is known is not made to
// wait: this is how it becomes known.
func (p *plan) forOthers(study, worker string) (found *planned, better bool) {
	at := p.at(worker)
	for _, i := range p.ofStudy[study] {
		one := &p.offers[i]
		if at < 0 || !one.suits[at] {
			continue
		}
		found = one
		here, known := one.scores[p.stands[at].Machine]
		there, knownThere := one.scores[one.machine]
		if one.worker == "" || !known || !knownThere || there-here < worthWaiting {
			return one, false
		}
		better = true
	}
	return found, better
}

// compared are the types of machine that wait and on which the offer could run.
func (p *plan) compared(one planned) []trial.PlacementOption {
	var options []trial.PlacementOption
	for i, stand := range p.stands {
		if !one.open[i] {
			continue
		}
		at := slices.IndexFunc(options, func(o trial.PlacementOption) bool { return o.Machine == stand.Machine })
		if at < 0 {
			at = len(options)
			options = append(options, trial.PlacementOption{Machine: stand.Machine})
		}
		options[at].Waiting++
	}
	if len(options) < 2 {
		return nil
	}
	return options
}
