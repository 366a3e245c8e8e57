package study

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
)

// next is the number of a trial that the search has not started yet.
const next = -1

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
	suits  []bool
	// open is suits, but for whom it is kept.
	open []bool
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
func (o offer) name(at int) string { return strconv.Itoa(at) }

// planned is an offer with its place.
type planned struct {
	offer
	worker  string // empty where none is free for it
	machine string // its type
	// scores has those of the types of machine on which it could run.
	scores map[string]float64
}

// plan is which worker should run what, of those who wait now.
type plan struct {
	stands []stand
	offers []planned
}

// planning keeps the newest plan, for all who ask before anything changes.
type planning struct {
	mutex   sync.Mutex // taken before those of studies
	plan    *plan
	changed <-chan struct{}
}

// plan places what studies have ready on the workers that wait and the one that
// asks (Rocha, algorithm 2); nil where all of them are of one type, so that there
// is nothing to choose.
func (s *Service) plan(ctx context.Context, asker string) *plan {
	changed := s.changes()
	waits, several := s.lineUp(asker)
	if !several {
		return nil
	}
	if !waits {
		return s.newPlan(ctx, asker)
	}
	s.planning.mutex.Lock()
	defer s.planning.mutex.Unlock()
	// Who has left since is found to be gone; who came asks by itself.
	if s.planning.changed != changed || s.planning.plan == nil || !s.planning.plan.has(asker) {
		s.planning.plan, s.planning.changed = s.newPlan(ctx, ""), changed
	}
	return s.planning.plan
}

func (s *Service) newPlan(ctx context.Context, asker string) *plan {
	stands := s.standing(asker, callerOf(ctx))
	if len(typesOf(stands)) < 2 {
		return nil
	}
	return &plan{stands, placed(s.offers(ctx, stands), stands)}
}

// placed gives the offers, in their order, to the workers that wait.
func placed(offers []offer, stands []stand) []planned {
	machines := make([]placement.Machine, len(stands))
	for i, one := range stands {
		machines[i] = placement.Machine{Name: one.worker, Type: one.machine, Free: placement.Resources{Cores: one.trials, GPUs: len(one.room.GPUs)}}
	}
	known, rooms := outlooks{}, roomsOf(stands)
	tasks := make([]placement.Task, len(offers))
	for i, one := range offers {
		tasks[i] = rooms.task(one, one.name(i))
		known[tasks[i].Name] = one.epochs
	}
	typeOf := map[string]string{}
	for _, one := range stands {
		typeOf[one.worker] = one.machine
	}
	list := make([]planned, len(offers))
	for i, one := range placement.Place(tasks, machines, known) {
		list[i] = planned{offer: offers[i], worker: one.Machine, machine: typeOf[one.Machine], scores: offers[i].scores()}
	}
	return list
}

// rooms is what is free of workers that wait, as offers take it up.
type rooms []pool.Room

func roomsOf(stands []stand) rooms {
	free := make(rooms, len(stands))
	for i, one := range stands {
		free[i] = one.room
	}
	return free
}

// task is the offer as the placement sees it: it takes one of the trials that its
// worker asks for, and GPUs; and cores and memory, by the pool's own rule.
func (free rooms) task(one offer, name string) placement.Task {
	need := func(machine int) pool.Need { return one.needs[free[machine].Machine] }
	return placement.Task{
		Name: name, Needs: placement.Resources{Cores: 1, GPUs: one.need.GPUs}, Energy: one.energy,
		Suits: func(machine int) bool {
			return machine < len(one.suits) && one.suits[machine] && free[machine].Fits(need(machine))
		},
		Placed: func(machine int) { free[machine] = free[machine].With(need(machine)) },
	}
}

// outlooks predict by name.
type outlooks map[string]map[string]sight

// Predict is what was predicted before.
func (o outlooks) Predict(machine string, task placement.Task) (placement.Prediction, bool) {
	one := o[task.Name][machine]
	return one.Prediction, one.known()
}

// scores are those of all types of which something is known.
func (o offer) scores() map[string]float64 {
	var types []string
	var predictions []placement.Prediction
	for machine, one := range o.epochs {
		if one.known() {
			types, predictions = append(types, machine), append(predictions, one.Prediction)
		}
	}
	scores := map[string]float64{}
	for i, score := range placement.Scores(predictions, o.energy) {
		scores[types[i]] = score
	}
	return scores
}

// question is for whom a study's offers are looked at.
type question struct {
	stands []stand
	// all are the workers that run trials as well; only who asks about moves knows them.
	all    []stand
	types  []string
	probes map[string][]placement.Probe
	most   int
	// explain asks what is in the study's way, too, and what the caller calls it.
	explain bool
	caller  Caller
}

// offersOf is what one study has ready, the first to go first. One that is not in
// memory as it should be has nothing to compare: it is served as workers ask.
func (s *Service) offersOf(ctx context.Context, id string, q question) []offer {
	s.mutex.Lock()
	r, loaded := s.runtimes[id]
	s.mutex.Unlock()
	if !loaded {
		return nil
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.stale || r.study.Status.Over() {
		return nil
	}
	suits, needs := s.mayRun(r, nil, q.stands, pool.Amount{})
	kept := s.awaitingOf(r)
	known := s.outlook(ctx, r)
	now := s.options.Now()
	var offers []offer
	offered := r.offered(suits, needs, q.stands)
	if q.explain {
		offered.against = s.waits(r)
	}
	title := q.caller.calls(r.study)
	for _, number := range r.waitingTrials(kept) {
		if until, rests := r.resting[number]; rests && now.Before(until) || len(offers) >= q.most {
			continue
		}
		t := r.trials[number]
		one := offered
		if worker, moved := kept[number]; moved {
			one = s.keptOffer(r, t, worker, q.stands)
		}
		one.number, one.title, one.epochs = number, title, sights(known, known.encode(t.Configuration), t.Budget.DataFraction, q)
		offers = append(offers, one)
	}
	fresh := offered
	fresh.title = title
	if left := min(r.startable(), q.most-len(offers)); left > 0 {
		fresh.epochs = sights(known, known.typical, r.ladder[0].Budget.DataFraction, q)
		offers = append(offers, slices.Repeat([]offer{fresh}, left)...)
	}
	return offers
}

// keptOffer is what a trial of the study that is kept for the worker has in common
// with its offers: it takes there what it gave back.
func (s *Service) keptOffer(r *runtime, t trial.Trial, worker string, stands []stand) offer {
	open, needs := s.mayRun(r, &t, stands, s.keptAmount(r, worker))
	suits := make([]bool, len(stands))
	for i := range stands {
		suits[i] = open[i] && stands[i].worker == worker
	}
	one := r.offered(suits, needs, stands)
	one.kept, one.open = s.workerName(worker), open
	return one
}

// mayRun says for each of the workers whether the study may run there and has room,
// if it gives so much back elsewhere; and what it needs, by the cores of a machine: the
// trial, or whichever comes next where that is nil.
func (s *Service) mayRun(r *runtime, t *trial.Trial, stands []stand, back pool.Amount) (suits []bool, needs map[int]pool.Need) {
	suits, needs = make([]bool, len(stands)), map[int]pool.Need{}
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	for i, one := range stands {
		need, known := needs[one.room.Machine]
		if !known {
			need = s.needOf(r, t, one.room.Machine)
			needs[one.room.Machine] = need
		}
		member, _ := s.workers.Member(one.worker)
		suits[i] = one.caller.sees(r.id, r.owner) && suited(r, member) && s.withheld(r, member, need, back).reason == "" && one.room.Fits(need)
	}
	return suits, needs
}

// sights is what an epoch should take on each of the types.
func sights(known *outlook, encoded []float64, fraction float64, q question) map[string]sight {
	all := make(map[string]sight, len(q.types))
	for _, machine := range q.types {
		all[machine] = known.epoch(encoded, fraction, machine, q.probes)
	}
	return all
}

// startable is how many trials the search may have besides the queued ones: it
// is not asked before somebody gets what it says.
func (r *runtime) startable() int {
	if r.waiting || r.method == nil {
		return 0
	}
	left := maxStartable
	if most := r.study.Definition.Stop.Trials; most > 0 {
		left = max(1, most-len(r.trials)) // at the end it may have one to promote
	}
	if parallel := r.study.Definition.Parallel; parallel > 0 {
		left = min(left, max(0, parallel-r.held))
	}
	return left
}

// maxStartable is how many new trials a study without a bound is taken to have.
const maxStartable = 1 << 20

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
}

// choices are the studies that the worker should get a trial of, the best one
// first: what the plan has for it, then the others in the pool's order.
func (s *Service) choices(ctx context.Context, worker string) (list []choice) {
	candidates := s.candidates(callerOf(ctx))
	if len(candidates) == 0 {
		return nil
	}
	p := s.plan(ctx, worker)
	if p == nil {
		for _, candidate := range candidates {
			list = append(list, choice{study: candidate.Study, number: next})
		}
		return s.expectedFirst(list, candidates, worker)
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
	return s.expectedFirst(list, candidates, worker)
}

// has reports whether the plan was made with the worker.
func (p *plan) has(worker string) bool {
	return slices.ContainsFunc(p.stands, func(one stand) bool { return one.worker == worker })
}

func (p *plan) typeOf(worker string) string {
	for _, one := range p.stands {
		if one.worker == worker {
			return one.machine
		}
	}
	return ""
}

// forOthers finds an offer of the study, and whether all that the worker could
// have of it are meant for others on which something better is known of them than
// on the worker's machine. A machine of which nothing is known is not made to
// wait: this is how it becomes known.
func (p *plan) forOthers(study, worker string) (found *planned, better bool) {
	at := slices.IndexFunc(p.stands, func(one stand) bool { return one.worker == worker })
	for i := range p.offers {
		one := &p.offers[i]
		if one.study != study || at < 0 || !one.suits[at] {
			continue
		}
		found = one
		here, known := one.scores[p.stands[at].machine]
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
		at := slices.IndexFunc(options, func(o trial.PlacementOption) bool { return o.Machine == stand.machine })
		if at < 0 {
			at = len(options)
			options = append(options, trial.PlacementOption{Machine: stand.machine})
		}
		options[at].Waiting++
	}
	if len(options) < 2 {
		return nil
	}
	return options
}
