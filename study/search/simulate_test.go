package search_test

import (
	"container/heap"
	"math"
	"testing"

	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// world is what a simulated study is run on.
type world struct {
	workers int
	// measure returns the objective at a rung, and the seconds it takes to get
	// there from the rung below (or from nothing, when that is -1).
	measure func(c space.Configuration, rung, below int) (value, seconds float64)
	// until ends the simulation; +Inf runs the search to its end.
	until float64
}

// outcome is one measurement of a simulated study.
type outcome struct {
	at     float64
	number int
	rung   int
	origin string
	value  float64
	params space.Configuration
}

type queue []outcome

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q queue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].number < q[j].number
}
func (q *queue) Push(x any) { *q = append(*q, x.(outcome)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// simulate runs a study in simulated time and returns its measurements in order.
func simulate(t testing.TB, settings search.Settings, w world) []outcome {
	t.Helper()
	method := start(t, settings)
	var running queue
	var done []outcome
	params, origins := map[int]space.Configuration{}, map[int]string{}
	now, free := 0.0, w.workers
	for {
		for free > 0 {
			actions, err := method.Handle(search.Event{Kind: search.Request})
			if err != nil {
				t.Fatal(err)
			}
			a := actions[0]
			if a.Kind == search.Wait || a.Kind == search.Finish {
				break
			}
			below := a.Rung - 1
			if a.Kind == search.Create {
				params[a.Trial], origins[a.Trial], below = a.Configuration, a.Origin, -1
			}
			value, seconds := w.measure(params[a.Trial], a.Rung, below)
			heap.Push(&running, outcome{now + seconds, a.Trial, a.Rung, origins[a.Trial], value, params[a.Trial]})
			free--
		}
		if running.Len() == 0 {
			return done
		}
		o := heap.Pop(&running).(outcome)
		if now = o.at; now > w.until {
			return done
		}
		free++
		done = append(done, o)
		if _, err := method.Handle(search.Event{Kind: search.Measured, Trial: o.number, Rung: o.rung, Values: []trial.Float{trial.Float(o.value)}}); err != nil {
			t.Fatal(err)
		}
	}
}

// winner is the best outcome at the highest rung that has one; larger is better.
func winner(done []outcome) outcome {
	best := outcome{rung: -1, value: math.Inf(-1)}
	for _, o := range done {
		if o.rung > best.rung || o.rung == best.rung && o.value > best.value {
			best = o
		}
	}
	return best
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
