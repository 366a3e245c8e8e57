package deflate_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/workers/deflate"
)

// bursty are two classes that come in bursts of some length; jobs of the second
// come a while after those of the first.
func bursty(slow float64) deflate.Arrivals {
	return deflate.Arrivals{
		Hidden: [][]float64{{0, 0.01 * slow, 0}, {0, 0, 0.05 * slow}, {0.04 * slow, 0, 0}},
		Marked: [][][]float64{
			{{0.02, 0, 0}, {0, 0.30, 0.02}, {0, 0, 0.05}},
			{{0.03, 0, 0}, {0, 0.05, 0}, {0.02, 0, 0.12}},
		},
	}
}

// One class of exponential jobs before a fast server is MAP/M/1, whose queue is
// matrix-geometric: here by its own, independent, iteration for R.
func TestAnExactQueueWithBursts(t *testing.T) {
	a := deflate.Arrivals{Hidden: [][]float64{{0, 0.1}, {0.3, 0}}, Marked: [][][]float64{{{0.2, 0}, {0, 2.2}}}}
	const mu = 1.4
	d0 := [2][2]float64{{-0.3, 0.1}, {0.3, -2.5}}
	var r [2][2]float64
	for range 20_000 { // R = (D₁ + R²μ)(μ − D₀)⁻¹
		top := [2][2]float64{{0.2, 0}, {0, 2.2}}
		for i := range 2 {
			for j := range 2 {
				top[i][j] += mu * (r[i][0]*r[0][j] + r[i][1]*r[1][j])
			}
		}
		x, y, z, w := mu-d0[0][0], -d0[0][1], -d0[1][0], mu-d0[1][1]
		det := x*w - y*z
		for i := range 2 {
			r[i][0], r[i][1] = (top[i][0]*w-top[i][1]*z)/det, (top[i][1]*x-top[i][0]*y)/det
		}
	}
	// π₀(D₀ + μR) = 0, and π₀ (1−R)⁻¹ 1 = 1; the number is π₀ R (1−R)⁻² 1.
	p := [2]float64{1, 0}
	p[1] = -(d0[0][0] + mu*r[0][0]) / (d0[1][0] + mu*r[1][0])
	sum, number := 0.0, 0.0
	for n := range 10_000 {
		sum, number = sum+p[0]+p[1], number+float64(n)*(p[0]+p[1])
		p = [2]float64{p[0]*r[0][0] + p[1]*r[1][0], p[0]*r[0][1] + p[1]*r[1][1]}
	}
	rate := a.Rates()[0]
	want := number / sum / rate
	q, err := deflate.NewQueue(a, []deflate.Class{{Service: []deflate.Phases{exponential(1 / mu)}}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "the mean", q.Mean(0), want, 1e-7)
	// The mean is the integral of the tail.
	integral, step := 0.0, want/50
	for at := step / 2; at < 40*want; at += step {
		integral += step * q.Tail(0, at)
	}
	near(t, "the integral of the tail", integral, want, 1e-3)
}

// Phases in which the same happens are Poisson arrivals, whatever moves between
// them.
func TestBurstsThatAreNoneArePoisson(t *testing.T) {
	low, high := exponential(3), exponential(2)
	same := deflate.Arrivals{Hidden: [][]float64{{0, 0.3}, {0.01, 0}}, Marked: [][][]float64{{{0.1, 0}, {0, 0.1}}, {{0, 0.2}, {0.2, 0}}}}
	for _, slots := range []int{1, 3} {
		q, err := deflate.NewQueue(same, []deflate.Class{{Service: []deflate.Phases{low}}, {Service: []deflate.Phases{high, high}}}, slots)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := newQueue([]stream{{Rate: 0.1, Service: low}, {Rate: 0.2, Service: high}}, slots)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "the load", q.Load(), plain.Load(), 1e-9)
		for k := range 2 {
			near(t, "the mean", q.Mean(k), plain.Mean(k), 1e-6)
			near(t, "the tail", q.Tail(k, 12), plain.Tail(k, 12), 1e-5)
		}
	}
}

// The model against the simulation, for one slot, where it is exact, and for
// several. Each number is the mean of plays with other seeds, and the limit is
// three of its standard errors, or a share where the model is not exact.
func TestTheModelOfBursts(t *testing.T) {
	low, err := deflate.Fit(3, 0.4)
	if err != nil {
		t.Fatal(err)
	}
	high, err := deflate.Fit(2, 2)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		arrivals deflate.Arrivals
		slots    int
		share    float64
	}{
		"fast":                {bursty(10), 1, 0},
		"slow":                {bursty(1), 1, 0},
		"slow, four slots":    {faster(bursty(1), 4), 4, 0.1},
		"slower, eight slots": {faster(bursty(0.5), 8), 8, 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			classes := []deflate.Class{{Service: []deflate.Phases{low}}, {Service: []deflate.Phases{high}}}
			q, err := deflate.NewQueue(test.arrivals, classes, test.slots)
			if err != nil {
				t.Fatal(err)
			}
			var means, tails [2][]float64
			for seed := range 8 {
				played := playArrivals(t, test.arrivals, []stream{{Service: low}, {Service: high}}, deflate.Engine{Slots: test.slots}, 40_000, uint64(seed))
				for k, one := range played.Classes {
					means[k], tails[k] = append(means[k], one.Mean), append(tails[k], one.Tail)
				}
			}
			for k := range classes {
				last, err := q.Quantile(k, 0.95)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("class %d: mean %.4g, tail %.4g; played %.4g, %.4g", k, q.Mean(k), last, average(means[k]), average(tails[k]))
				within(t, "the mean", q.Mean(k), means[k], test.share)
				within(t, "the tail", last, tails[k], test.share)
			}
		})
	}
}

// faster has jobs come so many times as often, with the same phases.
func faster(a deflate.Arrivals, times float64) deflate.Arrivals {
	for _, matrix := range append([][][]float64{a.Hidden}, a.Marked...) {
		for _, row := range matrix {
			for j := range row {
				row[j] *= times
			}
		}
	}
	return a
}

func average(list []float64) float64 {
	sum := 0.0
	for _, one := range list {
		sum += one / float64(len(list))
	}
	return sum
}

// within fails where the value is further from the mean of the list than three of
// its standard errors and a share of it.
func within(t *testing.T, what string, got float64, list []float64, share float64) {
	t.Helper()
	mean, square := average(list), 0.0
	for _, one := range list {
		square += (one - mean) * (one - mean)
	}
	count := float64(len(list))
	if limit := 3.5*math.Sqrt(square/(count-1)/count) + share*mean; math.Abs(got-mean) > limit {
		t.Errorf("%s is %g, played %g ± %g", what, got, mean, limit)
	}
}

// arrivalsOf are the jobs as a server observes them.
func arrivalsOf(jobs []deflate.Job) []deflate.Arrival {
	var list []deflate.Arrival
	for _, job := range jobs {
		list = append(list, deflate.Arrival{Class: job.Class, Run: deflate.Run{Began: job.At + 5, Waited: 5, Seconds: job.Seconds}})
	}
	return list
}

// What is fitted to many jobs of a process predicts as the process itself does,
// and jobs that come one by one are seen to have next to no bursts.
func TestAProcessIsFittedToWhatWasObserved(t *testing.T) {
	services := []deflate.Class{{Service: []deflate.Phases{exponential(3)}}, {Service: []deflate.Phases{exponential(2)}}}
	for name, test := range map[string]struct {
		arrivals deflate.Arrivals
		share    float64
	}{
		"bursts":     {deflate.Arrivals{Hidden: [][]float64{{0, 0.001}, {0.004, 0}}, Marked: [][][]float64{{{0.05, 0}, {0, 0.4}}, {{0.03, 0}, {0, 0.08}}}}, 0.25},
		"one by one": {deflate.Poisson(0.12, 0.05), 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			jobs, err := test.arrivals.Draw(services, 20_000, rand.New(rand.NewPCG(8, 9)))
			if err != nil {
				t.Fatal(err)
			}
			o, err := deflate.FitArrivals(arrivalsOf(jobs), 2)
			if err != nil {
				t.Fatal(err)
			}
			for k, rate := range o.Arrivals.Rates() {
				near(t, "the rate", rate, test.arrivals.Rates()[k], 0.15)
			}
			known, err := deflate.NewQueue(test.arrivals, services, 1)
			if err != nil {
				t.Fatal(err)
			}
			var classes []deflate.Class
			for k := range 2 {
				service, err := o.Service(k)(0)
				if err != nil {
					t.Fatal(err)
				}
				classes = append(classes, deflate.Class{Service: service})
			}
			fitted, err := deflate.NewQueue(o.Arrivals, classes, 1)
			if err != nil {
				t.Fatal(err)
			}
			for k := range 2 {
				near(t, "the mean", fitted.Mean(k), known.Mean(k), test.share)
			}
		})
	}
	few, err := deflate.FitArrivals(arrivalsOf([]deflate.Job{{At: 0, Seconds: 1}, {At: 10, Seconds: 2}}), 1)
	if err != nil || len(few.Arrivals.Hidden) != 1 {
		t.Errorf("two jobs are %+v, %v", few, err)
	}
	near(t, "the rate of two jobs", few.Arrivals.Rates()[0], 0.1, 1e-9)
	for name, wrong := range map[string][]deflate.Job{
		"nothing": {}, "no class": {{Class: 2, At: 0, Seconds: 1}}, "no time": {{At: 0}, {Class: 1, At: 1, Seconds: 1}}, "never": {{At: math.Inf(1), Seconds: 1}, {Class: 1, At: 1, Seconds: 1}},
		"one class": {{At: 0, Seconds: 1}, {At: 1, Seconds: 1}}, "at once": {{At: 1, Seconds: 1}, {Class: 1, At: 1, Seconds: 1}},
	} {
		if _, err := deflate.FitArrivals(arrivalsOf(wrong), 2); err == nil {
			t.Errorf("%s was fitted", name)
		}
	}
}

// Within a span that begins with an idle engine less is waited than in the long
// run, as much as is played.
func TestASpanThatBeginsIdle(t *testing.T) {
	classes := []stream{{Rate: 0.95, Service: exponential(1)}}
	q, err := newQueue(classes, 1)
	if err != nil {
		t.Fatal(err)
	}
	arrivals, services := settingOf(classes)
	for _, span := range []int{200, 2000} {
		var means []float64
		for seed := range 400_000 / span {
			jobs, err := arrivals.Draw(services, span, rand.New(rand.NewPCG(uint64(seed), 3)))
			if err != nil {
				t.Fatal(err)
			}
			played, err := deflate.Engine{Slots: 1}.Replay(jobs, 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			means = append(means, played.Classes[0].Mean)
		}
		within(t, "the mean within a span", q.Within(float64(span)/0.95).Mean(0), means, 0.05)
	}
	near(t, "the mean within a long span", q.Within(1e7).Mean(0), q.Mean(0), 1e-3)
	if tail := q.Within(200).Tail(0, 30); tail <= 0 || tail >= q.Tail(0, 30) {
		t.Errorf("the tail within a span is %g, and %g in the long run", tail, q.Tail(0, 30))
	}
}

// A history of bursts is one, of a class that always waits only what its jobs take
// is known.
func TestHistoriesWithBursts(t *testing.T) {
	var low, high deflate.History
	for burst := range 6 {
		for i := range 20 {
			high.Add(deflate.Run{Began: float64(600*burst + i), Waited: 0.5, Seconds: 10})
		}
	}
	for i := range 100 {
		low.Add(deflate.Run{Began: float64(36 * i), Seconds: 3, Drop: 0.5})
	}
	histories := []deflate.History{low, high}
	o := deflate.Observe(histories, []int{0, 0}, 3600)
	if len(o.Arrivals.Hidden) != 2 {
		t.Fatalf("bursts are seen as %+v", o.Arrivals)
	}
	for k, rate := range o.Arrivals.Rates() {
		near(t, "the rate", rate, histories[k].Rate(3600), 1e-6)
	}
	for _, one := range must(o.Service(0)(0)) {
		mean, _ := one.Moments()
		near(t, "what takes 3 s without half of its data takes", mean, 6, 1e-9)
	}
	standing := deflate.Observe(histories, []int{2, 0}, 3600)
	if rates := standing.Arrivals.Rates(); rates[0] != 0 || math.Abs(rates[1]-high.Rate(3600)) > 1e-6 {
		t.Errorf("the rates are %v", rates)
	}
	q, err := deflate.NewQueue(standing.Arrivals, []deflate.Class{{Service: must(standing.Service(0)(0)), Standing: 2}, {Service: must(standing.Service(1)(0))}}, 4)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "the load beside a standing class", q.Load(), 1, 1e-9)
	if last, err := q.Quantile(0, 0.95); err != nil || !(last > q.Mean(0)/2) || !(q.Mean(0) > 6) {
		t.Errorf("the standing class waits %g, 95%% less than %g: %v", q.Mean(0), last, err)
	}
	// Of a class that came long ago only how often it comes is known: no bursts.
	old := deflate.Observe([]deflate.History{{}, high}, []int{0, 0}, 3600)
	if rates := old.Arrivals.Rates(); rates[0] != 0 {
		t.Errorf("a class that never came comes at a rate of %g", rates[0])
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// The account is divided among the classes that sprint, and what is chosen is no
// worse than any single way to use it.
func TestAnAccountIsDividedAmongClasses(t *testing.T) {
	setting := deflate.Setting{Arrivals: deflate.Poisson(0.02, 0.02, 0.02), Slots: 1, Account: deflate.Account{Joules: 1000, Watts: 12}}
	for k, seconds := range []float64{20, 10, 10} {
		service := must(deflate.Fit(seconds, 0.5))
		demand := deflate.Demand{Service: lessOf(service)}
		if k > 0 {
			demand.Sprint = deflate.Sprint{Speed: 2, Watts: 90}
		}
		setting.Demands = append(setting.Demands, demand)
	}
	chosen, err := deflate.Choose(setting, 10)
	if err != nil {
		t.Fatal(err)
	}
	if chosen.Watts > setting.Account.Watts*1.01 || chosen.Watts < 0.95*setting.Account.Watts || chosen.Sprints[0].Speed > 1 {
		t.Errorf("%g W of %g are used, by %+v", chosen.Watts, setting.Account.Watts, chosen.Sprints)
	}
	over := func(c deflate.Choice) float64 { return c.Mean[0] + c.Mean[1] + c.Mean[2] }
	for k := 1; k < 3; k++ {
		sprints := make([]deflate.Sprint, 3)
		sprints[k] = setting.Demands[k].Sprint.Paid(must(deflate.Fit(10, 0.5)), 0.02, setting.Account)
		alone, err := deflate.Judge(setting, make([]float64, 3), sprints)
		if err != nil {
			t.Fatal(err)
		}
		if over(alone) < over(chosen)-1e-9 {
			t.Errorf("sprints of class %d alone come to %g s, what was chosen to %g s", k, over(alone), over(chosen))
		}
	}
	setting.Account = deflate.Account{Joules: math.Inf(1)}
	if free := must(deflate.Choose(setting, 10)); free.Sprints[1].TimeoutSeconds != 0 || free.Sprints[2].TimeoutSeconds != 0 || over(free) >= over(chosen) {
		t.Errorf("without a limit the timeouts are %+v", free.Sprints)
	}
}

// What runs did while they sprinted is known once three were seen both ways, and is
// taken out of what they take; a history is read back as it was written.
func TestHistoriesOfSprints(t *testing.T) {
	var history deflate.History
	for i := range 3 {
		if speed, known := history.Speed(); known || speed != 1 {
			t.Errorf("after %d runs sprints are %g times as fast, known: %t", i, speed, known)
		}
		history.Add(deflate.Run{Began: float64(100 * i), Seconds: 40, Setup: 10, Sprinted: 20, Speed: 2 + float64(i)/10})
	}
	history.Add(deflate.Run{Began: 300, Seconds: 70, Setup: 10})
	history.Add(deflate.Run{Began: 300, Seconds: math.Inf(1)})
	if speed, known := history.Speed(); !known || speed != 2.1 {
		t.Errorf("sprints are %g times as fast, known: %t", speed, known)
	}
	service := must(deflate.Observe([]deflate.History{history}, []int{0}, 400).Service(0)(0))
	mean, _ := service[0].Moments()
	near(t, "the mean without sprints", mean, (3*(40+1.1*20)+70)/4, 1e-9)
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

// A class that always has jobs may be the only one, and a timeout that is given is
// kept, with its watts taken from the account.
func TestTimeoutsThatAreGiven(t *testing.T) {
	alone := deflate.Setting{Arrivals: deflate.Poisson(0), Slots: 2, Account: deflate.Account{Joules: 1000, Watts: 30}, Demands: []deflate.Demand{
		{Standing: 1, Service: lessOf(must(deflate.Fit(10, 0.3))), Sprint: deflate.Sprint{Speed: 2, Watts: 90}},
	}}
	chosen, err := deflate.Choose(alone, 10)
	if err != nil {
		t.Fatal(err)
	}
	if after := chosen.Sprints[0].TimeoutSeconds; !(after > 0 && after < 20) || chosen.Load != 1 || len(chosen.Tail) != 1 || !(chosen.Tail[0] > chosen.Mean[0]/2) {
		t.Errorf("%+v", chosen)
	}
	two := deflate.Setting{Arrivals: deflate.Poisson(0.02, 0.02), Slots: 1, Account: deflate.Account{Joules: 1000, Watts: 12}, Demands: []deflate.Demand{
		{Service: lessOf(must(deflate.Fit(10, 0.5))), Sprint: deflate.Sprint{Speed: 2, Watts: 90}},
		{Service: lessOf(must(deflate.Fit(10, 0.5))), Sprint: deflate.Sprint{Speed: 2, Watts: 90}},
	}}
	free := must(deflate.Choose(two, 10))
	two.Demands[1].Fixed, two.Demands[1].Sprint.TimeoutSeconds = true, 3
	fixed := must(deflate.Choose(two, 10))
	if fixed.Sprints[1].TimeoutSeconds != 3 || fixed.Sprints[0].TimeoutSeconds <= 0 || fixed.Watts > 12.2 {
		t.Errorf("given 3 s: %+v; chosen %+v", fixed, free)
	}
	if _, err := deflate.Poisson(0).Draw([]deflate.Class{{Service: []deflate.Phases{exponential(1)}}}, 1, rand.New(rand.NewPCG(1, 1))); err == nil {
		t.Error("a job was drawn where none comes")
	}
}
