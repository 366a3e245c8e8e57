package importance_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/study/importance"
	"github.com/tandem-tune/tandem/study/space"
)

// shaped is a space of three parameters, of which one does nothing.
func shaped() space.Space {
	return space.Space{Parameters: []space.Parameter{
		{Name: "slope", Type: space.FloatType, Low: 0, High: 1, Kind: space.Training},
		{Name: "choice", Kind: space.Model, Type: space.CategoricalType, Values: []space.Value{space.String("a"), space.String("b"), space.String("c")}},
		{Name: "idle", Type: space.FloatType, Low: 0, High: 1, Kind: space.Training},
	}}
}

// seconds of a trial: from 10 to 20 with the slope, and 2 more with b.
func seconds(c space.Configuration) float64 {
	slope, _ := c["slope"].Number()
	sum := 10 + 10*slope
	if c["choice"] == space.String("b") {
		sum += 2
	}
	return sum
}

func tried(count int, score func(space.Configuration) float64) []importance.Observation {
	random := rand.New(rand.NewPCG(4, 2))
	cube := shaped().Cube()
	var list []importance.Observation
	for range count {
		configuration := cube.Decode([]float64{random.Float64(), random.Float64(), random.Float64()})
		list = append(list, importance.Observation{Configuration: configuration, Score: score(configuration)})
	}
	return list
}

func TestExtentsAreWhatOneParameterDoes(t *testing.T) {
	list := tried(400, seconds)
	found := importance.Grow(shaped(), list).Extents()
	slope, choice, idle := found[0], found[1], found[2]
	// The mean over the others: 10 2/3 at the lower end, 20 2/3 at the upper; a
	// forest flattens ends a little.
	if slope.Parameter != "slope" || math.Abs(slope.Lowest-10.67) > 0.7 || math.Abs(slope.Highest-20.67) > 0.7 {
		t.Errorf("slope: %+v", slope)
	}
	if low, _ := slope.LowestAt.Number(); low > 0.1 {
		t.Errorf("the lowest is at %g", low)
	}
	if high, _ := slope.HighestAt.Number(); high < 0.9 {
		t.Errorf("the highest is at %g", high)
	}
	if got := slope.Variation(); math.Abs(got-10/20.67) > 0.06 {
		t.Errorf("the variation with the slope is %g", got)
	}
	if choice.HighestAt != space.String("b") || math.Abs(choice.Highest-choice.Lowest-2) > 0.5 {
		t.Errorf("choice: %+v", choice)
	}
	if idle.Variation() > 0.05 {
		t.Errorf("what does nothing varies by %g", idle.Variation())
	}
}

func TestVariationIsInPartsOfTheLargerEnd(t *testing.T) {
	for _, c := range []struct{ low, high, want float64 }{{8, 10, 0.2}, {-10, -8, 0.2}, {-5, 5, 2}, {0, 0, 0}, {0, 3, 1}} {
		if got := (importance.Extent{Lowest: c.low, Highest: c.high}).Variation(); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("from %g to %g: %g, want %g", c.low, c.high, got, c.want)
		}
	}
}

func TestChancesTellEffectsFromNoise(t *testing.T) {
	chances := importance.Chances(shaped(), tried(120, seconds))
	if chances[0] > 0.01 || chances[2] < 0.05 {
		t.Errorf("slope, choice and idle by chance: %v", chances)
	}
	// Of scores that depend on nothing, few parameters seem to matter.
	random := rand.New(rand.NewPCG(9, 9))
	matter := 0
	for range 60 {
		for _, chance := range importance.Chances(shaped(), tried(40, func(space.Configuration) float64 { return random.NormFloat64() })) {
			if chance <= 0.05 {
				matter++
			}
		}
	}
	if matter > 24 { // 9 are expected of 180; the draws are fixed
		t.Errorf("%d of 180 parameters that do nothing seem to matter", matter)
	}
	same := tried(20, func(space.Configuration) float64 { return 1 })
	for i := range same {
		same[i].Configuration["slope"] = space.Float(0.5)
	}
	if chances := importance.Chances(shaped(), same); chances[0] != 1 || chances[1] != 1 {
		t.Errorf("where nothing varies: %v", chances)
	}
	if chances := importance.Chances(shaped(), tried(20, func(space.Configuration) float64 { return math.NaN() })); chances[0] < 0.5 {
		t.Errorf("where nothing was measured: %v", chances)
	}
}
