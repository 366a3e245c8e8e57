package scheduler

import (
	"context"
	"slices"
	"strconv"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

// offer is a trial that a study has ready.
type offer struct {
	study, title string // of the study: its id, and what the caller calls it
	number       int    // of a queued trial, or [allocator.Next]
	// held is the name of the worker that the trial is held for, if it migrates.
	held   string
	energy float64
	// epochs is what an epoch should take, by type of machine; eligible says for each
	// worker that waits whether it may run there and has room.
	epochs map[string]costmodel.Estimate
	// scores are those by these of the types of which something is known.
	scores   map[string]float64
	eligible []bool
	// open is eligible, but for whom it is held. placeable says that one of them is
	// eligible, and places how many trials those ask for that are open to it.
	open      []bool
	placeable bool
	places    int
	// needs is what it needs of a machine with so many cores.
	needs map[int]pool.Need
	// need is what it needs of a machine, and usage what it takes there; both are zero
	// where no worker that waits is eligible. parallel bounds its study's trials.
	need     pool.Need
	usage    pool.Amount
	parallel int
	// worker is the one that it is meant for, empty where none is free for it, and machine
	// that one's type.
	worker, machine string
	// against is what keeps the study's next trial from starting, if that was asked.
	against []protocol.Wait
}

// estimatesOf predict of offers whose tasks are named by their places.
type estimatesOf []offer

// Predict is the estimate that the offer has.
func (e estimatesOf) Predict(machine string, task placement.Task) (placement.Prediction, bool) {
	at, _ := strconv.Atoi(task.Name)
	one := e[at].epochs[machine]
	return one.Prediction, one.Known()
}

// question is for whom a study's offers are looked at.
type question struct {
	*Field
	// all are the workers that run trials as well; only who asks about moves knows them.
	all   []allocator.Stand
	types costmodel.Types
	most  int
	// explain asks what is in the study's way, too.
	explain bool
}

// question is about these types of machine.
func (s *Scheduler) question(stands []allocator.Stand, types []string) question {
	probes := s.allocator.Probes()
	return question{Field: FieldOf(stands), types: costmodel.TypesOf(types, probes.Known, probes.Changes)}
}

// offers is what the studies have ready for the workers that wait: as many as
// these ask for, in the order in which they would be served one after the other.
// What none of these workers may run, or no quota and no bound leaves room for, is
// not among them: it must not stand in the way of what can start. asked has all
// studies that were asked.
func (s *Scheduler) offers(ctx context.Context, stands []allocator.Stand) (offers []offer, asked map[string][]offer) {
	candidates, q := s.Candidates(access.Caller{}, s.allocator.Shares()), s.question(stands, Types(stands))
	for _, one := range stands {
		q.most += one.Trials
	}
	turns, all := NewTurns(candidates), 0
	asked = make(map[string][]offer, len(candidates))
	for _, candidate := range candidates {
		list := placeable(s.offersOf(ctx, candidate.Study, q))
		asked[candidate.Study], all = list, all+len(list)
	}
	books := s.books(candidates)
	offers = make([]offer, 0, min(q.most, all))
	for len(offers) < q.most {
		first, some := turns.Next()
		if !some {
			break
		}
		list := asked[first.Study]
		if len(list) == 0 || !books.allow(first, list[0]) {
			turns.Done()
			continue
		}
		one := list[0]
		offers = append(offers, one)
		asked[first.Study] = list[1:]
		turns.Served()
		if one.held == "" {
			turns.Reckon(first.Owner, books.charge(first.Owner, one.usage))
		}
	}
	return offers, asked
}

// placeable are a study's offers that one of the workers could take, as many as
// those ask for that are eligible.
func placeable(offers []offer) []offer {
	offers = slices.DeleteFunc(offers, func(one offer) bool { return !one.placeable })
	room := 0
	if len(offers) > 0 {
		room = offers[0].places
	}
	return offers[:min(len(offers), room)]
}

// books are the accounts of the owners, and what the pool has.
type books struct {
	pool   pool.Amount
	owners map[string]*allocator.Account
}

func (s *Scheduler) books(candidates []pool.Candidate) books {
	all, accounts := s.allocator.Accounts(candidates)
	return books{all, accounts}
}

// allow reports whether the study may have the offer in addition to those before it.
func (b books) allow(candidate pool.Candidate, one offer) bool {
	if one.parallel > 0 && candidate.Running >= one.parallel {
		return false
	}
	of := b.owners[candidate.Owner]
	if one.held != "" {
		return true // what it had when it was given back counts among what its owner has
	}
	return of.Quota.Refusal(candidate.Owner, of.Has, of.Spent, one.need) == ""
}

// charge gives the owner what an offer takes, so that the next one goes to whoever
// has the least then. It returns the owner's share.
func (b books) charge(owner string, usage pool.Amount) float64 {
	of := b.owners[owner]
	of.Has = of.Has.Plus(usage)
	return pool.Weighted(of.Has.DominantShare(b.pool), of.Quota.Weight)
}

// offersOf is what one study has ready, the first to go first.
func (s *Scheduler) offersOf(ctx context.Context, study string, q question) (offers []offer) {
	s.studies.View(ctx, study, func(of Study) { offers = s.ready(of, q) })
	return offers
}

func (s *Scheduler) ready(of Study, q question) []offer {
	may, needs := s.mayRun(of, nil, q.Field, pool.Amount{})
	held, now := s.allocator.Placements.Held(of.ID, of.Queue), s.now()
	costs := of.Costs()
	costs.Reuse(q.types, of.Loads)
	offers, offered := make([]offer, 0, min(q.most, len(of.Queue))), of.offered(may, needs, q.Stands)
	if q.explain {
		offered.against = of.Waits()
	}
	for _, number := range held.First(of.Queue) {
		if until, rests := of.Resting[number]; rests && now.Before(until) || len(offers) >= q.most {
			continue
		}
		t := &of.Trials[number]
		one := offered
		if worker, migrates := held[number]; migrates {
			one = s.heldOffer(of, t, worker, q.Field)
		}
		one.number, one.title = number, of.Title
		one.epochs, one.scores = costs.OfTrial(t, one.energy, q.types)
		offers = append(offers, one)
	}
	fresh := offered
	fresh.title = of.Title
	if left := min(of.Startable, q.most-len(offers)); left > 0 {
		fresh.epochs = costs.Typical(of.DataFraction, q.types)
		fresh.scores = costmodel.Scores(fresh.epochs, fresh.energy)
		offers = append(offers, slices.Repeat([]offer{fresh}, left)...)
	}
	return offers
}

// offered is what all of a study's offers have in common.
func (of Study) offered(may *Answer, needs map[int]pool.Need, stands []allocator.Stand) offer {
	one := offer{study: of.ID, number: allocator.Next, energy: of.Energy, eligible: may.May, open: may.May, placeable: may.First >= 0, places: may.Trials, needs: needs, parallel: of.Parallel}
	if may.First >= 0 {
		one.need = needs[stands[may.First].Room.Machine]
		one.usage = stands[may.First].Room.Takes(one.need)
	}
	return one
}

// heldOffer is what a trial of the study that is held for the worker has in common
// with its offers: it takes there what it gave back.
func (s *Scheduler) heldOffer(of Study, t *trial.Trial, worker string, f *Field) offer {
	back, name := s.allocator.HeldAmount(of.ID, worker)
	open, needs := s.mayRun(of, t, f, back)
	here := &Answer{May: make([]bool, len(f.Stands)), First: -1}
	for i := range f.Stands {
		if f.Stands[i].Worker == worker && open.May[i] {
			here.May[i], here.First = true, i
		}
	}
	one := of.offered(here, needs, f.Stands)
	one.held, one.open, one.places = name, open.May, open.Trials
	return one
}

// mayRun says for each of the workers whether the study may run there and has room,
// if it gives so much back elsewhere; and what it needs, by the cores of a machine: the
// trial, or whichever comes next where that is nil.
func (s *Scheduler) mayRun(of Study, t *trial.Trial, f *Field, back pool.Amount) (may *Answer, needs map[int]pool.Need) {
	ask, classes, needs := of.Ask(t), make([]byte, len(f.First)), map[int]pool.Need{}
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
