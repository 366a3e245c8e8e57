package importance_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/study/importance"
	"github.com/tandem-tune/tandem/study/space"
)

func shares(variance importance.Variance) map[string]float64 {
	named := map[string]float64{}
	for _, e := range append(variance.Single, variance.Pairs...) {
		named[e.Parameter+e.Other] = e.Share
	}
	return named
}

func TestVarianceOfKnownFunctions(t *testing.T) {
	for _, one := range []struct {
		name string
		of   score
		// want has the known shares; what is not there is 0.
		want map[string]float64
	}{
		{"additive", func(n func(string) float64, _ space.Configuration) float64 { return 3*n("x") + 2*n("y") + n("z") },
			map[string]float64{"x": 9. / 14, "y": 4. / 14, "z": 1. / 14}},
		{"squares", func(n func(string) float64, _ space.Configuration) float64 { return n("x")*n("x") + n("y") },
			map[string]float64{"x": (4. / 45) / (4./45 + 1./3), "y": (1. / 3) / (4./45 + 1./3)}},
		// Over [-1, 1]² the product has no main effects, and a variance of 1/9.
		{"a product and a sum", func(n func(string) float64, _ space.Configuration) float64 { return 2*n("x")*n("y") + n("x") },
			map[string]float64{"x": (1. / 3) / (1./3 + 4./9), "xy": (4. / 9) / (1./3 + 4./9)}},
		{"a pure product", func(n func(string) float64, _ space.Configuration) float64 { return n("x") * n("y") },
			map[string]float64{"xy": 1}},
	} {
		t.Run(one.name, func(t *testing.T) {
			s := spaceOf(t, squareFile)
			variance := importance.Grow(s, sample(t, s, 2000, 1, one.of)).Variance()
			for name, share := range shares(variance) {
				if math.Abs(share-one.want[name]) > 0.08 {
					t.Errorf("the share of %s is %.3f, want %.3f", name, share, one.want[name])
				}
			}
		})
	}
}

// TestVarianceIsExact compares one tree's shares with those of its predictions
// at every configuration of a small space.
func TestVarianceIsExact(t *testing.T) {
	const values = 4
	s := spaceOf(t, `
name: example
objective: {metric: loss, direction: minimize}
space:
  p: {values: [0, 1, 2, 3]}
  q: {type: int, low: 0, high: 3}
  r: {type: ordinal, values: [0, 1, 2, 3]}
`)
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var list []importance.Observation
		for i := range 256 {
			list = append(list, importance.Observation{Score: random.NormFloat64(), Configuration: space.Configuration{
				"p": space.Int(int64(i / 16 % 4)), "q": space.Int(int64(i / 4 % 4)), "r": space.Int(int64(i % 4))}})
		}
		f := importance.GrowOne(s, list)
		var table [values][values][values]float64
		mean, square := 0.0, 0.0
		for i := range 64 {
			p, q, r := i/16, i/4%4, i%4
			table[p][q][r] = f.Predict(space.Configuration{"p": space.Int(int64(p)), "q": space.Int(int64(q)), "r": space.Int(int64(r))}).Score
			mean += table[p][q][r] / 64
			square += table[p][q][r] * table[p][q][r] / 64
		}
		at := func(index int) [3]int { return [3]int{index / 16, index / 4 % 4, index % 4} }
		// part is the variance of the mean over the parameters that are not kept.
		part := func(kept ...int) float64 {
			sums, counts := map[string]float64{}, map[string]float64{}
			for i := range 64 {
				key := ""
				for _, d := range kept {
					key += fmt.Sprint(at(i)[d], " ")
				}
				sums[key] += table[at(i)[0]][at(i)[1]][at(i)[2]]
				counts[key]++
			}
			variance := 0.0
			for key, sum := range sums {
				variance += math.Pow(sum/counts[key]-mean, 2) * counts[key] / 64
			}
			return variance
		}
		whole := square - mean*mean
		found := shares(f.Variance())
		for d, name := range []string{"p", "q", "r"} {
			if want := part(d) / whole; math.Abs(found[name]-want) > 1e-9 {
				t.Fatalf("the share of %s is %g, want %g", name, found[name], want)
			}
		}
		for _, pair := range [][2]int{{0, 1}, {0, 2}, {1, 2}} {
			name := string("pqr"[pair[0]]) + string("pqr"[pair[1]])
			want := (part(pair[0], pair[1]) - part(pair[0]) - part(pair[1])) / whole
			if math.Abs(found[name]-want) > 1e-9 {
				t.Fatalf("the share of %s is %g, want %g", name, found[name], want)
			}
		}
	})
}

// TestVarianceOfACondition: only where it exists does a parameter do anything.
func TestVarianceOfACondition(t *testing.T) {
	s := spaceOf(t, `
name: example
objective: {metric: loss, direction: minimize}
space:
  choice: {values: [a, b]}
  only_a: {type: float, low: -1, high: 1, when: {choice: a}}
`)
	found := shares(importance.Grow(s, sample(t, s, 1000, 1, func(number func(string) float64, _ space.Configuration) float64 {
		return number("only_a") // 0 where it does not exist
	})).Variance())
	// E[var] = 1/2 · 1/3; the main effect of x/2 has the variance 1/12, and the rest is the pair's.
	if math.Abs(found["only_a"]-0.5) > 0.05 || math.Abs(found["choiceonly_a"]-0.5) > 0.05 || found["choice"] > 0.05 {
		t.Errorf("%v", found)
	}
}

// TestVarianceIsOfTheWholeSpace: where a search has looked most does not bend
// the shares.
func TestVarianceIsOfTheWholeSpace(t *testing.T) {
	s := spaceOf(t, squareFile)
	list := sample(t, s, 2000, 1, func(func(string) float64, space.Configuration) float64 { return 0 })
	for i := range list {
		x, _ := list[i].Configuration["x"].Number()
		y, _ := list[i].Configuration["y"].Number()
		x = 2*math.Pow((x+1)/2, 4) - 1 // most of them near -1
		list[i].Configuration["x"] = space.Float(x)
		list[i].Score = x + y
	}
	found := shares(importance.Grow(s, list).Variance())
	if math.Abs(found["x"]-0.5) > 0.06 || math.Abs(found["y"]-0.5) > 0.06 {
		t.Errorf("%v, want halves", found)
	}
}

func BenchmarkForest(b *testing.B) {
	text := "name: example\nobjective: {metric: loss, direction: minimize}\nspace:\n"
	for i := range 20 {
		text += fmt.Sprintf("  x%d: {type: float, low: 0, high: 1}\n", i)
	}
	s := spaceOf(b, text)
	random := rand.New(rand.NewPCG(1, 1))
	var list []importance.Observation
	for range 10_000 {
		c, err := s.Sample(random)
		if err != nil {
			b.Fatal(err)
		}
		x, _ := c["x0"].Number()
		y, _ := c["x1"].Number()
		list = append(list, importance.Observation{Configuration: c, Score: x + y*y + 0.1*random.NormFloat64()})
	}
	for b.Loop() {
		importance.Grow(s, list).Variance()
	}
}
