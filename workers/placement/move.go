package placement

// Running is a task that runs, on the machine with that name.
type Running struct {
	Task
	Machine string
	// Remaining is the share of its work that is left, from 0 to 1.
	Remaining float64
	// Owner is whose it is: only [Exchanges] asks.
	Owner string
	// Move is what it costs to take it to another machine: to write a
	// checkpoint, to carry it over and to start again.
	Move Prediction
}

// Migration is a task that should move.
type Migration struct {
	Task, From, To string
	// Stays and Goes are what is left of it where it is, and elsewhere with the
	// move. Here and There are their scores, Gain is the difference.
	Stays, Goes Prediction
	Here, There float64
	Gain        float64
}

// Settings of [Reschedule] and [Exchanges].
type Settings struct {
	// LeastGain is by how much the score must be better: predictions are not so
	// exact that a task should move for less. 0.05 when 0.
	LeastGain float64
	// LeastRemaining is the share of its work that must be left; 0.1 when 0.
	LeastRemaining float64
}

const (
	leastGain      = 0.05
	leastRemaining = 0.1
)

func (s Settings) complete() Settings {
	if s.LeastGain <= 0 {
		s.LeastGain = leastGain
	}
	if s.LeastRemaining <= 0 {
		s.LeastRemaining = leastRemaining
	}
	return s
}

// Reschedule says which running tasks should move, in their order, each to the
// machine with the best score for what is left of them, the move included
// (algorithm 3; that a move has to pay for itself is ours, since trials move
// with a checkpoint). Every move frees and fills what the next one sees.
//
// Pending tasks go first (section 3.3.4): while there are some that fit into
// what is free, nothing moves.
func Reschedule(running []Running, pending []Task, machines []Machine, predictor Predictor, settings Settings) []Migration {
	settings = settings.complete()
	s := newSite(machines)
	for _, task := range pending {
		for _, one := range s.kinds {
			if s.room(one, task) >= 0 {
				return nil
			}
		}
	}
	place := map[string]int{}
	for i, one := range machines {
		place[one.Name] = i
	}
	var moves []Migration
	for _, task := range running {
		host, known := place[task.Machine]
		if !known || task.Remaining < settings.LeastRemaining {
			continue
		}
		here, known := predictor.Predict(machines[host].Type, task.Task)
		if !known || !here.usable() {
			continue
		}
		stays := here.times(task.Remaining)
		at, goes := s.best(task.Task, predictor, func(_ int, p Prediction) Prediction {
			return p.times(task.Remaining).plus(task.Move)
		})
		if at < 0 || at == host || machines[at].Type == machines[host].Type || !goes.usable() {
			continue
		}
		scores := Scores([]Prediction{stays, goes}, task.Energy)
		if gain := scores[1] - scores[0]; gain >= settings.LeastGain {
			moves = append(moves, Migration{Task: task.Name, From: task.Machine, To: machines[at].Name, Stays: stays, Goes: goes, Here: scores[0], There: scores[1], Gain: gain})
			s.take(host, Resources{}.less(task.Needs))
			s.take(at, task.Needs)
			task.placed(at)
		}
	}
	return moves
}

func (p Prediction) times(share float64) Prediction {
	return Prediction{Seconds: p.Seconds * share, Joules: p.Joules * share}
}

// plus keeps what is not known not known.
func (p Prediction) plus(more Prediction) Prediction {
	if p.Joules > 0 {
		p.Joules += more.Joules
	}
	p.Seconds += more.Seconds
	return p
}
