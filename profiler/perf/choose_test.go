package perf

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// made are epochs with a known structure: "b" follows "a", "against" falls as "a"
// rises, "alone" follows nothing, page-faults follow "d".
func made(epochs int) []map[string]float64 {
	random := rand.New(rand.NewPCG(1, 2))
	var list []map[string]float64
	for range epochs {
		busy := 1e9 * (1 + 3*random.Float64()) // nanoseconds of CPU time in a second
		a, d, free := math.Exp(3*random.Float64()), math.Exp(3*random.Float64()), math.Exp(3*random.Float64())
		share := busy / 1e9
		list = append(list, map[string]float64{
			"task-clock": busy, "instructions": 2e9 * a * share, "cpu-cycles": 2e9 * a * share,
			"L1-dcache-loads": 1e8 * a * (1 + 0.01*random.Float64()) * share, "LLC-loads": 1e8 / a * share,
			"page-faults": 1e5 * d * share, "dTLB-load-misses": 1e6 * d * share,
			"branch-misses": 1e6 * free * share, "alignment-faults": 0, "cpu/uops": 1e9 * free * a * share,
		})
	}
	return list
}

func TestEventsThatOthersStandFor(t *testing.T) {
	epochs := made(40)
	for at := range 5 {
		epochs[at]["cpu/seldom"] = float64(at)
	}
	choice, err := Choose(epochs, DefaultCorrelation)
	if err != nil {
		t.Fatal(err)
	}
	stands := map[string]string{}
	for _, group := range choice.Groups {
		for _, other := range group.Others {
			stands[other.Name] = group.Representative
			if math.Abs(other.R) < DefaultCorrelation || (other.R < 0) != (other.Name == "LLC-loads") {
				t.Errorf("%s correlates with %s by %g", other.Name, group.Representative, other.R)
			}
		}
	}
	want := map[string]string{"L1-dcache-loads": "instructions", "LLC-loads": "instructions", "dTLB-load-misses": "page-faults"}
	if !reflect.DeepEqual(stands, want) {
		t.Errorf("got %v, want %v", stands, want)
	}
	kept := []string{"instructions", "cpu-cycles", "branch-misses", "task-clock", "page-faults", "cpu/seldom", "cpu/uops"}
	if got := choice.Events(); !slices.Equal(got, kept) {
		t.Errorf("worth a counter are %v, want %v", got, kept)
	}
	if !slices.Equal(choice.Constant, []string{"alignment-faults"}) || !slices.Equal(choice.Rare, []string{"cpu/seldom"}) || !choice.PerCPUSecond {
		t.Errorf("got %+v", choice)
	}
}

// TestLoadIsNoCorrelation: all events rise with the cores that are kept busy.
func TestLoadIsNoCorrelation(t *testing.T) {
	epochs := made(40)
	for at, epoch := range epochs {
		busy := math.Pow(10, 3*float64(at)/40) // from one core to a thousand
		for name := range epoch {
			epoch[name] *= busy
		}
	}
	free := func() []string {
		choice, err := Choose(epochs, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		return choice.Events()
	}
	if got := free(); !slices.Contains(got, "branch-misses") {
		t.Errorf("only %v are left", got)
	}
	for _, epoch := range epochs {
		delete(epoch, "task-clock")
	}
	if choice, err := Choose(epochs, 0.9); err != nil || choice.PerCPUSecond {
		t.Errorf("without a clock: %+v, %v", choice, err)
	}
}

func TestTooLittleToChooseFrom(t *testing.T) {
	for name, test := range map[string]struct {
		epochs    int
		threshold float64
		reason    string
	}{
		"few epochs":      {7, 0.98, "7 epochs"},
		"threshold of 0":  {40, 0, "above 0"},
		"above 1":         {40, 1.1, "at most 1"},
		"threshold a NaN": {40, math.NaN(), "at most 1"},
	} {
		if _, err := Choose(made(test.epochs), test.threshold); err == nil || !strings.Contains(err.Error(), test.reason) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestChoiceIsAPartition: every event is in one place, the same at each call, and
// everything that is left out for another is close to it.
func TestChoiceIsAPartition(t *testing.T) {
	names := []string{"instructions", "cpu-cycles", "task-clock", "page-faults", "LLC-loads", "LLC-stores", "x/a", "x/b"}
	rapid.Check(t, func(t *rapid.T) {
		var epochs []map[string]float64
		seen := map[string]bool{}
		for range rapid.IntRange(leastEpochs, 20).Draw(t, "epochs") {
			epoch := map[string]float64{}
			for _, name := range names {
				if rapid.IntRange(0, 9).Draw(t, "counted") > 0 {
					epoch[name] = rapid.Float64Range(0, 1e12).Draw(t, name)
					seen[name] = true
				}
			}
			epochs = append(epochs, epoch)
		}
		threshold := rapid.Float64Range(0.1, 1).Draw(t, "threshold")
		choice, err := Choose(epochs, threshold)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := Choose(epochs, threshold)
		if !reflect.DeepEqual(choice, again) {
			t.Fatalf("%+v, then %+v", choice, again)
		}
		placed := slices.Concat(choice.Constant, choice.Rare)
		for _, group := range choice.Groups {
			placed = append(placed, group.Representative)
			for _, other := range group.Others {
				placed = append(placed, other.Name)
				if !(math.Abs(other.R) >= threshold && math.Abs(other.R) <= 1) {
					t.Fatalf("%s is in a group with an r of %g", other.Name, other.R)
				}
			}
		}
		slices.Sort(placed)
		if len(placed) != len(seen) || len(slices.Compact(placed)) != len(seen) {
			t.Fatalf("%v were placed, of %v", placed, seen)
		}
	})
}
