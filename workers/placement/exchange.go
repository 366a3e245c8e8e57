package placement

import (
	"cmp"
	"maps"
	"slices"
)

// Exchange is two running tasks that should change places: each goes to the machine
// of the other.
type Exchange struct {
	First, Second Migration
	// Gain is by how much both together score better, saved what orders exchanges: the
	// share that both together save of what all running tasks have left.
	Gain  float64
	saved float64
}

// Exchanges says which running tasks should change places (ours: the chapter moves a
// task only to a machine with room, and where all are busy there is none). Two do that
// need the same, on machines of different types, and that gain by it: of one owner and
// with one H as if they were one task, whose joules and seconds are those of both, the
// two moves included; else each by itself has to lose nothing. So a task may come to
// run where it takes longer only for the sake of its owner's others.
//
// The best exchange comes first, and each task is in one at most. They are found by
// how much each task would save elsewhere, in the order of that, and not by trying all
// pairs: a thousand tasks take milliseconds.
func Exchanges(running []Running, machines []Machine, predictor Predictor, settings Settings) []Exchange {
	settings = settings.complete()
	f := newFair(running, machines, predictor, settings)
	var found []Exchange
	for i, here := range f.kinds {
		for _, there := range f.kinds[i+1:] {
			found = append(found, f.between(here, there)...)
		}
	}
	slices.SortStableFunc(found, func(a, b Exchange) int { return cmp.Compare(b.saved, a.saved) })
	in := map[string]bool{}
	return slices.DeleteFunc(found, func(one Exchange) bool {
		taken := in[one.First.Task] || in[one.Second.Task]
		if !taken {
			in[one.First.Task], in[one.Second.Task] = true, true
		}
		return taken
	})
}

// fair is where tasks look for others to change places with.
type fair struct {
	predictor Predictor
	settings  Settings
	kinds     []string
	stalls    map[string][]stall // by type of machine
	// all is what all tasks have left where they are.
	all Prediction
}

// stall is a task that might go.
type stall struct {
	*Running
	host  int
	kind  string
	stays Prediction
}

func newFair(running []Running, machines []Machine, predictor Predictor, settings Settings) *fair {
	f := &fair{predictor: predictor, settings: settings, stalls: map[string][]stall{}}
	place := make(map[string]int, len(machines))
	for i, one := range machines {
		place[one.Name] = i
	}
	for i := range running {
		task := &running[i]
		host, known := place[task.Machine]
		if !known || task.Remaining < settings.LeastRemaining {
			continue
		}
		kind := machines[host].Type
		here, known := predictor.Predict(kind, task.Task)
		if !known || !here.usable() {
			continue
		}
		if len(f.stalls[kind]) == 0 {
			f.kinds = append(f.kinds, kind)
		}
		stays := here.times(task.Remaining)
		f.stalls[kind] = append(f.stalls[kind], stall{task, host, kind, stays})
		f.all = Prediction{f.all.Seconds + stays.Seconds, f.all.Joules + stays.Joules}
	}
	slices.Sort(f.kinds)
	return f
}

// bidder is a task with what it would take on the other type, and what it would save
// there as a share of what all have left, by its own H.
type bidder struct {
	stall
	goes  Prediction
	saves float64
}

// alike are tasks that may change places as if they were one.
type alike struct {
	needs  Resources
	owner  string
	energy float64
}

// between are the exchanges of two types of machine.
func (f *fair) between(here, there string) (found []Exchange) {
	first, second := f.bidders(here, there), f.bidders(there, here)
	var rest [2][]bidder
	for _, key := range keysOf(first) {
		left, right := f.pair(first[key], second[key], &found)
		rest[0] = append(rest[0], left...)
		rest[1] = append(rest[1], right...)
		delete(second, key)
	}
	for _, key := range keysOf(second) {
		rest[1] = append(rest[1], second[key]...)
	}
	// Of different owners, or with different weights, each has to gain.
	gains := func(list []bidder) map[alike][]bidder {
		by := map[alike][]bidder{}
		for _, one := range list {
			if one.saves >= 0 {
				key := alike{needs: one.Needs}
				by[key] = append(by[key], one)
			}
		}
		return by
	}
	left, right := gains(rest[0]), gains(rest[1])
	for _, key := range keysOf(left) {
		byWorth(left[key])
		byWorth(right[key])
		f.pair(left[key], right[key], &found)
	}
	return found
}

// bidders are the tasks of a type of machine by what makes them alike, those that
// would save the most on the other type first.
func (f *fair) bidders(here, there string) map[alike][]bidder {
	by := map[alike][]bidder{}
	for _, one := range f.stalls[here] {
		p, known := f.predictor.Predict(there, one.Task)
		if !known || !p.usable() {
			continue
		}
		goes := p.times(one.Remaining).plus(one.Move)
		energy := one.Energy
		if one.stays.Joules == 0 || goes.Joules == 0 {
			energy = 0
		}
		saves := (1 - energy) * (one.stays.Seconds - goes.Seconds) / f.all.Seconds
		if energy > 0 {
			saves += energy * (one.stays.Joules - goes.Joules) / f.all.Joules
		}
		key := alike{one.Needs, one.Owner, one.Energy}
		by[key] = append(by[key], bidder{one, goes, saves})
	}
	for _, list := range by {
		byWorth(list)
	}
	return by
}

func byWorth(list []bidder) {
	slices.SortStableFunc(list, func(a, b bidder) int { return cmp.Or(cmp.Compare(b.saves, a.saves), cmp.Compare(a.Name, b.Name)) })
}

// pair has the first of one side change places with the first of the other that may,
// as long as both together save something; it adds them to found and returns who is
// left.
func (f *fair) pair(left, right []bidder, found *[]Exchange) (restLeft, restRight []bidder) {
	right = slices.Clone(right)
	for _, a := range left {
		at := -1
		for i, b := range right {
			if a.saves+b.saves <= 0 {
				break
			}
			if one, pays := f.exchange(a, b); pays {
				*found = append(*found, one)
				at = i
				break
			}
			if i == mostTried {
				break
			}
		}
		if at < 0 {
			restLeft = append(restLeft, a)
			continue
		}
		right = slices.Delete(right, at, at+1)
	}
	return restLeft, right
}

// mostTried is how many others a task looks at.
const mostTried = 16

// exchange is what two that change places take, and whether it pays.
func (f *fair) exchange(a, b bidder) (Exchange, bool) {
	if a.Suits != nil && !a.Suits(b.host) || b.Suits != nil && !b.Suits(a.host) {
		return Exchange{}, false
	}
	one := Exchange{First: a.migration(b.Machine), Second: b.migration(a.Machine), saved: a.saves + b.saves}
	if a.Owner == b.Owner && a.Energy == b.Energy {
		scores := Scores([]Prediction{a.stays.and(b.stays), a.goes.and(b.goes)}, a.Energy)
		one.Gain = scores[1] - scores[0]
	} else {
		one.Gain = (one.First.Gain + one.Second.Gain) / 2
		if one.First.Gain < 0 || one.Second.Gain < 0 {
			return one, false
		}
	}
	return one, one.Gain >= f.settings.LeastGain
}

func (b bidder) migration(to string) Migration {
	scores := Scores([]Prediction{b.stays, b.goes}, b.Energy)
	return Migration{Task: b.Name, From: b.Machine, To: to, Stays: b.stays, Goes: b.goes, Here: scores[0], There: scores[1], Gain: scores[1] - scores[0]}
}

// and is both; joules are not known where one's are not.
func (p Prediction) and(other Prediction) Prediction {
	both := Prediction{Seconds: p.Seconds + other.Seconds}
	if p.Joules > 0 && other.Joules > 0 {
		both.Joules = p.Joules + other.Joules
	}
	return both
}

// keysOf are the keys in an order that repeats.
func keysOf(by map[alike][]bidder) []alike {
	return slices.SortedFunc(maps.Keys(by), func(a, b alike) int {
		return cmp.Or(cmp.Compare(a.needs.GPUs, b.needs.GPUs), cmp.Compare(a.needs.Cores, b.needs.Cores), cmp.Compare(a.needs.MemoryBytes, b.needs.MemoryBytes),
			cmp.Compare(a.owner, b.owner), cmp.Compare(a.energy, b.energy))
	})
}
