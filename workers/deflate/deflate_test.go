package deflate_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/workers/deflate"
)

func exponential(seconds float64) deflate.Phases {
	return deflate.Phases{Begin: []float64{1}, Next: [][]deflate.Step{nil}, Done: []float64{1 / seconds}}
}

func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*math.Abs(want) {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

// One class of exponential jobs is M/M/1, whose response is exponential.
func TestOneExponentialClassIsKnown(t *testing.T) {
	for _, load := range []float64{0.2, 0.8, 0.95} {
		q, err := newQueue([]stream{{Rate: load, Service: exponential(1)}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		rate := 1 - load
		near(t, "the mean", q.Mean(0), 1/rate, 1e-9)
		for _, seconds := range []float64{0.5 / rate, 1 / rate, 3 / rate} {
			near(t, "the tail", q.Tail(0, seconds), math.Exp(-rate*seconds), 1e-4)
		}
		last, err := q.Quantile(0, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "the quantile", last, -math.Log(0.05)/rate, 1e-4)
	}
}

// The stages of a job: its mean is the sum of theirs, a task is left by the
// fastest of those that run.
func TestStagesAreThoseOfTheEquation(t *testing.T) {
	setup := deflate.Stage{Seconds: 2, Tasks: []float64{1}}
	tasks := deflate.Stage{Seconds: 3, Tasks: []float64{0, 0, 0, 0, 1}} // five
	for name, test := range map[string]struct {
		slots int
		drop  float64
		want  float64
	}{
		"two slots":          {2, 0, 2 + 3*(3*0.5+0.5+1)},
		"one slot":           {1, 0, 2 + 15},
		"slots for all":      {9, 0, 2 + 3*(1.0/5+1.0/4+1.0/3+1.0/2+1)},
		"half of the tasks":  {1, 0.5, 2 + 9},
		"one task at least":  {1, 0.99, 2 + 3},
		"a fifth is dropped": {1, 0.2, 2 + 12},
	} {
		t.Run(name, func(t *testing.T) {
			dropped := tasks
			dropped.Drop = test.drop
			p, err := deflate.Stages(test.slots, setup, dropped)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Check(); err != nil {
				t.Fatal(err)
			}
			mean, square := p.Moments()
			near(t, "the mean", mean, test.want, 1e-12)
			if square <= mean*mean {
				t.Errorf("the mean of the square is %g, of the mean %g", square, mean*mean)
			}
			fast, _ := p.Sprinted(2).Moments()
			near(t, "the mean of twice the speed", fast, mean/2, 1e-12)
		})
	}
	// Numbers of tasks that are random: as the mixture.
	random, err := deflate.Stages(1, deflate.Stage{Seconds: 1, Tasks: []float64{0.25, 0, 0.75}}, deflate.Stage{Seconds: 4, Tasks: []float64{0.5, 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	mean, _ := random.Moments()
	near(t, "the mean", mean, 0.25+3*0.75+4*1.5, 1e-12)
}

// The model against the simulation, for random queues of two and three classes.
func TestTheModelAgreesWithTheSimulation(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	between := func(low, high float64) float64 { return low + (high-low)*random.Float64() }
	for round := range 8 {
		count, load := 2+random.IntN(2), between(0.3, 0.8)
		var classes []stream
		for range count {
			service, err := deflate.Stages(1+random.IntN(4), deflate.Stage{Seconds: between(0.1, 2), Tasks: []float64{1}},
				deflate.Stage{Seconds: between(0.1, 2), Tasks: []float64{0.2, 0.3, 0, 0.5}, Drop: between(0, 0.6)})
			if err != nil {
				t.Fatal(err)
			}
			mean, _ := service.Moments()
			classes = append(classes, stream{Rate: load / float64(count) / mean, Service: service})
		}
		q, err := newQueue(classes, 1)
		if err != nil {
			t.Fatal(err)
		}
		played := play(t, classes, deflate.Engine{Slots: 1}, 40_000, 1).Classes
		for k := range classes {
			// Of 40,000 correlated responses; the limits are wide for chance.
			near(t, fmt.Sprintf("round %d, class %d: the mean", round, k), q.Mean(k), played[k].Mean, 0.15)
			last, err := q.Quantile(k, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			near(t, fmt.Sprintf("round %d, class %d: the quantile", round, k), last, played[k].Tail, 0.2)
		}
	}
}

func TestEvictionWastesWorkAndWaitingDoesNot(t *testing.T) {
	classes := []stream{{Rate: 0.09, Service: exponential(6)}, {Rate: 0.1, Service: exponential(1)}}
	evicted, waited := play(t, classes, deflate.Engine{Slots: 1, Policy: deflate.Evicting}, 20_000, 3), play(t, classes, deflate.Engine{Slots: 1}, 20_000, 3)
	resumed := play(t, classes, deflate.Engine{Slots: 1, Policy: deflate.Resuming}, 20_000, 3)
	if evicted.Wasted <= 0.02 || waited.Wasted != 0 || resumed.Wasted != 0 {
		t.Errorf("wasted %g with evictions, %g without and %g with checkpoints", evicted.Wasted, waited.Wasted, resumed.Wasted)
	}
	if evicted.Classes[0].Mean <= waited.Classes[0].Mean || evicted.Classes[1].Mean >= waited.Classes[1].Mean || resumed.Classes[0].Mean >= evicted.Classes[0].Mean {
		t.Errorf("with evictions %+v, without %+v, with checkpoints %+v", evicted, waited, resumed)
	}
}

// demands are two classes: many large jobs, and few that are in a hurry.
func demands(most, high float64) deflate.Setting {
	service := func(seconds float64) func(drop float64) ([]deflate.Phases, error) {
		return func(drop float64) ([]deflate.Phases, error) {
			p, err := deflate.Stages(4, deflate.Stage{Seconds: 1, Tasks: []float64{1}}, deflate.Stage{Seconds: seconds, Tasks: []float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, Drop: drop})
			return []deflate.Phases{p}, err
		}
	}
	return deflate.Setting{Slots: 1, Arrivals: deflate.Poisson(0.072, 0.008), Demands: []deflate.Demand{
		{Service: service(2.5), Loss: func(drop float64) float64 { return 10 * drop * drop }, MostLoss: most},
		{Service: service(1), MeanSeconds: high},
	}}
}

func TestTheLeastDropThatKeepsTheLimitIsChosen(t *testing.T) {
	loose, err := deflate.Choose(demands(10, 0), 10)
	if err != nil {
		t.Fatal(err)
	}
	if loose.Drop[0] != 0 || loose.Drop[1] != 0 {
		t.Errorf("without limits %v are dropped", loose.Drop)
	}
	limit := 0.7 * loose.Mean[1]
	tight, err := deflate.Choose(demands(10, limit), 10)
	if err != nil {
		t.Fatal(err)
	}
	if tight.Drop[0] <= 0 || tight.Drop[1] != 0 || tight.Mean[1] > limit || tight.Mean[0] >= loose.Mean[0] || tight.Tail[0] >= loose.Tail[0] {
		t.Errorf("%+v, want the first class to drop something so that the second is within %g", tight, limit)
	}
	less := demands(10, limit)
	less.Demands[0].Loss = func(drop float64) float64 { return 10 * drop * drop }
	less.Demands[0].MostLoss = 10 * (tight.Drop[0] - 0.1) * (tight.Drop[0] - 0.1)
	if got, err := deflate.Choose(less, 10); !errors.Is(err, deflate.ErrNoChoice) {
		t.Errorf("a step less of dropping was enough: %+v, %v", got, err)
	}
	// A sprint of the second class makes up for it.
	less.Demands[1].Sprint, less.Account = deflate.Sprint{Speed: 3, Watts: 1}, deflate.Account{Joules: math.Inf(1)}
	if got, err := deflate.Choose(less, 10); err != nil || got.Mean[1] > limit {
		t.Errorf("with a sprint: %+v, %v", got, err)
	}
}

func TestQueuesThatCannotBe(t *testing.T) {
	if _, err := newQueue([]stream{{Rate: 1, Service: exponential(1)}}, 1); !errors.Is(err, deflate.ErrOverloaded) {
		t.Errorf("a queue that grows for ever: %v", err)
	}
	for name, class := range map[string]stream{
		"no jobs":       {Rate: 0, Service: exponential(1)},
		"no phases":     {Rate: 1},
		"never ends":    {Rate: 1, Service: deflate.Phases{Begin: []float64{1}, Next: [][]deflate.Step{nil}, Done: []float64{0}}},
		"goes backward": {Rate: 1, Service: deflate.Phases{Begin: []float64{1}, Next: [][]deflate.Step{{{To: 0, Rate: 1}}}, Done: []float64{1}}},
	} {
		if _, err := newQueue([]stream{class}, 1); err == nil || errors.Is(err, deflate.ErrOverloaded) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := deflate.Stages(1, deflate.Stage{Seconds: 1, Tasks: []float64{0.5}}); err == nil {
		t.Error("probabilities of 0.5 in all were taken")
	}
}
