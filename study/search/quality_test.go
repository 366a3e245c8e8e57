package search_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/searchtest"
	"github.com/tandem-tune/tandem/study/space"
)

// compare runs the methods with the same seeds and returns the mean regret of
// their winners: how far the best configuration's true value is below 0.
func compare(t *testing.T, settings search.Settings, w world, truth func(space.Configuration) float64, methods ...string) map[string]float64 {
	t.Helper()
	result := map[string]float64{}
	for _, method := range methods {
		var regrets []float64
		for seed := range uint64(effort.ByDay(t, 6, 12)) {
			settings.Method, settings.Seed = method, seed
			regrets = append(regrets, -truth(winner(simulate(t, settings, w)).params))
		}
		result[method] = mean(regrets)
		t.Logf("mean regret of %s: %.4f", method, result[method])
	}
	return result
}

// wave is a disturbance that depends on the configuration alone: low rungs see
// the truth through it.
func wave(x float64) float64 { return math.Sin(1e4 * x) }

func number(c space.Configuration, name string) float64 {
	v, _ := c[name].Number()
	return v
}

func TestModelsBeatRandomOnNumbers(t *testing.T) {
	truth := func(c space.Configuration) float64 {
		lr := math.Log10(number(c, "lr")) + 2.5
		a, b, n := number(c, "a")-0.3, number(c, "b")-0.8, number(c, "n")-40
		return -(lr*lr/4 + a*a + b*b + n*n/2500)
	}
	kind := space.Training
	settings := search.Settings{
		Space: space.Space{Parameters: []space.Parameter{
			{Name: "lr", Kind: kind, Type: space.FloatType, Low: 1e-5, High: 1, Log: true},
			{Name: "a", Kind: kind, Type: space.FloatType, Low: 0, High: 1},
			{Name: "b", Kind: kind, Type: space.FloatType, Low: 0, High: 1},
			{Name: "n", Kind: kind, Type: space.IntType, Low: 1, High: 100},
		}},
		Rungs: searchtest.Ladder(4, 3), Eta: 3, MaxTrials: 150, RandomFraction: 1. / 3, Maximize: []bool{true},
	}
	w := world{workers: 4, until: math.Inf(1), measure: func(c space.Configuration, rung, below int) (float64, float64) {
		noise := 0.1 * wave(number(c, "a")) * math.Pow(3, -float64(rung))
		return truth(c) + noise, math.Pow(3, float64(rung))
	}}
	regret := compare(t, settings, w, truth, "random", "bohb", "tpe", "cma-es")
	for _, model := range []string{"bohb", "tpe", "cma-es"} {
		if regret[model] > regret["random"]/2 {
			t.Errorf("the regret %v of %s is more than half of random's %v", regret[model], model, regret["random"])
		}
	}
}

// A space of every kind of parameter: what is best under sgd does not exist
// under adam, and the pair that would be best is forbidden.
func TestModelsBeatRandomUnderConditions(t *testing.T) {
	optimizer := func(name string) space.Condition {
		return space.Condition{Parameter: "optimizer", In: []space.Value{space.String(name)}}
	}
	batch := space.Condition{Parameter: "batch", In: []space.Value{space.Int(128)}}
	kind := space.Training
	s := space.Space{
		Parameters: []space.Parameter{
			{Name: "optimizer", Kind: kind, Type: space.CategoricalType, Values: []space.Value{space.String("sgd"), space.String("adam"), space.String("lamb")}},
			{Name: "lr", Kind: kind, Type: space.FloatType, Low: 1e-5, High: 1, Log: true},
			{Name: "momentum", Kind: kind, Type: space.FloatType, Low: 0, High: 1, When: []space.Condition{optimizer("sgd")}},
			{Name: "beta", Kind: kind, Type: space.FloatType, Low: 0, High: 1, When: []space.Condition{optimizer("adam")}},
			{Name: "batch", Kind: kind, Type: space.OrdinalType, Values: []space.Value{space.Int(16), space.Int(32), space.Int(64), space.Int(128), space.Int(256)}},
			{Name: "width", Kind: space.Model, Type: space.FloatType, Low: 0, High: 1},
		},
		Forbidden: []space.Forbidden{{optimizer("sgd"), batch}},
	}
	truth := func(c space.Configuration) float64 {
		lr := math.Log10(number(c, "lr")) + 2
		size := math.Log2(number(c, "batch")) - 7
		width := number(c, "width") - 0.6
		loss := lr*lr/9 + size*size/20 + width*width
		switch name, _ := c["optimizer"].Text(); name {
		case "sgd":
			loss += math.Pow(number(c, "momentum")-0.9, 2)
		case "adam":
			loss += 0.01 + math.Pow(number(c, "beta")-0.2, 2)
		default:
			loss += 0.3
		}
		return -loss
	}
	settings := search.Settings{
		Space: s, Rungs: searchtest.Ladder(3, 3), Eta: 3, MaxTrials: 150, RandomFraction: 1. / 3, Maximize: []bool{true},
	}
	w := world{workers: 4, until: math.Inf(1), measure: func(c space.Configuration, rung, below int) (float64, float64) {
		if faults := s.Check(c); len(faults) > 0 {
			t.Fatal(faults)
		}
		return truth(c) + 0.05*wave(number(c, "width"))*math.Pow(3, -float64(rung)), math.Pow(3, float64(rung))
	}}
	regret := compare(t, settings, w, truth, "random", "bohb", "tpe", "cma-es")
	for model, share := range map[string]float64{"bohb": 0.8, "tpe": 0.7, "cma-es": 0.5} {
		if regret[model] > share*regret["random"] {
			t.Errorf("the regret %v of %s is more than %v of random's %v", regret[model], model, share, regret["random"])
		}
	}
}

// Without a ladder nothing but the configurations tells the methods apart. The
// bowl is tilted differently in every direction and rippled.
func TestModelsBeatRandomWithoutALadder(t *testing.T) {
	for _, c := range []struct {
		parameters, workers int
		tpe, cmaes          float64 // are at most these shares of random's regret
	}{{2, 1, 0.2, 0.1}, {2, 32, 0.2, 0.2}, {6, 1, 0.3, 0.2}, {6, 32, 0.6, 0.6}, {12, 1, 0.6, 0.5}, {12, 32, 0.8, 0.7}} {
		t.Run(fmt.Sprintf("%d parameters, %d workers", c.parameters, c.workers), func(t *testing.T) {
			s := numbers(c.parameters)
			truth := func(configuration space.Configuration) float64 {
				loss := 0.0
				for i, p := range s.Parameters {
					x := number(configuration, p.Name) - 0.2 - 0.6*float64(i)/float64(c.parameters)
					loss += x*x*float64(1+i%3) + 0.02*(1-math.Cos(20*x))
				}
				return -loss
			}
			settings := search.Settings{
				Space: s, Rungs: searchtest.Ladder(1, 3), Eta: 3, MaxTrials: 150, RandomFraction: 1. / 3, Maximize: []bool{true},
			}
			w := world{workers: c.workers, until: math.Inf(1), measure: func(configuration space.Configuration, rung, below int) (float64, float64) {
				return truth(configuration), 1
			}}
			regret := compare(t, settings, w, truth, "random", "sobol", "bohb", "tpe", "cma-es")
			if regret["tpe"] > c.tpe*regret["random"] {
				t.Errorf("the regret %v of tpe is more than %v of random's %v", regret["tpe"], c.tpe, regret["random"])
			}
			if regret["cma-es"] > c.cmaes*regret["random"] {
				t.Errorf("the regret %v of cma-es is more than %v of random's %v", regret["cma-es"], c.cmaes, regret["random"])
			}
			if c.parameters == 2 && regret["sobol"] > regret["random"] {
				t.Errorf("the regret %v of sobol on a plane is more than random's %v", regret["sobol"], regret["random"])
			}
		})
	}
}
