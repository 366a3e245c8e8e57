package probing_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/similarity/probing"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
)

func threads(n int) system.Configuration {
	return system.Configuration{system.CPUThreads: space.Int(int64(n))}
}

func seen(run string, n int, seconds float64, epochs int) probing.Observation {
	return probing.Observation{Run: run, Configuration: threads(n), LogCost: math.Log(seconds), Epochs: epochs, Variance: 0.0004}
}

var two = []probing.Candidate{{Configuration: threads(1)}, {Configuration: threads(2)}}

func TestNothingIsKnownBeforeTwoConfigurationsWereMeasured(t *testing.T) {
	for name, observations := range map[string][]probing.Observation{
		"nothing":                      nil,
		"one cell":                     {seen("a", 2, 1, 5)},
		"one cell in each of two runs": {seen("a", 2, 1, 5), seen("b", 1, 100, 5)},
	} {
		m := probing.Fit([]system.Configuration{threads(1), threads(2)}, observations)
		ratio, deviation := m.Ratio(two[0], two[1])
		if math.Abs(ratio) > 1e-9 || deviation < 0.1 {
			t.Errorf("%s: ratio %v ± %v, want what the prior says", name, ratio, deviation)
		}
		if choice := m.Choose(two, 1); choice.Best != 1 || choice.Probe != 0 || choice.Surviving != 2 {
			t.Errorf("%s: %+v, want the default for now and a probe", name, choice)
		}
	}
}

func TestRatiosWithinRunsAreLearned(t *testing.T) {
	observations := []probing.Observation{seen("short", 1, 1, 3), seen("short", 2, 1.5, 3), seen("long", 1, 60, 3), seen("long", 2, 90, 3)}
	m := probing.Fit([]system.Configuration{threads(1), threads(2)}, observations)
	ratio, deviation := m.Ratio(two[1], two[0])
	if math.Abs(ratio-math.Log(1.5)) > 0.03 || deviation > 0.05 {
		t.Errorf("ratio %v ± %v, want %v", ratio, deviation, math.Log(1.5))
	}
	if choice := m.Choose(two, 1); choice.Best != 0 || choice.Probe != -1 || choice.Surviving != 1 || len(choice.Indifferent) > 0 {
		t.Errorf("%+v, want one thread, decided", choice)
	}
}

// Short runs have first epochs only, in which all warms up.
func TestFirstEpochsTeachLess(t *testing.T) {
	first := func(run string, n int, seconds float64) probing.Observation {
		one := seen(run, n, seconds, 1)
		one.First = true
		return one
	}
	later := probing.Fit(nil, []probing.Observation{seen("a", 1, 1, 1), seen("a", 2, 2, 1)})
	firsts := probing.Fit(nil, []probing.Observation{first("a", 1, 1.5), first("a", 2, 3)})
	mixed := probing.Fit(nil, []probing.Observation{first("a", 1, 1), seen("a", 2, 2, 1)})
	ratio, sure := later.Ratio(two[1], two[0])
	fromFirsts, lessSure := firsts.Ratio(two[1], two[0])
	fromBoth, leastSure := mixed.Ratio(two[1], two[0])
	if !(sure < lessSure && lessSure < leastSure) {
		t.Errorf("deviations of later epochs %.3f, first ones %.3f, one of each %.3f: want them to grow", sure, lessSure, leastSure)
	}
	if math.Abs(ratio-math.Log(2)) > 0.1 || math.Abs(fromFirsts-math.Log(2)) > 0.25 || fromBoth < 0.1 {
		t.Errorf("two threads take %.2f, %.2f, %.2f more (log), want about %.2f, the last one surely more", ratio, fromFirsts, fromBoth, math.Log(2))
	}
}

func TestWarmingUpIsNoCost(t *testing.T) {
	var observations []probing.Observation
	for i := range 4 {
		run := fmt.Sprint("run ", i)
		first := seen(run, 2, 1.5, 1)
		first.First = true
		observations = append(observations, first, seen(run, 1, 1, 1), seen(run, 2, 1, 1))
	}
	ratio, deviation := probing.Fit(nil, observations).Ratio(two[1], two[0])
	if math.Abs(ratio) > 0.05 || deviation > 0.1 {
		t.Errorf("two threads take %.3f more (log, deviation %.3f), want none: only the start was slower", ratio, deviation)
	}
}

func TestOneEpochDoesNotDecide(t *testing.T) {
	grid := []system.Configuration{threads(1), threads(2)}
	once := []probing.Observation{seen("a", 2, 1, 3), seen("a", 1, 1.9, 1)}
	if choice := probing.Fit(grid, once).Choose(two, 1); choice.Best != 1 || choice.Probe != 0 || choice.Surviving != 2 {
		t.Errorf("after one slow epoch: %+v, want a second look", choice)
	}
	twice := []probing.Observation{seen("a", 2, 1, 3), seen("a", 1, 1.9, 2)}
	if choice := probing.Fit(grid, twice).Choose(two, 1); choice.Best != 1 || choice.Probe != -1 {
		t.Errorf("after two slow epochs: %+v, want decided", choice)
	}
}

func TestAKnobThatMakesNoDifferenceIsLeftAlone(t *testing.T) {
	grid, standard := gridOf(2, system.Tuned{Name: system.CPUThreads}, ints(system.MemoryGiB, 4, 8, 16))
	var candidates []probing.Candidate
	var observations []probing.Observation
	for i, one := range grid {
		candidates = append(candidates, probing.Candidate{Configuration: one})
		seconds := 1.0
		if number(one, system.CPUThreads) == 2 {
			seconds = 1.4
		}
		seconds *= 1 + 0.002*float64(i%3)
		if number(one, system.MemoryGiB) == 4 {
			seconds *= 1.004 // the default is not even the fastest
		}
		observations = append(observations, probing.Observation{Run: "a", Configuration: one, LogCost: math.Log(seconds), Epochs: 8, Variance: 0.0004})
	}
	choice := probing.Fit(grid, observations).Choose(candidates, standard)
	best := grid[choice.Best]
	if number(best, system.CPUThreads) != 1 || number(best, system.MemoryGiB) != 4 {
		t.Errorf("chose %v, want one thread and the default's memory", best)
	}
	if !slices.Equal(choice.Indifferent, []string{system.MemoryGiB}) || choice.Probe != -1 {
		t.Errorf("%+v, want memory left alone and decided", choice)
	}
}

func TestObservationsThatSayNothingAreLeftOut(t *testing.T) {
	grid := []system.Configuration{threads(1), threads(2)}
	good := []probing.Observation{seen("a", 1, 1, 3), seen("a", 2, 1.3, 3)}
	bad := append(slices.Clone(good), seen("a", 1, 1, 0), seen("a", 1, math.NaN(), 2), seen("a", 2, 0, 2), seen("b", 2, math.Inf(1), 2))
	want, _ := probing.Fit(grid, good).Ratio(two[0], two[1])
	if got, _ := probing.Fit(grid, bad).Ratio(two[0], two[1]); got != want {
		t.Errorf("ratio %v, want %v", got, want)
	}
}

func TestNoCandidateNoChoice(t *testing.T) {
	if choice := probing.Fit(nil, nil).Choose(nil, -1); choice.Best != -1 || choice.Probe != -1 {
		t.Errorf("%+v", choice)
	}
}

// A whole grid measured in many runs beside several numbers of neighbours.
func TestTheLargestGridIsFitted(t *testing.T) {
	grid, standard := gridOf(8, system.Tuned{Name: system.CPUThreads}, ints(system.MemoryGiB, 1, 2, 4, 8), ints(system.LoaderWorkers, 0, 1, 2, 4), ints(system.CPUFrequencyMHz, 3000, 1000, 1500, 2000))
	random := rand.New(rand.NewPCG(1, 1))
	var observations []probing.Observation
	for run := range 200 {
		for range 6 {
			one := grid[random.IntN(len(grid))]
			seconds := 1000 / number(one, system.CPUFrequencyMHz) * math.Exp(0.03*random.NormFloat64())
			observations = append(observations, probing.Observation{Run: fmt.Sprint(run), Configuration: one, Neighbours: random.IntN(2), LogCost: math.Log(seconds), Epochs: 1})
		}
	}
	var candidates []probing.Candidate
	for _, one := range grid {
		candidates = append(candidates, probing.Candidate{Configuration: one})
	}
	choice := probing.Fit(grid, observations).Choose(candidates, standard)
	if number(grid[choice.Best], system.CPUFrequencyMHz) != 3000 {
		t.Errorf("chose %v", grid[choice.Best])
	}
}

func drawObservations(t *rapid.T) []probing.Observation {
	grid, _ := gridOf(4, system.Tuned{Name: system.CPUThreads}, ints(system.MemoryGiB, 4, 8))
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) probing.Observation {
		return probing.Observation{
			Run: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "run"), Configuration: rapid.SampledFrom(grid).Draw(t, "configuration"),
			Neighbours: rapid.IntRange(0, 3).Draw(t, "neighbours"), LogCost: rapid.Float64Range(-20, 20).Draw(t, "cost"),
			Epochs: rapid.IntRange(0, 50).Draw(t, "epochs"), Variance: rapid.Float64Range(0, 2).Draw(t, "variance"),
		}
	}), 0, 25).Draw(t, "observations")
}

func drawCandidates(t *rapid.T) ([]system.Configuration, []probing.Candidate, int) {
	grid, standard := gridOf(4, system.Tuned{Name: system.CPUThreads}, ints(system.MemoryGiB, 4, 8))
	var list []probing.Candidate
	for _, one := range grid {
		list = append(list, probing.Candidate{Configuration: one, Neighbours: rapid.IntRange(0, 3).Draw(t, "beside"), LogWeight: rapid.Float64Range(-2, 0).Draw(t, "weight")})
	}
	return grid, list, rapid.SampledFrom([]int{-1, standard}).Draw(t, "standard")
}

func TestTheOrderOfObservationsMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grid, candidates, standard := drawCandidates(t)
		observations := drawObservations(t)
		first := probing.Fit(grid, observations)
		second := probing.Fit(grid, rapid.Permutation(observations).Draw(t, "order"))
		if a, b := first.Choose(candidates, standard), second.Choose(candidates, standard); !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v and %+v", a, b)
		}
		for _, c := range candidates {
			ra, da := first.Ratio(c, candidates[0])
			if rb, db := second.Ratio(c, candidates[0]); ra != rb || da != db {
				t.Fatalf("ratio %v ± %v and %v ± %v", ra, da, rb, db)
			}
		}
	})
}

func TestTheLevelOfARunMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grid, candidates, _ := drawCandidates(t)
		observations := drawObservations(t)
		shift := rapid.Float64Range(-5, 5).Draw(t, "shift")
		moved := slices.Clone(observations)
		for i := range moved {
			if moved[i].Run == "b" {
				moved[i].LogCost += shift
			}
		}
		first, second := probing.Fit(grid, observations), probing.Fit(grid, moved)
		for _, c := range candidates {
			ra, da := first.Ratio(c, candidates[0])
			rb, db := second.Ratio(c, candidates[0])
			if math.Abs(ra-rb) > 1e-6 || math.Abs(da-db) > 1e-6 {
				t.Fatalf("ratio %v ± %v and %v ± %v", ra, da, rb, db)
			}
		}
	})
}

func TestRatiosAreFiniteAndOpposite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grid, candidates, standard := drawCandidates(t)
		m := probing.Fit(grid, drawObservations(t))
		for _, a := range candidates {
			for _, b := range candidates {
				ratio, deviation := m.Ratio(a, b)
				back, same := m.Ratio(b, a)
				if math.IsNaN(ratio) || math.IsInf(ratio, 0) || math.IsNaN(deviation) || math.Abs(ratio+back) > 1e-9 || math.Abs(deviation-same) > 1e-6 {
					t.Fatalf("%v ± %v, and back %v ± %v", ratio, deviation, back, same)
				}
			}
		}
		choice := m.Choose(candidates, standard)
		if choice.Best < 0 || choice.Best >= len(candidates) || choice.Probe < -1 || choice.Probe >= len(candidates) {
			t.Fatalf("%+v of %d", choice, len(candidates))
		}
		if choice.Surviving < 1 || choice.Surviving > len(candidates) || (choice.Probe < 0) != (choice.Surviving == 1) {
			t.Fatalf("%+v of %d", choice, len(candidates))
		}
	})
}
