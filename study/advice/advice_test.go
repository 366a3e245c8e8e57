package advice_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/study/advice"
	"github.com/tandem-tune/tandem/study/space"
)

var tuned = space.Space{Parameters: []space.Parameter{
	{Name: "lr", Kind: space.Model, Type: space.FloatType, Low: 1e-4, High: 1e-1, Log: true},
	{Name: "layers", Kind: space.Model, Type: space.IntType, Low: 1, High: 4},
	{Name: "optimizer", Kind: space.Model, Type: space.CategoricalType, Values: []space.Value{space.String("sgd"), space.String("adam"), space.String("lion")}},
	{Name: "momentum", Kind: space.Model, Type: space.FloatType, Low: 0, High: 1, When: []space.Condition{{Parameter: "optimizer", In: []space.Value{space.String("sgd")}}}},
}}

// drawn are trials of the space, of which a search would have drawn two thirds close
// to the best so far.
func drawn(r *rand.Rand, count int, near bool, worth func(space.Configuration) float64) (list []advice.Trial, leading space.Configuration) {
	cube := tuned.Cube()
	best := math.Inf(-1)
	for i := range count {
		modelled := near && i > 8 && r.IntN(3) > 0
		point, _ := cube.Draw(r)
		if modelled {
			point = cube.Encode(leading)
			for d := range point {
				point[d] = min(1, max(0, point[d]+0.05*r.NormFloat64()))
			}
		}
		one := advice.Trial{Configuration: cube.Decode(point), Drawn: !modelled}
		if one.Score = worth(one.Configuration); one.Score > best {
			best, leading = one.Score, one.Configuration
		}
		list = append(list, one)
	}
	return list, leading
}

func number(c space.Configuration, name string) float64 {
	value, _ := c[name].Number()
	return value
}

func optimizer(c space.Configuration) string {
	name, _ := c["optimizer"].Text()
	return name
}

func TestNothingIsAdvisedWhereNothingIs(t *testing.T) {
	t.Parallel()
	for _, near := range []bool{false, true} {
		ranges, failures := 0, 0
		const studies = 1000
		for seed := range uint64(studies) {
			r := rand.New(rand.NewPCG(seed, 1))
			trials, leading := drawn(r, 60, near, func(space.Configuration) float64 { return r.NormFloat64() })
			var failed, well []space.Configuration
			for _, one := range trials {
				if one.Drawn && r.IntN(5) == 0 {
					failed = append(failed, one.Configuration)
				} else if one.Drawn {
					well = append(well, one.Configuration)
				}
			}
			ranges += min(1, len(advice.Ranges(tuned, trials, leading)))
			failures += min(1, len(advice.Failed(tuned, failed, well)))
		}
		t.Logf("near the best: %v; of %d studies, %d got advice on ranges and %d on failures", near, studies, ranges, failures)
		if ranges > studies/20 || failures > studies/20 {
			t.Errorf("near the best: %v; of %d studies, %d got advice on ranges and %d on failures", near, studies, ranges, failures)
		}
	}
}

func TestTheBestAtAnEndOfTheRange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		peak  float64 // of log10(lr), which is in -4 to -1
		found func(lr int) bool
	}{
		"beyond the range": {1, func(lr int) bool { return lr >= 60 }},
		"inside the range": {-2, func(lr int) bool { return lr <= 5 }},
	} {
		for _, near := range []bool{false, true} {
			found := map[string]int{}
			const studies = 100
			for seed := range uint64(studies) {
				r := rand.New(rand.NewPCG(seed, 2))
				trials, leading := drawn(r, 60, near, func(one space.Configuration) float64 {
					return -math.Abs(math.Log10(number(one, "lr"))-c.peak) + 0.3*r.NormFloat64()
				})
				for _, one := range advice.Ranges(tuned, trials, leading) {
					found[one.Parameter]++
					if low, _ := one.Values[0].Number(); one.Parameter == "lr" && (!one.High || low < 0.05 || one.Hits+one.Misses != 12 || one.Rank <= 0) {
						t.Errorf("%+v", one)
					}
				}
			}
			t.Logf("%s, near the best: %v; in %d studies: %v", name, near, studies, found)
			if !c.found(found["lr"]) || found["layers"]+found["momentum"] > 10 {
				t.Errorf("%s, near the best: %v; in %d studies: %v", name, near, studies, found)
			}
		}
	}
}

func TestWhatFailsIsNamed(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	for name, c := range map[string]struct {
		fails func(space.Configuration) bool
		named string
		low   string
		high  bool
	}{
		"a large number": {func(c space.Configuration) bool { return number(c, "lr") > 0.03 }, "lr", "", true},
		"a choice":       {func(c space.Configuration) bool { return optimizer(c) == "lion" }, "optimizer", "lion", false},
		"a small count":  {func(c space.Configuration) bool { return number(c, "layers") == 1 }, "layers", "1", false},
	} {
		var failed, well []space.Configuration
		trials, _ := drawn(r, 60, false, func(space.Configuration) float64 { return 0 })
		for _, one := range trials {
			if c.fails(one.Configuration) {
				failed = append(failed, one.Configuration)
			} else {
				well = append(well, one.Configuration)
			}
		}
		found := advice.Failed(tuned, failed, well)
		if len(found) == 0 || found[0].Parameter != c.named || found[0].High != c.high || c.low != "" && found[0].Values[0].String() != c.low || found[0].Hits != len(failed) {
			t.Errorf("%s: %+v", name, found)
		}
	}
	if found := advice.Failed(tuned, nil, nil); found != nil {
		t.Errorf("of no trials: %+v", found)
	}
}

// TestFailuresOfTwoValuesTogether: only sgd with a large learning rate fails.
func TestFailuresOfTwoValuesTogether(t *testing.T) {
	t.Parallel()
	named, alone := 0, 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		trials, _ := drawn(r, 60, false, func(space.Configuration) float64 { return 0 })
		for _, together := range []bool{true, false} {
			var failed, well []space.Configuration
			for _, one := range trials {
				if number(one.Configuration, "lr") > 1e-2 && (!together || optimizer(one.Configuration) == "sgd") {
					failed = append(failed, one.Configuration)
				} else {
					well = append(well, one.Configuration)
				}
			}
			for _, piece := range advice.Failed(tuned, failed, well) {
				name, value, found := piece.Shared(tuned, failed, well)
				if together && piece.Parameter == "lr" && found && name == "optimizer" && value == space.String("sgd") {
					named++
				}
				if !together && found {
					alone++
				}
			}
		}
	}
	if named < 10 || alone > 0 {
		t.Errorf("two values were named %d times of 20 where both are needed, and %d times where one is enough", named, alone)
	}
}

// TestPairsThatTurnAreNamed: which learning rate is better depends on the layers, on the
// optimizer, or on nothing.
func TestPairsThatTurnAreNamed(t *testing.T) {
	t.Parallel()
	few := func(c space.Configuration) float64 { // 1 or -1
		if number(c, "layers") <= 2 {
			return 1
		}
		return -1
	}
	lr := func(c space.Configuration) float64 { return (math.Log10(number(c, "lr")) + 2.5) / 1.5 }
	for name, c := range map[string]struct {
		worth       func(space.Configuration) float64
		least, most int // of 100 studies of 90 trials with any pair
		with        string
	}{
		"the layers turn it": {func(c space.Configuration) float64 { return few(c) * lr(c) }, 80, 100, "layers"},
		"an optimizer turns it": {func(c space.Configuration) float64 {
			return map[bool]float64{true: -1, false: 1}[optimizer(c) == "sgd"] * lr(c)
		}, 80, 100, "optimizer"},
		"nothing matters":            {func(space.Configuration) float64 { return 0 }, 0, 5, ""},
		"both matter by themselves":  {func(c space.Configuration) float64 { return lr(c) + few(c) }, 0, 5, ""},
		"it matters with few layers": {func(c space.Configuration) float64 { return (few(c) + 1) * (lr(c) + 1) }, 0, 5, ""},
		"a bent scale":               {func(c space.Configuration) float64 { return math.Exp(3 * (lr(c) + few(c))) }, 0, 5, ""},
	} {
		named := 0
		for seed := range uint64(100) {
			r := rand.New(rand.NewPCG(seed, 11))
			trials, _ := drawn(r, 90, false, func(one space.Configuration) float64 { return c.worth(one) + 0.3*r.NormFloat64() })
			found := advice.Turns(tuned, trials)
			named += min(1, len(found))
			for _, one := range found {
				if pair := one.Parameter + " " + one.With; c.with != "" && pair != "lr "+c.with && pair != c.with+" lr" && one.Chance < 0.001 {
					t.Errorf("%s: %+v", name, one)
				}
				if len(found) > 0 && one.Inside*one.Outside >= 0 {
					t.Errorf("%s: %+v", name, one)
				}
			}
		}
		t.Logf("%s: named in %d studies of 100", name, named)
		if named < c.least || named > c.most {
			t.Errorf("%s: named in %d studies of 100", name, named)
		}
	}
}

// TestSearchesThatStillClimb: the later half gets better, came to its end, or is of chance.
func TestSearchesThatStillClimb(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at          func(part float64) float64
		least, most int
	}{
		"it gets better":           {func(part float64) float64 { return 2 * part }, 70, 100},
		"it got better before":     {func(part float64) float64 { return min(part, 0.5) }, 0, 11},
		"it gets worse":            {func(part float64) float64 { return -2 * part }, 0, 0},
		"nothing gets it anywhere": {func(float64) float64 { return 0 }, 0, 11},
	} {
		climb := 0
		for seed := range uint64(100) {
			r := rand.New(rand.NewPCG(seed, 13))
			list := make([]advice.Trial, 80)
			for i := range list {
				list[i].Score = c.at(float64(i)/80) + 0.5*r.NormFloat64()
			}
			if found, climbs := advice.Climbs(list); climbs {
				climb++
				if found.Trials != 40 || found.Rank <= 0 {
					t.Errorf("%s: %+v", name, found)
				}
			}
		}
		t.Logf("%s: %d studies of 100 climb", name, climb)
		if climb < c.least || climb > c.most {
			t.Errorf("%s: %d studies of 100 climb", name, climb)
		}
	}
	if _, climbs := advice.Climbs(make([]advice.Trial, 2*advice.Least-2)); climbs {
		t.Error("too few trials climb")
	}
}
