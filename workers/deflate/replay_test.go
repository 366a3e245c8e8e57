package deflate_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/workers/deflate"
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
	jobs := []deflate.Job{{low, 0, 10}, {high, 4, 2}, {low, 5, 10}}
	for name, test := range map[string]struct {
		engine              deflate.Engine
		low, high           float64 // mean responses
		wasted, joules, end float64
	}{
		"non-preemptive: the high one waits 6 s":        {deflate.Engine{Slots: 1, BusyWatts: 2, IdleWatts: 1}, (10.0 + 17) / 2, 8, 0, 44, 22},
		"evicting: 4 s are done again":                  {deflate.Engine{Slots: 1, Policy: deflate.Evicting, BusyWatts: 2, IdleWatts: 1}, (16.0 + 21) / 2, 2, 4.0 / 26, 52, 26},
		"resuming: nothing is":                          {deflate.Engine{Slots: 1, Policy: deflate.Resuming, BusyWatts: 2, IdleWatts: 1}, (12.0 + 17) / 2, 2, 0, 44, 22},
		"two slots: one idles while nothing waits":      {deflate.Engine{Slots: 2, BusyWatts: 2, IdleWatts: 1}, (10.0 + 11) / 2, 2, 0, 22*2 + 10, 16},
		"a sprint of all at twice the speed, for 1 W":   {deflate.Engine{Slots: 1, BusyWatts: 2, Sprints: []deflate.Sprint{{Speed: 2, Watts: 1}, {Speed: 2, Watts: 1}}, Account: deflate.Account{Joules: math.Inf(1)}}, (5.0 + 6) / 2, 2, 0, 33, 11},
		"after a timeout of 5 s":                        {deflate.Engine{Slots: 1, BusyWatts: 2, Sprints: []deflate.Sprint{{TimeoutSeconds: 5, Speed: 2, Watts: 1}, {}}, Account: deflate.Account{Joules: math.Inf(1)}}, (7.5 + 12) / 2, 5.5, 0, 2*17 + 5, 17},
		"an account of 2 J ends the sprint after 2 s":   {deflate.Engine{Slots: 1, BusyWatts: 2, Sprints: []deflate.Sprint{{Speed: 2, Watts: 1}, {}}, Account: deflate.Account{Joules: 2}}, (8.0 + 15) / 2, 6, 0, 2*20 + 2, 20},
		"the low one sprints for the high one":          {deflate.Engine{Slots: 1, BusyWatts: 2, Helps: true, Sprints: []deflate.Sprint{{}, {Speed: 2, Watts: 1}}, Account: deflate.Account{Joules: math.Inf(1)}}, (7.0 + 13) / 2, 4, 0, 2*18 + 4, 18},
		"until the account is empty":                    {deflate.Engine{Slots: 1, BusyWatts: 2, Helps: true, Sprints: []deflate.Sprint{{}, {Speed: 2, Watts: 1}}, Account: deflate.Account{Joules: 2}}, (8.0 + 15) / 2, 6, 0, 2*20 + 2, 20},
		"half a watt of replenishment doubles its time": {deflate.Engine{Slots: 1, BusyWatts: 2, Sprints: []deflate.Sprint{{Speed: 2, Watts: 1}, {}}, Account: deflate.Account{Joules: 2, Watts: 0.5}}, (6.0 + 9) / 2, 4, 0, 2*14 + 8, 14},
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
	sprint := deflate.Sprint{Speed: 2, Watts: 1}
	engine := deflate.Engine{Slots: 2, Helps: true, Sprints: []deflate.Sprint{sprint, sprint}, Account: deflate.Account{Joules: math.Inf(1)}}
	engine.Sprints[0].TimeoutSeconds = 100
	played, err := engine.Replay([]deflate.Job{{0, 0, 20}, {0, 1, 10}, {1, 2, 2}}, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "the low mean", played.Classes[0].Mean, (20+5.5)/2, 1e-9)
	near(t, "the high mean", played.Classes[1].Mean, 5.5, 1e-9)
	played, err = engine.Replay([]deflate.Job{{0, 0, 20}, {1, 1, 10}, {0, 2, 2}, {1, 3, 2}}, 2, 0)
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
		engine := deflate.Engine{
			Slots: rapid.IntRange(1, 4).Draw(t, "slots"), Policy: deflate.Policy(rapid.IntRange(0, 2).Draw(t, "policy")), BusyWatts: 1, Helps: rapid.Bool().Draw(t, "helps"),
			Account: deflate.Account{Joules: rapid.Float64Range(0, 50).Draw(t, "joules"), Watts: rapid.Float64Range(0, 3).Draw(t, "watts")},
		}
		for range classes {
			engine.Sprints = append(engine.Sprints, deflate.Sprint{TimeoutSeconds: rapid.Float64Range(0, 5).Draw(t, "timeout"), Speed: rapid.Float64Range(1, 3).Draw(t, "speed"), Watts: rapid.Float64Range(0, 4).Draw(t, "extra")})
		}
		var jobs []deflate.Job
		at, work := 0.0, 0.0
		for range rapid.IntRange(1, 40).Draw(t, "jobs") {
			at += rapid.Float64Range(0, 3).Draw(t, "gap")
			jobs = append(jobs, deflate.Job{Class: rapid.IntRange(0, classes-1).Draw(t, "class"), At: at, Seconds: rapid.Float64Range(0, 9).Draw(t, "seconds")})
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
		if count != len(jobs) || played.Wasted > 0 && engine.Policy != deflate.Evicting || slowest > work+1e-6 {
			t.Fatalf("%d of %d jobs are done in %g s of %g, with %g wasted", count, len(jobs), slowest, work, played.Wasted)
		}
		if spent, had := played.Joules-played.Busy, engine.Account.Joules+engine.Account.Watts*played.Seconds; spent > had+1e-6*(1+had) {
			t.Fatalf("sprints took %g J, and there were %g", spent, had)
		}
		if played.Sprinted == 0 && engine.Policy != deflate.Evicting && math.Abs(slowest-work) > 1e-6 {
			t.Fatalf("%g s of work took %g s without a sprint", work, slowest)
		}
	})
}

func TestEvictionWastesWorkAndWaitingDoesNot(t *testing.T) {
	list := jobs(3, load{hours: 200, low: 9, high: 12})
	played := func(policy deflate.Policy) deflate.Played {
		one, err := deflate.Engine{Slots: 1, Policy: policy}.Replay(list, 2, 0)
		if err != nil {
			t.Fatal(err)
		}
		return one
	}
	evicted, waited, resumed := played(deflate.Evicting), played(deflate.NonPreemptive), played(deflate.Resuming)
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
	var list []deflate.Job
	for at, count := 0.0, 0; count < 100_000; count++ {
		at += random.ExpFloat64() / (rates[0] + rates[1])
		class := 0
		if random.Float64() > rates[0]/(rates[0]+rates[1]) {
			class = 1
		}
		list = append(list, deflate.Job{Class: class, At: at, Seconds: random.ExpFloat64()})
	}
	played, err := deflate.Engine{Slots: 1}.Replay(list, 2, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	left := rates[0] + rates[1] // of who is served, as one comes
	near(t, "the high mean", played.Classes[1].Mean, 1+left/(1-rates[1]), 0.06)
	near(t, "the low mean", played.Classes[0].Mean, 1+left/((1-rates[1])*(1-left)), 0.06)
}

func TestTheCurveOfALogarithm(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var pairs []deflate.Pair
	for range 40 {
		own := random.Float64()
		value := func(data float64) float64 { return own + 0.03*math.Log(data) + 0.002*random.NormFloat64() }
		pairs = append(pairs, deflate.Pair{Less: 3, More: 9, Low: value(3), High: value(9)})
	}
	curve, err := deflate.Learn(pairs)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "the loss of a quarter", curve.Loss(0.25), 0.03*math.Log(4.0/3), 0.1)
	if curve.Loss(0) != 0 || curve.Bound(0.25) <= curve.Loss(0.25) || curve.Bound(0.25) > 1.3*curve.Loss(0.25) {
		t.Errorf("the loss of nothing is %g; of a quarter %g, at most %g", curve.Loss(0), curve.Loss(0.25), curve.Bound(0.25))
	}
	if _, err := deflate.Learn(pairs[:2]); err != deflate.ErrFewPairs { //nolint:errorlint // that very one
		t.Errorf("of two pairs: %v", err)
	}
	if _, err := deflate.Learn(append(pairs, deflate.Pair{Less: 2, More: 1})); err == nil {
		t.Error("less data than less was taken")
	}
	// A metric that falls with data costs nothing.
	worse, err := deflate.Learn([]deflate.Pair{{1, 2, 0.9, 0.8}, {1, 2, 0.9, 0.8}, {1, 2, 0.9, 0.8}})
	if err != nil || worse.Loss(0.5) != 0 || worse.Bound(0.5) != 0 {
		t.Errorf("%+v, %v", worse, err)
	}
}

// The earliest sprint that is paid takes what comes back, and of no limit or of
// enough energy it begins at once.
func TestSprintsThatArePaid(t *testing.T) {
	took := []float64{10, 20, 30}
	sprint := deflate.Sprint{TimeoutSeconds: 5, Speed: 2, Watts: 90}
	near(t, "the watts", sprint.Takes(took, 0.01), 0.01*(5+15+25)/3/2*90, 1e-9)
	paid := sprint.Paid(took, 0.01, deflate.Account{Joules: 1000, Watts: 1.5})
	near(t, "the timeout", paid.TimeoutSeconds, 20, 1e-6)
	near(t, "what it takes", paid.Takes(took, 0.01), 1.5, 1e-6)
	for _, rich := range []deflate.Account{{Joules: math.Inf(1)}, {Joules: 1000, Watts: 9}} {
		if free := sprint.Paid(took, 0.01, rich); free.TimeoutSeconds != 0 {
			t.Errorf("with %+v sprints begin after %g s", rich, free.TimeoutSeconds)
		}
	}
	if none := sprint.Paid(took, 0.01, deflate.Account{}); none.TimeoutSeconds < 29.9 {
		t.Errorf("with nothing sprints begin after %g s", none.TimeoutSeconds)
	}
	if takes := (deflate.Sprint{}).Takes(took, 1); takes != 0 {
		t.Errorf("no sprint takes %g W", takes)
	}
}

// What runs did while they sprinted is known once three were seen both ways; a
// history is read back as it was written.
func TestHistoriesOfSprints(t *testing.T) {
	var history deflate.History
	for i := range 3 {
		if speed, known := history.Speed(); known || speed != 1 {
			t.Errorf("after %d runs sprints are %g times as fast, known: %t", i, speed, known)
		}
		history.Add(deflate.Run{Began: float64(100 * i), Seconds: 40, Sprinted: 20, Speed: 2 + float64(i)/10})
	}
	history.Add(deflate.Run{Began: 300, Seconds: 70})
	history.Add(deflate.Run{Began: 300, Seconds: math.Inf(1)})
	if speed, known := history.Speed(); !known || speed != 2.1 {
		t.Errorf("sprints are %g times as fast, known: %t", speed, known)
	}
	if plain := history.Plain(); len(plain) != 4 || math.Abs(plain[0]-(40+1.1*20)) > 1e-9 || plain[3] != 70 {
		t.Errorf("without sprints they take %v", plain)
	}
	document, err := json.Marshal(history)
	if err != nil {
		t.Fatal(err)
	}
	var read deflate.History
	if err := json.Unmarshal(document, &read); err != nil {
		t.Fatal(err)
	}
	if read.Len() != 4 || read.Responses(0) != history.Responses(0) || read.Newest() != 300 {
		t.Errorf("%s is read as %+v", document, read)
	}
	if err := json.Unmarshal([]byte(`{"runs": 1}`), &read); err == nil {
		t.Error("what is no list was read")
	}
}

func TestHistoriesOfRuns(t *testing.T) {
	var history deflate.History
	if history.Rate(5) != 0 || history.Responses(0).Runs != 0 {
		t.Error("nothing was met, and something is known")
	}
	for i := range 300 {
		history.Add(deflate.Run{Began: float64(10 * i), Waited: 2, Seconds: 5 + 4*float64(i%2)})
	}
	history.Add(deflate.Run{Began: 3000, Seconds: -1})
	if history.Len() != 100 {
		t.Errorf("%d runs are kept", history.Len())
	}
	near(t, "the rate", history.Rate(3000), 0.1, 0.01)
	near(t, "the rate a long time later", history.Rate(2990+3600-15), 2.0/(3600-15), 0.4)
	met := history.Responses(0)
	near(t, "the mean that was met", met.Mean, 2+7, 1e-9)
	near(t, "the tail that was met", met.Tail, 11, 1e-9)
	if late := history.Responses(2994); late.Runs != 1 || late.Mean != 11 {
		t.Errorf("of the last: %+v", late)
	}
}

// Engines and jobs that cannot be.
func TestReplaysThatCannotBe(t *testing.T) {
	control := &deflate.Control{Every: 1, Next: deflate.Next}
	for name, engine := range map[string]deflate.Engine{
		"no slot":                          {},
		"an unknown policy":                {Slots: 1, Policy: 7},
		"a sprint too many":                {Slots: 1, Sprints: make([]deflate.Sprint, 3)},
		"a controller and evictions":       {Slots: 1, Policy: deflate.Evicting, Control: control},
		"a controller that is never asked": {Slots: 1, Control: &deflate.Control{Next: deflate.Next}},
	} {
		if _, err := engine.Replay(nil, 2, 0); err == nil {
			t.Errorf("%s was played", name)
		}
	}
	for name, list := range map[string][]deflate.Job{
		"an unknown class": {{Class: 2}}, "one before the one before": {{At: 2}, {At: 1}}, "no time": {{At: math.NaN()}}, "less than no work": {{Seconds: -1}},
	} {
		if _, err := (deflate.Engine{Slots: 1}).Replay(list, 2, 0); err == nil {
			t.Errorf("%s was played", name)
		}
	}
}
