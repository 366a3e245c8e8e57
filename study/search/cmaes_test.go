package search_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/cmaes"
	"github.com/tandem-tune/tandem/study/search/searchtest"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

func cmaesSettings(s space.Space, trials int) search.Settings {
	return search.Settings{
		Method: "cma-es", Seed: 3, Space: s, Rungs: searchtest.Ladder(1, 3), Eta: 3, MaxTrials: trials,
		RandomFraction: 1. / 3, Maximize: []bool{true},
	}
}

// on measures everything at once, in one second, on the rungs there are.
func on(workers int, truth func(space.Configuration) float64) world {
	return world{workers: workers, until: math.Inf(1), measure: func(c space.Configuration, _, _ int) (float64, float64) {
		return truth(c), 1
	}}
}

// A narrow valley that lies across the axes: what the covariance is for.
func TestCMAESLearnsTheDirectionOfAValley(t *testing.T) {
	const d = 4
	valley := func(c space.Configuration) float64 {
		along, across := 0.0, 0.0
		x := make([]float64, d)
		for i := range x {
			x[i] = number(c, fmt.Sprintf("x%d", i)) - 0.4
			along += x[i] / d
		}
		for i := range x {
			across += (x[i] - along) * (x[i] - along)
		}
		return -(along*along + 100*across)
	}
	regret := compare(t, cmaesSettings(numbers(d), 300), on(4, valley), valley, "random", "bohb", "cma-es")
	for other, share := range map[string]float64{"random": 0.01, "bohb": 0.03} {
		if regret["cma-es"] > share*regret[other] {
			t.Errorf("the regret %v of cma-es is more than %v of the %v of %s", regret["cma-es"], share, regret[other], other)
		}
	}
}

// Waves hide the best place: one run ends in a trough beside it.
func TestRestartsLeaveATroughThatIsNotTheDeepest(t *testing.T) {
	waves := func(c space.Configuration) float64 {
		loss := 0.0
		for i, name := range []string{"x0", "x1"} {
			x := 10 * (number(c, name) - 0.3 - 0.2*float64(i))
			loss += x*x + 5*(1-math.Cos(2*math.Pi*x))
		}
		return -loss
	}
	regret := func(restarts cmaes.Restarts) float64 {
		settings := cmaesSettings(numbers(2), 1_000)
		settings.Restarts = restarts
		return compare(t, settings, on(4, waves), waves, "cma-es")["cma-es"]
	}
	stays := regret(cmaes.NoRestarts)
	for restarts, share := range map[cmaes.Restarts]float64{cmaes.IPOP: 0.2, cmaes.BIPOP: 0.5} {
		if leaves := regret(restarts); leaves > share*stays {
			t.Errorf("the regret with %s is %v, with none %v", restarts, leaves, stays)
		}
	}
}

// The runs' populations: ipop doubles them, bipop has small ones in between,
// and none goes on with the first.
func TestRestartsChangeThePopulation(t *testing.T) {
	for restarts, check := range map[cmaes.Restarts]func(sizes []int) bool{
		cmaes.IPOP: func(sizes []int) bool {
			for i := 1; i < len(sizes); i++ {
				if sizes[i] != 2*sizes[i-1] {
					return false
				}
			}
			return len(sizes) >= 3
		},
		cmaes.BIPOP: func(sizes []int) bool {
			smaller := false
			for i := 1; i < len(sizes); i++ {
				smaller = smaller || sizes[i] < sizes[i-1] || sizes[i] == sizes[0]
			}
			return len(sizes) >= 4 && smaller
		},
		cmaes.NoRestarts: func(sizes []int) bool { return len(sizes) == 1 },
	} {
		settings := cmaesSettings(numbers(1), 800)
		settings.Restarts = restarts
		method := start(t, settings)
		var sizes []int
		for range settings.MaxTrials {
			a := ask(t, method, 1)[0]
			measure(t, method, []search.Action{a}, func(c space.Configuration) float64 { return -math.Abs(number(c, "x0") - 0.7) })
			if a.Origin == "random" { // the distribution became a point
				continue
			}
			var updates, size, run int
			if _, err := fmt.Sscanf(a.Reason, "drawn from the distribution after %d populations of %d, run %d", &updates, &size, &run); err != nil {
				t.Fatalf("%q: %v", a.Reason, err)
			}
			if run > len(sizes) {
				sizes = append(sizes, size)
			}
		}
		if !check(sizes) {
			t.Errorf("with %s the populations are %v", restarts, sizes)
		}
	}
}

// As long as the floats are far off, every switch looks better when it is off;
// in the end each is better on. Without the margin they would be decided first.
func TestCMAESDoesNotDecideStepsTooEarly(t *testing.T) {
	s := numbers(3)
	s.Parameters = append(s.Parameters,
		space.Parameter{Name: "int", Kind: space.Model, Type: space.IntType, Low: 0, High: 1},
		space.Parameter{Name: "more", Kind: space.Model, Type: space.IntType, Low: 0, High: 2},
		space.Parameter{Name: "ordinal", Kind: space.Model, Type: space.OrdinalType, Values: []space.Value{space.Int(0), space.Int(1)}},
		space.Parameter{Name: "choice", Kind: space.Model, Type: space.CategoricalType, Values: []space.Value{space.Int(0), space.Int(1), space.Int(2)}},
	)
	switches := []string{"int", "more", "ordinal", "choice"}
	truth := func(c space.Configuration) float64 {
		far, on := 0.0, 0.0
		for i := range 3 {
			x := number(c, fmt.Sprintf("x%d", i)) - 0.35
			far += x * x
		}
		for _, name := range switches {
			if number(c, name) == 1 {
				on++
			}
		}
		return -(far*(1+4*on) + 0.05*(float64(len(switches))-on))
	}
	settings := cmaesSettings(s, 600)
	settings.Restarts = cmaes.NoRestarts // another run would decide anew
	won, studies := map[string]int{}, effort.ByDay(t, 6, 12)
	for seed := range uint64(studies) {
		settings.Seed = seed
		best := winner(simulate(t, settings, on(4, truth)))
		for _, name := range switches {
			if number(best.params, name) == 1 {
				won[name]++
			}
		}
	}
	t.Logf("switches on in the end, of %d seeds: %v", studies, won)
	for _, name := range switches {
		if 6*won[name] < 5*studies {
			t.Errorf("%s was on in the end with %d of %d seeds", name, won[name], studies)
		}
	}
}

// Trials start at different rungs, where the values differ by far more than
// from one configuration to another: only trials of one rung are compared.
func TestCMAESComparesWithinARung(t *testing.T) {
	truth := func(c space.Configuration) float64 {
		loss := 0.0
		for i := range 4 {
			x := number(c, fmt.Sprintf("x%d", i)) - 0.3
			loss += x * x
		}
		return -loss
	}
	settings := cmaesSettings(numbers(4), 200)
	settings.Rungs = searchtest.Ladder(4, 3)
	regrets := map[float64]float64{}
	for _, gap := range []float64{0, 100, -100} {
		w := world{workers: 4, until: math.Inf(1), measure: func(c space.Configuration, rung, _ int) (float64, float64) {
			return truth(c) + gap*float64(rung), math.Pow(3, float64(rung))
		}}
		regrets[gap] = compare(t, settings, w, truth, "cma-es")["cma-es"]
	}
	if regrets[100] != regrets[0] || regrets[-100] != regrets[0] {
		t.Errorf("a gap between the rungs changes the regret: %v", regrets)
	}
	if random := compare(t, settings, on(4, truth), truth, "random")["random"]; regrets[0] > random/4 {
		t.Errorf("the regret is %v, random's is %v", regrets[0], random)
	}
}

// Outcomes that are no numbers, that are all equal, or failures do no harm.
func TestCMAESBearsFailuresAndInfinities(t *testing.T) {
	for name, values := range map[string][]float64{
		"one value":      {1, math.NaN(), math.NaN()},
		"infinite gain":  {math.Inf(1), math.Inf(1), 0},
		"infinite loss":  {math.Inf(-1), 2, math.Inf(-1)},
		"all are equal":  {5, 5, 5},
		"as far as goes": {-math.MaxFloat64, math.MaxFloat64, 0},
	} {
		t.Run(name, func(t *testing.T) {
			settings := cmaesSettings(numbers(3), 0)
			method := start(t, settings)
			for i := range 600 {
				a := ask(t, method, 1)[0]
				if faults := settings.Space.Check(a.Configuration); len(faults) > 0 || a.Origin != "model" {
					t.Fatalf("trial %d from %s: %v", i, a.Origin, faults)
				}
				if i >= 3 && i%2 == 1 {
					if _, err := method.Handle(search.Event{Kind: search.Failed, Trial: a.Trial}); err != nil {
						t.Fatal(err)
					}
					continue
				}
				measure(t, method, []search.Action{a}, func(space.Configuration) float64 { return values[i%3] })
			}
		})
	}
}

// What came when decides the next population, and is part of the snapshot.
func TestCMAESSnapshotKeepsTheOrderOfOutcomes(t *testing.T) {
	settings := cmaesSettings(numbers(3), 0)
	value := func(c space.Configuration) float64 { return number(c, "x0") - number(c, "x1") }
	after := func(order func(i, n int) int, restored bool) string {
		method := start(t, settings)
		for range 4 {
			created := ask(t, method, 12)
			for i := range created {
				measure(t, method, created[order(i, 12):order(i, 12)+1], value)
			}
		}
		if restored {
			state, err := method.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			method = start(t, settings)
			if err := method.Restore(state); err != nil {
				t.Fatal(err)
			}
		}
		return fmt.Sprint(ask(t, method, 5))
	}
	forward := func(i, n int) int { return i }
	backward := func(i, n int) int { return n - 1 - i }
	if after(backward, true) != after(backward, false) {
		t.Error("a restored search goes on differently")
	}
	if after(forward, false) == after(backward, false) {
		t.Error("the order changes nothing: this test shows nothing")
	}
}

func TestCMAESRefusesBrokenSnapshots(t *testing.T) {
	settings := cmaesSettings(numbers(2), 0)
	method := start(t, settings)
	measure(t, method, ask(t, method, 3), func(space.Configuration) float64 { return 1 })
	state, err := method.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(trials []map[string]any){
		"an outcome twice":    func(trials []map[string]any) { trials[0]["arrived"] = 2 },
		"an outcome missing":  func(trials []map[string]any) { delete(trials[1], "arrived") },
		"an outcome too late": func(trials []map[string]any) { trials[2]["arrived"] = 4 },
		"a short draw":        func(trials []map[string]any) { trials[0]["draw"] = map[string]any{"point": []float64{0.5}} },
		"a draw outside":      func(trials []map[string]any) { trials[0]["draw"] = map[string]any{"point": []float64{0.5, 1.5}} },
	} {
		t.Run(name, func(t *testing.T) {
			var snapshot map[string]any
			if err := json.Unmarshal(state, &snapshot); err != nil {
				t.Fatal(err)
			}
			var trials []map[string]any
			for _, one := range snapshot["trials"].([]any) {
				trials = append(trials, one.(map[string]any))
			}
			change(trials)
			snapshot["trials"] = trials
			broken, err := json.Marshal(snapshot)
			if err != nil {
				t.Fatal(err)
			}
			if err := start(t, settings).Restore(broken); !problem.Is(err, problem.Invalid) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Snapshots of programs that did not note the order of outcomes stay readable.
func TestSnapshotsWithoutTheOrderOfOutcomes(t *testing.T) {
	settings := cmaesSettings(numbers(2), 0)
	settings.Method = "bohb"
	method := start(t, settings)
	for range 10 {
		measure(t, method, ask(t, method, 1), func(c space.Configuration) float64 { return number(c, "x0") })
	}
	state, err := method.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	text := string(state)
	for i := range 10 {
		text = strings.Replace(text, fmt.Sprintf(`,"arrived":%d`, i+1), "", 1)
	}
	if strings.Contains(text, "arrived") {
		t.Fatal(text)
	}
	other := start(t, settings)
	if err := other.Restore(json.RawMessage(text)); err != nil {
		t.Fatal(err)
	}
	if a, b := ask(t, method, 5), ask(t, other, 5); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%v and %v", a, b)
	}
	if _, err := other.Handle(search.Event{Kind: search.Measured, Trial: 10, Values: []trial.Float{1}}); err != nil {
		t.Error(err)
	}
}

func TestCMAESRefusesWhatItCannotDo(t *testing.T) {
	for path, settings := range map[string]search.Settings{
		"search.method":   cmaesSettings(numbers(101), 10),
		"search.restarts": {Method: "cma-es", Restarts: "often", Space: numbers(2), Rungs: searchtest.Ladder(1, 3), Eta: 3, Maximize: []bool{true}},
	} {
		_, err := search.New(settings)
		var told *problem.Error
		if !errors.As(err, &told) || told.Code != problem.Invalid || len(told.Fields) != 1 || told.Fields[0].Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
	method := start(t, cmaesSettings(numbers(100), 60))
	measure(t, method, ask(t, method, 40), func(c space.Configuration) float64 { return number(c, "x7") })
	ask(t, method, 1)
}
