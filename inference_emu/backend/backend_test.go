package backend_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/backend"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
)

// placed is a model on a backend that takes so many seconds and joules, in a band from half
// of that to twice.
func placed(name string, price, seconds, joules float64, measured bool) backend.BackendOption {
	d := deployment.Deployment{Feasible: true, Method: "estimate: of a test", EnergyMethod: "estimate", SamplesPerSecond: 1 / seconds,
		LatencySeconds: deployment.Band{Value: seconds, Low: seconds / 2, High: seconds * 2}, JoulesPerSample: deployment.Band{Value: joules, Low: joules / 2, High: joules * 2}}
	if measured {
		d.Method, d.LatencySeconds = "measured", deployment.Band{Value: seconds, Low: seconds, High: seconds}
	}
	return backend.Judge(backend.Backend{Name: name, BackendOffer: backend.BackendOffer{PricePerHour: price}}, d, nil)
}

func missing(o backend.BackendOption) backend.BackendOption {
	o.Deployment.Feasible, o.Deployment.Unmet = false, []string{"latency_ms <= 1"}
	return backend.Judge(o.Backend, *o.Deployment, nil)
}

func TestChoose(t *testing.T) {
	cost, energy := backend.Priority{"cost": 1}, backend.Priority{"energy": 1}
	for _, one := range []struct {
		name           string
		options        []backend.BackendOption
		priority       backend.Priority
		chosen, likely string
		wanted         []string
	}{
		{"nothing", nil, cost, "", "", nil},
		{"an estimate is no choice", []backend.BackendOption{placed("a", 1, 0.1, 1, false)}, cost, "", "a", []string{"a"}},
		{"the cheapest measured", []backend.BackendOption{placed("a", 2, 0.1, 1, true), placed("b", 1, 0.1, 2, true)}, cost, "b", "", nil},
		{"the one of least energy", []backend.BackendOption{placed("a", 2, 0.1, 1, true), placed("b", 1, 0.1, 2, true)}, energy, "a", "", nil},
		{"a cheaper one that misses the bounds", []backend.BackendOption{placed("a", 2, 0.1, 1, true), missing(placed("b", 1, 0.1, 2, true))}, cost, "a", "", nil},
		{"only those that miss", []backend.BackendOption{missing(placed("b", 1, 0.1, 2, true))}, cost, "", "", nil},
		{"a cheaper estimate", []backend.BackendOption{placed("a", 2, 0.1, 1, true), placed("b", 1, 0.1, 2, false)}, cost, "a", "b", []string{"b"}},
		{"one that may be cheaper", []backend.BackendOption{placed("a", 2, 0.1, 1, true), placed("b", 3, 0.1, 2, false)}, cost, "a", "", []string{"b"}},
		{"one that cannot be", []backend.BackendOption{placed("a", 2, 0.1, 1, true), placed("b", 5, 0.1, 2, false)}, cost, "a", "", nil},
		{"no energy known", []backend.BackendOption{placed("a", 1, 0.1, 0, true), placed("b", 2, 0.1, 1, true)}, energy, "b", "", nil},
		{"free and equal: the faster", []backend.BackendOption{placed("a", 0, 0.2, 1, true), placed("b", 0, 0.1, 2, true)}, cost, "b", "", nil},
	} {
		t.Run(one.name, func(t *testing.T) {
			got := backend.Choose(one.options, one.priority)
			var wanted []string
			for _, o := range got.Options {
				if o.Wanted {
					wanted = append(wanted, o.Backend.Name)
				}
			}
			if got.Chosen != one.chosen || got.Likely != one.likely || !slices.Equal(wanted, one.wanted) || got.Why == "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// An estimate is said to be better only than something that was chosen.
func TestWordsOfWhatIsLikely(t *testing.T) {
	doubtful := placed("b", 1, 0.1, 1, false)
	doubtful.Deployment.Doubtful = []string{"latency_ms <= 150"}
	doubtful = backend.Judge(doubtful.Backend, *doubtful.Deployment, nil)
	for says, options := range map[string][]backend.BackendOption{
		"b is estimated to be better: ":                                     {placed("a", 2, 0.1, 1, true), placed("b", 1, 0.1, 1, false)},
		"b is estimated to keep them: ":                                     {placed("b", 1, 0.1, 1, false)},
		"b is estimated to keep them, but not at the bad end of its band: ": {doubtful},
	} {
		if got := backend.Choose(options, backend.Priority{"cost": 1}); got.Likely != "b" || !strings.Contains(got.Why, says) {
			t.Errorf("%q is not in %q", says, got.Why)
		}
	}
}

// Whatever the options are: what is chosen was measured, keeps the bounds, and no other such
// is better.
func TestWhatIsChosenWasMeasured(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var options []backend.BackendOption
		for i := range random.IntN(6) {
			o := placed(string(rune('a'+i)), float64(random.IntN(3)), 0.01+random.Float64(), float64(random.IntN(3)), random.IntN(2) == 0)
			if random.IntN(3) == 0 {
				o = missing(o)
			}
			options = append(options, o)
		}
		got := backend.Choose(options, backend.Priority{"cost": 1})
		least, chosen := math.Inf(1), -1.0
		for _, o := range got.Options {
			if o.Measured && o.State == backend.Keeps {
				least = min(least, o.Cost)
			}
			if o.Backend.Name == got.Chosen {
				chosen = o.Cost
				if !o.Measured || o.State != backend.Keeps {
					t.Fatalf("%+v", o)
				}
			}
		}
		if (chosen < 0) != math.IsInf(least, 1) || chosen > least {
			t.Fatalf("%g is chosen of %g: %+v", chosen, least, got)
		}
	}
}

// The price is of the time until the next request where the rate is known.
func TestThePriceOfASample(t *testing.T) {
	d := placed("a", 3.6, 0.1, 1, true).Deployment
	b := backend.Backend{Name: "a", BackendOffer: backend.BackendOffer{PricePerHour: 3.6, MaxRate: 5}}
	if got := backend.Judge(b, *d, nil).Cost; math.Abs(got-1e-4) > 1e-12 {
		t.Error(got)
	}
	if got := backend.Judge(b, *d, &deployment.Load{Rate: 2}).Cost; math.Abs(got-5e-4) > 1e-12 {
		t.Error(got)
	}
	if got := backend.Judge(b, *d, &deployment.Load{Rate: 6}); got.State != backend.Misses || !strings.Contains(got.Reasons[0], "at most 5 requests/s") {
		t.Errorf("%+v", got)
	}
}

func FuzzParsePriority(f *testing.F) {
	f.Add("latency=2,energy=1")
	f.Fuzz(func(t *testing.T, text string) {
		priority, err := backend.ParsePriority(text)
		if err != nil {
			return
		}
		if again, err := backend.ParsePriority(priority.String()); err != nil || again.String() != priority.String() {
			t.Errorf("%q is %q: %v", text, priority, err)
		}
	})
}
