package placement_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/workers/placement"
)

// law is how long a task with these cores and gigabytes takes on a type.
func law(kind string, cores, gigabytes float64) placement.Prediction {
	factor := map[string]float64{"fast": 1, "slow": 5}[kind]
	watts := map[string]float64{"fast": 90, "slow": 6}[kind]
	seconds := factor * 100 * math.Pow(cores, -0.8) * math.Exp(0.05*gigabytes)
	return placement.Prediction{Seconds: seconds, Joules: seconds * watts}
}

func observe(t *testing.T, m *placement.Models, kind string, cores, gigabytes, noise float64, probe bool) bool {
	t.Helper()
	took := law(kind, cores, gigabytes)
	took.Seconds *= noise
	took.Joules *= noise
	learned, err := m.Observe(placement.Observation{Type: kind, Features: []float64{math.Log(cores), gigabytes}, Took: took, Probe: probe})
	if err != nil {
		t.Fatal(err)
	}
	return learned
}

func off(m *placement.Models, kind string, cores, gigabytes float64) float64 {
	p, known := m.Predict(kind, placement.Task{Features: []float64{math.Log(cores), gigabytes}})
	if !known {
		return math.Inf(1)
	}
	want := law(kind, cores, gigabytes)
	return max(math.Abs(p.Seconds/want.Seconds-1), math.Abs(p.Joules/want.Joules-1))
}

func TestEachTypeLearnsItsLaw(t *testing.T) {
	m := placement.NewModels(placement.ModelSettings{LeastError: -1})
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		for _, kind := range []string{"fast", "slow"} {
			observe(t, m, kind, 1+float64(random.IntN(16)), 32*random.Float64(), math.Exp(0.05*random.NormFloat64()), false)
		}
	}
	for _, kind := range []string{"fast", "slow"} {
		for _, cores := range []float64{1, 4, 16} {
			if wrong := off(m, kind, cores, 8); wrong > 0.05 {
				t.Errorf("%s, %g cores: off by %.1f%%", kind, cores, 100*wrong)
			}
		}
	}
	if _, known := m.Predict("unknown", placement.Task{Features: []float64{0, 0}}); known {
		t.Error("something is predicted of a type that nothing is known of")
	}
	if _, known := m.Predict("fast", placement.Task{Features: []float64{0}}); known {
		t.Error("something is predicted of other features")
	}
}

func TestProbesWarmTheModelUp(t *testing.T) {
	m := placement.NewModels(placement.ModelSettings{Window: 3})
	for _, cores := range []float64{1, 2, 4} {
		for _, gigabytes := range []float64{1, 8} {
			observe(t, m, "fast", cores, gigabytes, 1, true)
		}
	}
	if wrong := off(m, "fast", 8, 4); wrong > 0.2 {
		t.Errorf("behind the probes a task is predicted with an error of %.0f%%", 100*wrong)
	}
	// The window forgets; the probes stay.
	for range 10 {
		observe(t, m, "fast", 4, 4, 20, false)
	}
	if wrong := off(m, "fast", 1, 1); wrong > 20 {
		t.Errorf("off by %g", wrong)
	}
}

func TestWhatIsPredictedWellTeachesNothing(t *testing.T) {
	m := placement.NewModels(placement.ModelSettings{})
	for _, cores := range []float64{1, 2, 4, 8} {
		for range 20 {
			observe(t, m, "fast", cores, 1, 1, true)
		}
	}
	if observe(t, m, "fast", 2, 1, 1.001, false) {
		t.Error("an observation as predicted was learned from")
	}
	if !observe(t, m, "fast", 2, 1, 3, false) {
		t.Error("an observation unlike the prediction was not learned from")
	}
}

func TestTheWindowFollowsAChange(t *testing.T) {
	m := placement.NewModels(placement.ModelSettings{Window: 50})
	for i := range 200 {
		noise := 1.0
		if i >= 100 {
			noise = 3 // new drivers, or a fan that died
		}
		observe(t, m, "fast", 1+float64(i%8), 1, noise, false)
	}
	p, _ := m.Predict("fast", placement.Task{Features: []float64{math.Log(4), 1}})
	if ratio := p.Seconds / law("fast", 4, 1).Seconds; ratio < 2.7 || ratio > 3.3 {
		t.Errorf("behind the change the model predicts %.2f of what was before, want 3", ratio)
	}
}

func TestOddObservationsAreRefused(t *testing.T) {
	m := placement.NewModels(placement.ModelSettings{})
	good := placement.Prediction{Seconds: 1, Joules: 1}
	if _, err := m.Observe(placement.Observation{Type: "a", Features: []float64{1, 2}, Took: good}); err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]placement.Observation{
		"no time":         {Type: "a", Features: []float64{1, 2}, Took: placement.Prediction{Joules: 1}},
		"NaN":             {Type: "a", Features: []float64{1, math.NaN()}, Took: good},
		"infinite energy": {Type: "a", Features: []float64{1, 2}, Took: placement.Prediction{Seconds: 1, Joules: math.Inf(1)}},
		"other features":  {Type: "a", Features: []float64{1}, Took: good},
	} {
		if _, err := m.Observe(one); err == nil {
			t.Errorf("%s was learned from", name)
		}
	}
	// One observation is a prediction, and features that never change do no harm.
	if p, known := m.Predict("a", placement.Task{Features: []float64{1, 2}}); !known || math.Abs(p.Seconds-1) > 1e-9 {
		t.Errorf("%+v, %t", p, known)
	}
}

func TestWithoutAMeterTheTimeIsLearned(t *testing.T) {
	m := placement.NewModels(placement.ModelSettings{LeastError: -1})
	for _, cores := range []float64{1, 2, 4, 8} {
		for range 10 {
			if _, err := m.Observe(placement.Observation{Type: "fast", Features: []float64{math.Log(cores)}, Took: placement.Prediction{Seconds: 100 / cores}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	p, known := m.Predict("fast", placement.Task{Features: []float64{math.Log(4)}})
	if !known || math.Abs(p.Seconds/25-1) > 0.05 || p.Joules != 0 {
		t.Errorf("%+v, %t; want 25 s and joules that are not known", p, known)
	}
	// A meter was found: what it says is learned, and nothing made up of before.
	for range 10 {
		if _, err := m.Observe(placement.Observation{Type: "fast", Features: []float64{math.Log(4)}, Took: placement.Prediction{Seconds: 25, Joules: 500}}); err != nil {
			t.Fatal(err)
		}
	}
	if p, _ = m.Predict("fast", placement.Task{Features: []float64{math.Log(4)}}); math.Abs(p.Joules/500-1) > 1e-9 {
		t.Errorf("%+v, want 500 J", p)
	}
}

func TestModelsSayHowGoodTheyAre(t *testing.T) {
	m := placement.NewModels(placement.ModelSettings{})
	if _, known := m.Accuracy("fast"); known {
		t.Error("of a type that nothing is known of the error is")
	}
	one := func(seconds, joules float64) {
		if _, err := m.Observe(placement.Observation{Type: "fast", Features: []float64{1}, Took: placement.Prediction{Seconds: seconds, Joules: joules}}); err != nil {
			t.Fatal(err)
		}
	}
	one(10, 100) // nothing was predicted yet
	one(20, 0)   // 10 was
	one(10, 100) // the geometric mean of 10 and 20 was, and 100 J: that is an error of the time only
	got, known := m.Accuracy("fast")
	if !known || got.Observations != 3 || got.Learned != 3 || got.Judged != 2 || got.Metered != 1 {
		t.Fatalf("%+v, %t", got, known)
	}
	if want := (0.5 + math.Sqrt2 - 1) / 2; math.Abs(got.Seconds-want) > 1e-9 || math.Abs(got.Joules) > 1e-9 {
		t.Errorf("%+v, want an error of %.3f in time, and none in energy", got, want)
	}
	for range 100 {
		one(13, 100)
	}
	if got, _ := m.Accuracy("fast"); got.Judged != 64 || got.Observations != 103 || got.Learned >= 103 || got.Seconds > 0.06 {
		t.Errorf("after a hundred alike: %+v", got)
	}
}
