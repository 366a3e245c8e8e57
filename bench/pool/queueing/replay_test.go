package queueing_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/bench/pool/queueing"
	"github.com/tandem-tune/tandem/workers/approximation"
)

func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*math.Abs(want) {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

// The jobs of a story, with what becomes of each.
func TestReplayOfAStory(t *testing.T) {
	low, high := 0, 1
	jobs := []queueing.Job{{low, 0, 10}, {high, 4, 2}, {low, 5, 10}}
	for name, test := range map[string]struct {
		engine              queueing.Engine
		low, high           float64 // mean responses
		wasted, joules, end float64
	}{
		"non-preemptive: the high one waits 6 s":        {queueing.Engine{Slots: 1, BusyWatts: 2, IdleWatts: 1}, (10.0 + 17) / 2, 8, 0, 44, 22},
		"evicting: 4 s are done again":                  {queueing.Engine{Slots: 1, Policy: queueing.Evicting, BusyWatts: 2, IdleWatts: 1}, (16.0 + 21) / 2, 2, 4.0 / 26, 52, 26},
		"resuming: nothing is":                          {queueing.Engine{Slots: 1, Policy: queueing.Resuming, BusyWatts: 2, IdleWatts: 1}, (12.0 + 17) / 2, 2, 0, 44, 22},
		"two slots: one idles while nothing waits":      {queueing.Engine{Slots: 2, BusyWatts: 2, IdleWatts: 1}, (10.0 + 11) / 2, 2, 0, 22*2 + 10, 16},
		"a sprint of all at twice the speed, for 1 W":   {queueing.Engine{Slots: 1, BusyWatts: 2, Sprints: []approximation.Sprint{{Speed: 2, Watts: 1}, {Speed: 2, Watts: 1}}, Account: approximation.Account{Joules: math.Inf(1)}}, (5.0 + 6) / 2, 2, 0, 33, 11},
		"after a timeout of 5 s":                        {queueing.Engine{Slots: 1, BusyWatts: 2, Sprints: []approximation.Sprint{{TimeoutSeconds: 5, Speed: 2, Watts: 1}, {}}, Account: approximation.Account{Joules: math.Inf(1)}}, (7.5 + 12) / 2, 5.5, 0, 2*17 + 5, 17},
		"an account of 2 J ends the sprint after 2 s":   {queueing.Engine{Slots: 1, BusyWatts: 2, Sprints: []approximation.Sprint{{Speed: 2, Watts: 1}, {}}, Account: approximation.Account{Joules: 2}}, (8.0 + 15) / 2, 6, 0, 2*20 + 2, 20},
		"the low one sprints for the high one":          {queueing.Engine{Slots: 1, BusyWatts: 2, Helps: true, Sprints: []approximation.Sprint{{}, {Speed: 2, Watts: 1}}, Account: approximation.Account{Joules: math.Inf(1)}}, (7.0 + 13) / 2, 4, 0, 2*18 + 4, 18},
		"until the account is empty":                    {queueing.Engine{Slots: 1, BusyWatts: 2, Helps: true, Sprints: []approximation.Sprint{{}, {Speed: 2, Watts: 1}}, Account: approximation.Account{Joules: 2}}, (8.0 + 15) / 2, 6, 0, 2*20 + 2, 20},
		"half a watt of replenishment doubles its time": {queueing.Engine{Slots: 1, BusyWatts: 2, Sprints: []approximation.Sprint{{Speed: 2, Watts: 1}, {}}, Account: approximation.Account{Joules: 2, Watts: 0.5}}, (6.0 + 9) / 2, 4, 0, 2*14 + 8, 14},
	} {
		t.Run(name, func(t *testing.T) {
			played, err := test.engine.Replay(jobs, 2, 0)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "the low mean", played.Classes[low].Mean, test.low, 1e-9)
			near(t, "the high mean", played.Classes[high].Mean, test.high, 1e-9)
			near(t, "the joules", played.Joules, test.joules, 1e-9)
			near(t, "the end", played.Seconds, test.end, 1e-9)
			if math.Abs(played.Wasted-test.wasted) > 1e-9 {
				t.Errorf("%g is wasted, want %g", played.Wasted, test.wasted)
			}
		})
	}
}

// Of two that run the one with less left sprints for the one that waits, and for
// nobody of its own class or below.
func TestWhoSprintsForWhom(t *testing.T) {
	sprint := approximation.Sprint{Speed: 2, Watts: 1}
	engine := queueing.Engine{Slots: 2, Helps: true, Sprints: []approximation.Sprint{sprint, sprint}, Account: approximation.Account{Joules: math.Inf(1)}}
	engine.Sprints[0].TimeoutSeconds = 100
	played, err := engine.Replay([]queueing.Job{{0, 0, 20}, {0, 1, 10}, {1, 2, 2}}, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "the low mean", played.Classes[0].Mean, (20+5.5)/2, 1e-9)
	near(t, "the high mean", played.Classes[1].Mean, 5.5, 1e-9)
	played, err = engine.Replay([]queueing.Job{{0, 0, 20}, {1, 1, 10}, {0, 2, 2}, {1, 3, 2}}, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	// The high one runs to 6, helped by itself only; the low one helps from 3 to 6.
	near(t, "the low mean", played.Classes[0].Mean, (17+7)/2.0, 1e-9)
	near(t, "the high mean", played.Classes[1].Mean, (5+4)/2.0, 1e-9)
}

// Whatever the engine does, it does all of the work, once and wasted apart.
func TestNoWorkIsLostOrInvented(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes := rapid.IntRange(1, 3).Draw(t, "classes")
		engine := queueing.Engine{
			Slots: rapid.IntRange(1, 4).Draw(t, "slots"), Policy: queueing.Policy(rapid.IntRange(0, 2).Draw(t, "policy")), BusyWatts: 1, Helps: rapid.Bool().Draw(t, "helps"),
			Account: approximation.Account{Joules: rapid.Float64Range(0, 50).Draw(t, "joules"), Watts: rapid.Float64Range(0, 3).Draw(t, "watts")},
		}
		for range classes {
			engine.Sprints = append(engine.Sprints, approximation.Sprint{TimeoutSeconds: rapid.Float64Range(0, 5).Draw(t, "timeout"), Speed: rapid.Float64Range(1, 3).Draw(t, "speed"), Watts: rapid.Float64Range(0, 4).Draw(t, "extra")})
		}
		var jobs []queueing.Job
		at, work := 0.0, 0.0
		for range rapid.IntRange(1, 40).Draw(t, "jobs") {
			at += rapid.Float64Range(0, 3).Draw(t, "gap")
			jobs = append(jobs, queueing.Job{Class: rapid.IntRange(0, classes-1).Draw(t, "class"), At: at, Seconds: rapid.Float64Range(0, 9).Draw(t, "seconds")})
			work += jobs[len(jobs)-1].Seconds
		}
		played, err := engine.Replay(jobs, classes, 0)
		if err != nil {
			t.Fatal(err)
		}
		count, slowest := 0, played.Busy*(1-played.Wasted)
		for _, class := range played.Classes {
			count += class.Jobs
		}
		if count != len(jobs) || played.Wasted > 0 && engine.Policy != queueing.Evicting || slowest > work+1e-6 {
			t.Fatalf("%d of %d jobs are done in %g s of %g, with %g wasted", count, len(jobs), slowest, work, played.Wasted)
		}
		if spent, had := played.Joules-played.Busy, engine.Account.Joules+engine.Account.Watts*played.Seconds; spent > had+1e-6*(1+had) {
			t.Fatalf("sprints took %g J, and there were %g", spent, had)
		}
		if played.Sprinted == 0 && engine.Policy != queueing.Evicting && math.Abs(slowest-work) > 1e-6 {
			t.Fatalf("%g s of work took %g s without a sprint", work, slowest)
		}
	})
}

func TestEvictionWastesWorkAndWaitingDoesNot(t *testing.T) {
	list := jobs(3, load{hours: 200, low: 9, high: 12})
	played := func(policy queueing.Policy) queueing.Played {
		one, err := queueing.Engine{Slots: 1, Policy: policy}.Replay(list, 2, 0)
		if err != nil {
			t.Fatal(err)
		}
		return one
	}
	evicted, waited, resumed := played(queueing.Evicting), played(queueing.NonPreemptive), played(queueing.Resuming)
	if evicted.Wasted <= 0.02 || waited.Wasted != 0 || resumed.Wasted != 0 {
		t.Errorf("wasted %g with evictions, %g without and %g with checkpoints", evicted.Wasted, waited.Wasted, resumed.Wasted)
	}
	if evicted.Classes[0].Mean <= waited.Classes[0].Mean || evicted.Classes[1].Mean >= waited.Classes[1].Mean || resumed.Classes[0].Mean >= evicted.Classes[0].Mean {
		t.Errorf("with evictions %+v, without %+v, with checkpoints %+v", evicted, waited, resumed)
	}
}

// One class of exponential jobs before one slot is M/M/1, and two are Cobham's.
func TestReplaysFollowQueueingTheory(t *testing.T) {
	random, rates := rand.New(rand.NewPCG(5, 6)), []float64{0.4, 0.3}
	var list []queueing.Job
	for at, count := 0.0, 0; count < 100_000; count++ {
		at += random.ExpFloat64() / (rates[0] + rates[1])
		class := 0
		if random.Float64() > rates[0]/(rates[0]+rates[1]) {
			class = 1
		}
		list = append(list, queueing.Job{Class: class, At: at, Seconds: random.ExpFloat64()})
	}
	played, err := queueing.Engine{Slots: 1}.Replay(list, 2, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	left := rates[0] + rates[1] // of who is served, as one comes
	near(t, "the high mean", played.Classes[1].Mean, 1+left/(1-rates[1]), 0.06)
	near(t, "the low mean", played.Classes[0].Mean, 1+left/((1-rates[1])*(1-left)), 0.06)
}

// The earliest sprint that is paid takes what comes back, and of no limit or of
// enough energy it begins at once.
// What runs did while they sprinted is known once three were seen both ways; a
// history is read back as it was written.
// Engines and jobs that cannot be.
func TestReplaysThatCannotBe(t *testing.T) {
	control := &queueing.Control{Every: 1, Next: approximation.NextShare}
	for name, engine := range map[string]queueing.Engine{
		"no slot":                          {},
		"an unknown policy":                {Slots: 1, Policy: 7},
		"a sprint too many":                {Slots: 1, Sprints: make([]approximation.Sprint, 3)},
		"a controller and evictions":       {Slots: 1, Policy: queueing.Evicting, Control: control},
		"a controller that is never asked": {Slots: 1, Control: &queueing.Control{Next: approximation.NextShare}},
	} {
		if _, err := engine.Replay(nil, 2, 0); err == nil {
			t.Errorf("%s was played", name)
		}
	}
	for name, list := range map[string][]queueing.Job{
		"an unknown class": {{Class: 2}}, "one before the one before": {{At: 2}, {At: 1}}, "no time": {{At: math.NaN()}}, "less than no work": {{Seconds: -1}},
	} {
		if _, err := (queueing.Engine{Slots: 1}).Replay(list, 2, 0); err == nil {
			t.Errorf("%s was played", name)
		}
	}
}
