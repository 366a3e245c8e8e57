// Package placement answers: on which of the machines does a task run, so that
// it takes the time and the energy that its user wants?
//
// It is HEATS (I. Rocha's thesis, Neuchâtel 2021, chapter 3): a regression for
// each type of machine predicts seconds and joules of a task ([Models]), a score
// weighs both by the user's H ([Scores], algorithm 4), pending tasks are placed
// in their order ([Place], algorithm 2), and running ones move where a better
// machine has become free and the gain pays for the move ([Reschedule],
// algorithm 3), or where two gain by changing places ([Exchanges], ours). Its one invariant: what is placed on a machine fits into what is
// free there, whatever was predicted. It does no I/O and knows no clock.
package placement

import (
	"cmp"
	"math"
	"slices"
)

// Resources are what a task needs, and what a machine has free.
type Resources struct {
	// Cores is a number of processor cores, GPUs of whole GPUs.
	Cores, GPUs int
	MemoryBytes int64
}

// Holds reports whether the need fits into the resources.
func (r Resources) Holds(need Resources) bool {
	return need.Cores <= r.Cores && need.GPUs <= r.GPUs && need.MemoryBytes <= r.MemoryBytes
}

// compare orders by cores, GPUs and memory.
func (r Resources) compare(other Resources) int {
	return cmp.Or(cmp.Compare(r.Cores, other.Cores), cmp.Compare(r.GPUs, other.GPUs), cmp.Compare(r.MemoryBytes, other.MemoryBytes))
}

func (r Resources) less(need Resources) Resources {
	return Resources{Cores: r.Cores - need.Cores, GPUs: r.GPUs - need.GPUs, MemoryBytes: r.MemoryBytes - need.MemoryBytes}
}

// Machine is a machine with what is free of it. Machines of one type take the
// same seconds and joules for a task.
type Machine struct {
	Name, Type string
	Free       Resources
}

// Task is what wants to run.
type Task struct {
	Name  string
	Needs Resources
	// Suits reports whether the task may run on the machine with that place in the
	// list, beside having room there; nil: on all.
	Suits func(machine int) bool
	// Placed is told the place in the list of the machine that the task gets, before
	// the next one is looked at, so that Suits may follow what is left there; nil:
	// nobody has to know.
	Placed func(machine int)
	// Spread asks, of machines with the same score, for the one with the most that is
	// free, so that as few tasks as may be run beside it; else it is the one that it
	// fills most, so that large tasks find room later.
	Spread bool
	// Features describe it to the models: the same ones, in the same order, for
	// every task.
	Features []float64
	// Energy is the user's H, from 0 (as fast as possible) to 1 (with the least
	// energy): the weight e_w, with p_w = 1 − e_w.
	Energy float64
}

func (t Task) placed(machine int) {
	if t.Placed != nil {
		t.Placed(machine)
	}
}

// Prediction is what a task takes on a machine, by itself. Joules are 0 where they
// are not known.
type Prediction struct {
	Seconds, Joules float64
}

func (p Prediction) usable() bool {
	return p.Seconds > 0 && p.Joules >= 0 && !math.IsInf(p.Seconds, 0) && !math.IsInf(p.Joules, 0)
}

// Predictor predicts what a task takes on a type of machine. Without an answer
// nothing is known of that type.
type Predictor interface {
	Predict(kind string, task Task) (Prediction, bool)
}

// Scores are those of algorithm 4, line 7, for machines with these predictions:
// e_w(1 − n_e/max_e) + p_w(n_p/max_p), where n_e is the energy and n_p the
// performance, one divided by the seconds. They are from 0 to 1, higher is
// better. A machine of which nothing is known (a zero prediction) has 0. Where the
// joules of one of the others are not known, all are scored by time alone.
func Scores(predictions []Prediction, energy float64) []float64 {
	return scores(make([]float64, 0, len(predictions)), predictions, energy)
}

// scores appends them to the list.
func scores(list []float64, predictions []Prediction, energy float64) []float64 {
	mostJoules, leastSeconds := 0.0, math.Inf(1)
	for _, one := range predictions {
		if one.usable() {
			mostJoules, leastSeconds = max(mostJoules, one.Joules), min(leastSeconds, one.Seconds)
			if one.Joules == 0 {
				energy = 0
			}
		}
	}
	for _, one := range predictions {
		score := 0.0
		if one.usable() {
			score = (1 - energy) * leastSeconds / one.Seconds
			if energy > 0 {
				score += energy * (1 - one.Joules/mostJoules)
			}
		}
		list = append(list, score)
	}
	return list
}

// Place gives each pending task, in their order, the machine with the highest
// score of those with room. A task that fits nowhere holds up nobody. Where
// nothing is known of any machine with room, it gets the one that it fills most.
// Of machines with the same score the one that is left with the fewest free
// cores is taken, unless the task is to be spread. It returns the name of each task's
// machine, empty where none had room.
func Place(pending []Task, machines []Machine, predictor Predictor) []string {
	s := newSite(machines)
	placed := make([]string, len(pending))
	for i, task := range pending {
		if at, _ := s.best(task, predictor, nil); at >= 0 {
			placed[i] = machines[at].Name
			s.take(at, task.Needs)
			task.placed(at)
		}
	}
	return placed
}

// site is what is free of the machines, which are grouped by type: the score is
// the same for all of a type, so that only types are compared.
type site struct {
	free  []Resources
	kinds []kind
	of    []int // the kind of each machine
	// rooms, predictions and scores are what best fills anew for each task.
	rooms       []int
	predictions []Prediction
	scores      []float64
}

type kind struct {
	name     string
	machines []int // ordered by free cores, then place: the fullest first
}

func newSite(machines []Machine) *site {
	s := &site{free: make([]Resources, len(machines)), of: make([]int, len(machines))}
	index := map[string]int{}
	for i, one := range machines {
		s.free[i] = one.Free
		at, known := index[one.Type]
		if !known {
			at = len(s.kinds)
			index[one.Type] = at
			s.kinds = append(s.kinds, kind{name: one.Type})
		}
		s.of[i] = at
		s.kinds[at].machines = append(s.kinds[at].machines, i)
	}
	for _, one := range s.kinds {
		slices.SortFunc(one.machines, s.fuller)
	}
	return s
}

// fuller orders machines by what is free of them, and place.
func (s *site) fuller(a, b int) int { return cmp.Or(s.free[a].compare(s.free[b]), cmp.Compare(a, b)) }

// room is the machine of the kind that suits the task and holds its need: the fullest,
// or the emptiest where it is to be spread; -1 if none does.
func (s *site) room(of kind, task Task) int {
	need := task.Needs
	if s.free[of.machines[len(of.machines)-1]].Cores < need.Cores {
		return -1
	}
	from, to := 0, len(of.machines)
	for from < to {
		if at := (from + to) / 2; s.free[of.machines[at]].Cores < need.Cores {
			from = at + 1
		} else {
			to = at
		}
	}
	list := of.machines[from:]
	for len(list) > 0 {
		equal := list
		if task.Spread { // those at the end that have as much free as each other, in their order
			least, first := s.free[list[len(list)-1]], 0
			if s.free[list[0]] != least {
				first, _ = slices.BinarySearchFunc(list, least, func(at int, free Resources) int { return s.free[at].compare(free) })
			}
			equal = list[first:]
		}
		for _, at := range equal {
			if s.free[at].Holds(need) && (task.Suits == nil || task.Suits(at)) {
				return at
			}
		}
		list = list[:len(list)-len(equal)]
	}
	return -1
}

// take fills a part of the machine, or gives it back (a negative need), and
// keeps the order.
func (s *site) take(at int, need Resources) {
	list := s.kinds[s.of[at]].machines
	from, _ := slices.BinarySearchFunc(list, at, s.fuller)
	s.free[at] = s.free[at].less(need)
	// What is between its old place and its new one goes one place on.
	if to, _ := slices.BinarySearchFunc(list[:from], at, s.fuller); to < from {
		copy(list[to+1:from+1], list[to:from])
		list[to] = at
		return
	}
	to, _ := slices.BinarySearchFunc(list[from+1:], at, s.fuller)
	copy(list[from:from+to], list[from+1:from+1+to])
	list[from+to] = at
}

// best is the machine with the highest score that has room, and what it has of
// it. What is predicted of a type goes through adjust first, where there is one:
// it is given a machine of the type with room.
func (s *site) best(task Task, predictor Predictor, adjust func(at int, p Prediction) Prediction) (at int, predicted Prediction) {
	rooms, predictions := s.rooms[:0], s.predictions[:0]
	for _, one := range s.kinds {
		room := s.room(one, task)
		if room < 0 {
			continue
		}
		p, known := predictor.Predict(one.name, task)
		if !known || !p.usable() {
			p = Prediction{}
		} else if adjust != nil {
			p = adjust(room, p)
		}
		rooms, predictions = append(rooms, room), append(predictions, p)
	}
	s.rooms, s.predictions, s.scores = rooms, predictions, scores(s.scores[:0], predictions, task.Energy)
	at = -1
	score := 0.0
	for i, value := range s.scores {
		better := at < 0 || value > score
		if at >= 0 && value == score {
			better = s.fuller(rooms[i], at) < 0
			if emptier := -s.free[rooms[i]].compare(s.free[at]); task.Spread && emptier != 0 {
				better = emptier < 0
			}
		}
		if better {
			at, score, predicted = rooms[i], value, predictions[i]
		}
	}
	return at, predicted
}
