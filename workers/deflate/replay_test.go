package deflate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/workers/deflate"
)

// stream is a class whose jobs come at random.
type stream struct {
	Rate     float64
	Service  deflate.Phases
	Standing int
}

// newQueue is the queue of such classes.
func newQueue(streams []stream, slots int) (*deflate.Queue, error) {
	arrivals, classes := settingOf(streams)
	return deflate.NewQueue(arrivals, classes, slots)
}

func settingOf(streams []stream) (deflate.Arrivals, []deflate.Class) {
	var rates []float64
	var classes []deflate.Class
	for _, one := range streams {
		rates, classes = append(rates, one.Rate), append(classes, deflate.Class{Service: []deflate.Phases{one.Service}, Standing: one.Standing})
	}
	return deflate.Poisson(rates...), classes
}

// play draws jobs of the classes, which come at random, and plays them.
func play(t *testing.T, classes []stream, engine deflate.Engine, count int, seed uint64) deflate.Played {
	t.Helper()
	var rates []float64
	for _, class := range classes {
		rates = append(rates, class.Rate)
	}
	return playArrivals(t, deflate.Poisson(rates...), classes, engine, count, seed)
}

func playArrivals(t *testing.T, arrivals deflate.Arrivals, classes []stream, engine deflate.Engine, count int, seed uint64) deflate.Played {
	t.Helper()
	_, all := settingOf(classes)
	jobs, err := arrivals.Draw(all, count, rand.New(rand.NewPCG(seed, 7)))
	if err != nil {
		t.Fatal(err)
	}
	played, err := engine.Replay(jobs, len(classes), 0.1)
	if err != nil {
		t.Fatal(err)
	}
	return played
}

// A fitted distribution has the moments that were asked for.
func TestFitsHaveTheMoments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mean := rapid.Float64Range(1e-3, 1e6).Draw(t, "mean")
		variation := rapid.Float64Range(0, 40).Draw(t, "variation")
		p, err := deflate.Fit(mean, variation)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		first, second := p.Moments()
		got := second/(first*first) - 1
		if math.Abs(first-mean) > 1e-9*mean || math.Abs(got-max(variation, 1.0/30)) > 1e-6*(1+variation) {
			t.Fatalf("a mean of %g and a variation of %g, want %g and %g", first, got, mean, variation)
		}
	})
	for _, wrong := range [][2]float64{{0, 1}, {-1, 1}, {1, -0.1}, {math.NaN(), 1}, {1, math.Inf(1)}} {
		if _, err := deflate.Fit(wrong[0], wrong[1]); err == nil {
			t.Errorf("%v was fitted", wrong)
		}
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

// The model against the simulation with several slots, and with a class that
// always has jobs waiting.
func TestTheModelOfSeveralSlots(t *testing.T) {
	low, err := deflate.Fit(30, 0.3)
	if err != nil {
		t.Fatal(err)
	}
	high, err := deflate.Fit(10, 1.5)
	if err != nil {
		t.Fatal(err)
	}
	for _, slots := range []int{1, 2, 4, 8} {
		for _, load := range []float64{0.5, 0.8} {
			c := float64(slots) * load
			classes := []stream{{Rate: 0.7 * c / 30, Service: low}, {Rate: 0.3 * c / 10, Service: high}}
			q, err := newQueue(classes, slots)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "the load", q.Load(), load, 1e-9)
			played := play(t, classes, deflate.Engine{Slots: slots}, 60_000, 2).Classes
			for k := range classes {
				what := fmt.Sprintf("%d slots, load %g, class %d: ", slots, load, k)
				near(t, what+"the mean", q.Mean(k), played[k].Mean, 0.15)
				last, err := q.Quantile(k, 0.95)
				if err != nil {
					t.Fatal(err)
				}
				near(t, what+"the quantile", last, played[k].Tail, 0.2)
			}
		}
	}
	standing, err := newQueue([]stream{{Standing: 1, Service: exponential(4)}, {Rate: 0.05, Service: exponential(5)}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	// The high job finds a low one under way, or another high one.
	near(t, "the high mean beside a standing class", standing.Mean(1), (0.75*4+0.25*5)/(1-0.25)+5, 1e-9)
	near(t, "the standing mean", standing.Mean(0), 4/0.75+4, 1e-9)
	near(t, "the load", standing.Load(), 1, 1e-12)
	last, err := standing.Quantile(0, 0.95)
	if err != nil || last <= standing.Mean(0) || last > 5*standing.Mean(0) {
		t.Errorf("95%% of the standing jobs are answered within %g s, of a mean of %g: %v", last, standing.Mean(0), err)
	}
	if _, err := newQueue([]stream{{Rate: 1, Service: exponential(0.1)}, {Standing: 1, Service: exponential(1)}}, 1); err == nil {
		t.Error("a class above another always has jobs, and the other was given time")
	}
}

// Arrivals that come in bursts have the rates they should, and wait longer.
func TestArrivalsInBursts(t *testing.T) {
	bursts := deflate.Arrivals{
		Hidden: [][]float64{{0, 0.001}, {0.004, 0}},
		Marked: [][][]float64{{{0.02, 0}, {0, 0.3}}, {{0.01, 0}, {0, 0.05}}},
	}
	rates := bursts.Rates()
	near(t, "the low rate", rates[0], 0.8*0.02+0.2*0.3, 1e-6)
	near(t, "the high rate", rates[1], 0.8*0.01+0.2*0.05, 1e-6)
	classes := []stream{{Rate: rates[0], Service: exponential(5)}, {Rate: rates[1], Service: exponential(5)}}
	smooth := play(t, classes, deflate.Engine{Slots: 1}, 40_000, 4)
	rough := playArrivals(t, bursts, classes, deflate.Engine{Slots: 1}, 40_000, 4)
	if rough.Classes[0].Mean < 1.5*smooth.Classes[0].Mean {
		t.Errorf("in bursts %g s, one by one %g s", rough.Classes[0].Mean, smooth.Classes[0].Mean)
	}
	near(t, "the seconds in which they come", rough.Seconds, 40_000/(rates[0]+rates[1]), 0.1)
	for name, wrong := range map[string]deflate.Arrivals{
		"no classes":       {Hidden: [][]float64{{0}}},
		"a phase for ever": {Hidden: [][]float64{{0, 0}, {1, 0}}, Marked: [][][]float64{{{0, 0}, {0, 1}}}},
		"negative":         {Hidden: [][]float64{{0}}, Marked: [][][]float64{{{-1}}}},
		"ragged":           {Hidden: [][]float64{{0, 1}, {1}}, Marked: [][][]float64{{{1, 0}, {0, 1}}}},
	} {
		if wrong.Check() == nil {
			t.Errorf("%s: no fault was found", name)
		}
	}
}

// What a sprint brings is that of the formula, and of the simulation.
func TestSprints(t *testing.T) {
	near(t, "what is left of an exponential time", exponential(3).Beyond(2), 3*math.Exp(-2.0/3), 1e-4)
	service, err := deflate.Fit(10, 0.4)
	if err != nil {
		t.Fatal(err)
	}
	sprint := deflate.Sprint{TimeoutSeconds: 4, Speed: 2.5, Watts: 90}
	speed, watts := sprint.Effective(service, 0.05, deflate.Account{Joules: math.Inf(1)})
	engine := deflate.Engine{Slots: 1, Sprints: []deflate.Sprint{sprint}, Account: deflate.Account{Joules: math.Inf(1)}}
	played := play(t, []stream{{Rate: 0.05, Service: service}}, engine, 40_000, 5)
	near(t, "the run of a sprinted job", 10/speed, played.Classes[0].Run, 0.03)
	near(t, "the watts of sprints", watts, played.Joules/played.Seconds, 0.05)

	account := deflate.Account{Joules: 2000, Watts: watts / 3}
	paid := sprint.Paid(service, 0.05, account)
	if paid.TimeoutSeconds <= 4 {
		t.Errorf("a third of the energy allows to sprint after %g s, and all of it after 4", paid.TimeoutSeconds)
	}
	if _, takes := paid.Effective(service, 0.05, account); math.Abs(takes-account.Watts) > 0.01*account.Watts {
		t.Errorf("%g W are taken of %g", takes, account.Watts)
	}
	if free := sprint.Paid(service, 0.05, deflate.Account{Joules: math.Inf(1)}); free.TimeoutSeconds != 0 {
		t.Errorf("without a limit sprints begin after %g s", free.TimeoutSeconds)
	}
	if still, none := (deflate.Sprint{}).Effective(service, 1, account); still != 1 || none != 0 {
		t.Errorf("no sprint has speed %g and takes %g W", still, none)
	}
}

// Of limits that cannot be kept, the choice is as near as is allowed.
func TestTheDeepestDrops(t *testing.T) {
	list := demands(10*0.3*0.3, 0.1) // less than its own service takes
	choice, err := deflate.Choose(list, 10)
	if err == nil || math.Abs(choice.Drop[0]-0.3) > 1e-9 || choice.Drop[1] != 0 || len(choice.Mean) != 2 {
		t.Errorf("%+v, %v: want the largest drop that the loss allows, 0.3", choice, err)
	}
	list.Demands[0].MostDrop = 0.2
	if deepest, err := deflate.Deepest(list, 10); err != nil || math.Abs(deepest.Drop[0]-0.2) > 1e-9 {
		t.Errorf("%+v, %v: want 0.2", deepest, err)
	}
	list.Arrivals = deflate.Poisson(1, 0.008)
	if over, err := deflate.Deepest(list, 10); err != nil || over.Load != 1 || over.Mean != nil {
		t.Errorf("%+v, %v: of more work than can be done no response is known", over, err)
	}
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

// A history that was met with less data tells what all data take.
func TestHistoriesOfRuns(t *testing.T) {
	var history deflate.History
	if history.Rate(5) != 0 || history.Responses(0).Runs != 0 {
		t.Error("nothing was met, and something is known")
	}
	for i := range 300 {
		drop := 0.0
		if i%2 == 1 {
			drop = 0.5
		}
		history.Add(deflate.Run{Began: float64(10 * i), Waited: 2, Setup: 1, Seconds: 1 + 8*(1-drop), Drop: drop})
	}
	history.Add(deflate.Run{Began: 3000, Seconds: -1})
	if history.Len() != 200 {
		t.Errorf("%d runs are kept", history.Len())
	}
	near(t, "the rate", history.Rate(3000), 0.1, 0.01)
	near(t, "the rate a long time later", history.Rate(2990+span-15), 2.0/(span-15), 0.4)
	for drop, want := range map[float64]float64{0: 9, 0.25: 7, 0.5: 5} {
		service, err := deflate.Observe([]deflate.History{history}, []int{0}, 3000).Service(0)(drop)
		if err != nil {
			t.Fatal(err)
		}
		mean, _ := service[0].Moments()
		near(t, "the mean", mean, want, 1e-9)
	}
	met := history.Responses(0)
	near(t, "the mean that was met", met.Mean, 2+7, 1e-9)
	near(t, "the tail that was met", met.Tail, 11, 1e-9)
	if late := history.Responses(2985); late.Runs != 1 || late.Mean != 7 {
		t.Errorf("of the last: %+v", late)
	}
}

const span = 3600.0
