package advice_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/study/advice"
	"github.com/tandem-tune/tandem/study/space"
)

// effect is what a parameter x does, beside one of b and a choice.
type effect func(x, b float64, opt string) float64

func sided(is bool) float64 {
	if is {
		return 1
	}
	return -1
}

// effects of x, none of which is one of those that advice.Idle plants.
var effects = map[string]effect{
	"exponential":             func(x, _ float64, _ string) float64 { return math.Exp(3 * x) },
	"a step":                  func(x, _ float64, _ string) float64 { return sided(x > 0.5) },
	"U-shaped":                func(x, _ float64, _ string) float64 { return -(x - 0.4) * (x - 0.4) },
	"a tip inside":            func(x, _ float64, _ string) float64 { return -math.Abs(x - 0.4) },
	"the other way with b":    func(x, b float64, _ string) float64 { return (x - 0.5) * (b - 0.5) },
	"only equal sides":        func(x, b float64, _ string) float64 { return sided((x > 0.5) == (b > 0.5)) },
	"U-shaped with a large b": func(x, b float64, _ string) float64 { return -sided(b > 0.5) * (x - 0.5) * (x - 0.5) },
	"the other way with p":    func(x, _ float64, opt string) float64 { return sided(opt == "p") * (x - 0.5) },
}

var withIdle = space.Space{Parameters: []space.Parameter{
	{Name: "a", Kind: space.Model, Type: space.FloatType, Low: 0, High: 1},
	{Name: "b", Kind: space.Model, Type: space.FloatType, Low: 0, High: 1},
	{Name: "x", Kind: space.Model, Type: space.FloatType, Low: 0, High: 1},
	{Name: "opt", Kind: space.Model, Type: space.CategoricalType, Values: []space.Value{space.String("p"), space.String("q")}},
	{Name: "idle", Kind: space.Model, Type: space.FloatType, Low: 1e-5, High: 1, Log: true},
	{Name: "idle int", Kind: space.Model, Type: space.IntType, Low: 1, High: 4},
	{Name: "idle choice", Kind: space.Model, Type: space.CategoricalType, Values: []space.Value{space.String("r"), space.String("s"), space.String("t")}},
	{Name: "idle with p", Kind: space.Model, Type: space.FloatType, Low: 0, High: 1, When: []space.Condition{{Parameter: "opt", In: []space.Value{space.String("p")}}}},
}}

// idleStudy has a share of the variance from x and one of noise; the rest is of a, b and opt.
// Of modelled ones, two thirds of the trials are close to the best so far.
func idleStudy(r *rand.Rand, count int, share, noise float64, modelled bool, of effect) []advice.Trial {
	rest := func(a, b float64, opt string) float64 { return -4*(a-0.6)*(a-0.6) + 0.6*b + 0.2*sided(opt == "p") }
	scale := func(value func(a, b, x float64, opt string) float64) float64 {
		sum, squares := 0.0, 0.0
		q := rand.New(rand.NewPCG(1, 1))
		for range 2000 {
			v := value(q.Float64(), q.Float64(), q.Float64(), []string{"p", "q"}[q.IntN(2)])
			sum, squares = sum+v, squares+v*v
		}
		return 1 / math.Sqrt(squares/2000-sum*sum/4e6)
	}
	ofRest := math.Sqrt(1-share-noise) * scale(func(a, b, _ float64, opt string) float64 { return rest(a, b, opt) })
	ofX := math.Sqrt(share) * scale(func(_, b, x float64, opt string) float64 { return of(x, b, opt) })
	cube := withIdle.Cube()
	var list []advice.Trial
	var best []float64
	most := math.Inf(-1)
	for i := range count {
		point, _ := cube.Draw(r)
		one := advice.Trial{Drawn: !modelled || i < 10 || r.IntN(3) == 0}
		if !one.Drawn {
			for d := range point {
				if !math.IsNaN(best[d]) && r.IntN(4) > 0 {
					point[d] = min(1, max(0, best[d]+0.1*r.NormFloat64()))
				}
			}
			cube.Mask(point)
		}
		c := cube.Decode(point)
		opt, _ := c["opt"].Text()
		one.Configuration = c
		one.Score = ofRest*rest(number(c, "a"), number(c, "b"), opt) + ofX*of(number(c, "x"), number(c, "b"), opt) + math.Sqrt(noise)*r.NormFloat64()
		if list = append(list, one); one.Score > most {
			most, best = one.Score, point
		}
	}
	return list
}

// TestIdleParametersAreNamed: those that do nothing often, and one that does something in
// one of eight ways hardly ever, if the data could show either.
func TestIdleParametersAreNamed(t *testing.T) {
	t.Parallel()
	idle := []string{"idle", "idle int", "idle choice", "idle with p"}
	for name, c := range map[string]struct {
		trials       int
		share, noise float64
		modelled     bool
		least        int // of 100 idle parameters named
	}{
		"80 trials":                   {80, 0.2, 0.1, false, 20},
		"120 trials, most of a model": {120, 0.2, 0.1, true, 15},
		"mostly noise":                {60, 0.2, 0.6, false, 0},
	} {
		studies := effort.Times(t, 1)
		found, asked, wrong, effective := map[string]int{}, 0, 0, 0
		for form, of := range effects {
			for seed := range uint64(studies) {
				r := rand.New(rand.NewPCG(seed, 17))
				effective, asked = effective+2, asked+len(idle) // x and a
				for _, one := range advice.Idle(withIdle, idleStudy(r, c.trials, c.share, c.noise, c.modelled, of)) {
					if found[one.Parameter]++; one.Parameter == "x" || one.Parameter == "a" {
						wrong++
						t.Logf("%s, where x is %s: %+v", name, form, one)
					}
				}
			}
		}
		named := 0
		for _, one := range idle {
			named += found[one]
		}
		t.Logf("%s: named %d idle parameters of %d, and %d of %d that matter; %v", name, named, asked, wrong, effective, found)
		if 100*named < c.least*asked || wrong > max(1, effective/20) || found["opt"] > 0 {
			t.Errorf("%s: named %d idle parameters of %d, and %d of %d that matter; %v", name, named, asked, wrong, effective, found)
		}
	}
}
