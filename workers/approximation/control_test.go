package approximation_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/workers/approximation"
)

func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*math.Abs(want) {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

func TestWhatStillWaitsCounts(t *testing.T) {
	var short []approximation.Run
	for i := range 4 {
		short = append(short, approximation.Run{Began: float64(900 + 10*i), Seconds: 2})
	}
	below := approximation.Observations{Now: 1000, Limits: approximation.Limits{Mean: 10}, Most: 0.5, Below: 1, Oldest: 1000}
	for name, test := range map[string]struct {
		limits      approximation.Limits
		ended, open []approximation.Run
		want        approximation.Verdict
	}{
		"one waits for long":                 {approximation.Limits{Mean: 10}, short, []approximation.Run{{Began: 1000, Waited: 200}}, approximation.Raised},
		"one waits for long, tail":           {approximation.Limits{Tail: 10}, short, []approximation.Run{{Began: 1000, Waited: 200}}, approximation.Raised},
		"one waits for long, and none ended": {approximation.Limits{Mean: 10}, nil, []approximation.Run{{Began: 1000, Waited: 200}}, approximation.Raised},
		"one waits for a little":             {approximation.Limits{Mean: 10}, short, []approximation.Run{{Began: 1000, Waited: 12}}, approximation.Near},
		"one took long, the others do not":   {approximation.Limits{Mean: 10}, append(slices.Clone(short), approximation.Run{Began: 950, Waited: 40, Seconds: 10}), nil, approximation.Near},
		"those that run waited for long":     {approximation.Limits{Mean: 10}, short, []approximation.Run{{Began: 990, Waited: 30, Seconds: 10}, {Began: 990, Waited: 31, Seconds: 10}, {Began: 990, Waited: 32, Seconds: 10}}, approximation.Raised},
		"those that run take long":           {approximation.Limits{Mean: 10}, slices.Repeat([]approximation.Run{{Began: 900, Waited: 1, Seconds: 20}}, 5), nil, approximation.Alone},
	} {
		t.Run(name, func(t *testing.T) {
			o := below
			o.Limits, o.Ended, o.Open = test.limits, test.ended, test.open
			if _, d := approximation.NextShare(approximation.State{}, o); d.Verdict != test.want {
				t.Errorf("the verdict is %d, want %d: %+v", d.Verdict, test.want, d)
			}
		})
	}
	// Nobody is in its way: nothing is left out, however long it waits.
	below.Below, below.Open = 0, []approximation.Run{{Began: 1000, Waited: 500}}
	if s, d := approximation.NextShare(approximation.State{}, below); d.Share != 0 || s.Share != 0 || d.Verdict != approximation.Nobody {
		t.Errorf("%+v", d)
	}
}

func TestTheCurveOfALogarithm(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var pairs []approximation.Pair
	for range 40 {
		own := random.Float64()
		value := func(data float64) float64 { return own + 0.03*math.Log(data) + 0.002*random.NormFloat64() }
		pairs = append(pairs, approximation.Pair{Less: 3, More: 9, Low: value(3), High: value(9)})
	}
	curve, err := approximation.FitCurve(pairs)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "the loss of a quarter", curve.Loss(0.25), 0.03*math.Log(4.0/3), 0.1)
	if curve.Loss(0) != 0 || curve.Bound(0.25) <= curve.Loss(0.25) || curve.Bound(0.25) > 1.3*curve.Loss(0.25) {
		t.Errorf("the loss of nothing is %g; of a quarter %g, at most %g", curve.Loss(0), curve.Loss(0.25), curve.Bound(0.25))
	}
	if _, err := approximation.FitCurve(pairs[:2]); err != approximation.ErrFewPairs { //nolint:errorlint // that very one
		t.Errorf("of two pairs: %v", err)
	}
	if _, err := approximation.FitCurve(append(pairs, approximation.Pair{Less: 2, More: 1})); err == nil {
		t.Error("less data than less was taken")
	}
	// A metric that falls with data costs nothing.
	worse, err := approximation.FitCurve([]approximation.Pair{{1, 2, 0.9, 0.8}, {1, 2, 0.9, 0.8}, {1, 2, 0.9, 0.8}})
	if err != nil || worse.Loss(0.5) != 0 || worse.Bound(0.5) != 0 {
		t.Errorf("%+v, %v", worse, err)
	}
}

// The loss is within its bound as often as is said, of three pairs as of forty.
func TestTheBoundOfALossHoldsAsOftenAsItSays(t *testing.T) {
	const draws, slope, drop = 4000, 0.05, 0.3
	random := rand.New(rand.NewPCG(5, 6))
	for _, count := range []int{3, 40} {
		holds := 0
		for range draws {
			var pairs []approximation.Pair
			for range count {
				pairs = append(pairs, approximation.Pair{Less: 1, More: math.E, High: slope + 0.02*random.NormFloat64()})
			}
			curve, err := approximation.FitCurve(pairs)
			if err != nil {
				t.Fatal(err)
			}
			if curve.Bound(drop) >= -slope*math.Log1p(-drop) {
				holds++
			}
		}
		if share := float64(holds) / draws; math.Abs(share-0.95) > 0.015 {
			t.Errorf("of %d pairs the bound holds in %.3f of %d draws, want 0.95", count, share, draws)
		}
	}
}

func TestSprintsThatArePaid(t *testing.T) {
	took := []float64{10, 20, 30}
	sprint := approximation.Sprint{TimeoutSeconds: 5, Speed: 2, Watts: 90}
	near(t, "the watts", sprint.Takes(took, 0.01), 0.01*(5+15+25)/3/2*90, 1e-9)
	paid := sprint.Paid(took, 0.01, approximation.Account{Joules: 1000, Watts: 1.5})
	near(t, "the timeout", paid.TimeoutSeconds, 20, 1e-6)
	near(t, "what it takes", paid.Takes(took, 0.01), 1.5, 1e-6)
	for _, rich := range []approximation.Account{{Joules: math.Inf(1)}, {Joules: 1000, Watts: 9}} {
		if free := sprint.Paid(took, 0.01, rich); free.TimeoutSeconds != 0 {
			t.Errorf("with %+v sprints begin after %g s", rich, free.TimeoutSeconds)
		}
	}
	if none := sprint.Paid(took, 0.01, approximation.Account{}); none.TimeoutSeconds < 29.9 {
		t.Errorf("with nothing sprints begin after %g s", none.TimeoutSeconds)
	}
	if takes := (approximation.Sprint{}).Takes(took, 1); takes != 0 {
		t.Errorf("no sprint takes %g W", takes)
	}
}

func TestHistoriesOfSprints(t *testing.T) {
	var history approximation.History
	for i := range 3 {
		if speed, known := history.Speed(); known || speed != 1 {
			t.Errorf("after %d runs sprints are %g times as fast, known: %t", i, speed, known)
		}
		history.Add(approximation.Run{Began: float64(100 * i), Seconds: 40, Sprinted: 20, Speed: 2 + float64(i)/10})
	}
	history.Add(approximation.Run{Began: 300, Seconds: 70})
	history.Add(approximation.Run{Began: 300, Seconds: math.Inf(1)})
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
	var read approximation.History
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
	var history approximation.History
	if history.Rate(5) != 0 || history.Responses(0).Runs != 0 {
		t.Error("nothing was met, and something is known")
	}
	for i := range 300 {
		history.Add(approximation.Run{Began: float64(10 * i), Waited: 2, Seconds: 5 + 4*float64(i%2)})
	}
	history.Add(approximation.Run{Began: 3000, Seconds: -1})
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
