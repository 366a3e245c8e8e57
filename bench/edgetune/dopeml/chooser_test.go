package dopeml_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/bench/edgetune/dopeml"
)

// truth is what a run takes in a world where GPUs are fast and hungry.
func truth(profile dopeml.Profile, model dopeml.Model, noise float64) dopeml.Measured {
	latency := model.Operations / (1e9 * profile.Cores) * math.Exp(noise)
	watts := 2 * profile.Cores
	if profile.GPUs > 0 {
		latency = (0.002 + model.Operations/40e9) * math.Exp(noise)
		watts += 60
	}
	energy, memory, use, gpu, gpuMemory := watts*latency, 2e8+3*model.WeightBytes, 0.9, 0.0, 0.0
	if profile.GPUs > 0 {
		use, gpu, gpuMemory = 0.2, 0.7, 1e9
	}
	return dopeml.Measured{LatencySeconds: &latency, JoulesPerInference: &energy, MemoryBytes: &memory,
		CPUUtilization: &use, GPUUtilization: &gpu, GPUMemoryBytes: &gpuMemory}
}

func someModel(random *rand.Rand) dopeml.Model {
	operations := math.Exp(16 + 6*random.Float64())
	return dopeml.Model{Operations: operations, Parameters: operations / 100, WeightBytes: operations / 25, Accuracy: 0.7}
}

func someRuns(random *rand.Rand, n int) []dopeml.Run {
	var runs []dopeml.Run
	for i := range n {
		profile, model := dopeml.Defaults()[i%4], someModel(random)
		runs = append(runs, dopeml.Run{Model: model, Request: dopeml.Request{Batch: 1}, Backend: profile.Name,
			Measured: truth(profile, model, 0.03*random.NormFloat64())})
	}
	return runs
}

func taught(t interface{ Fatal(...any) }, settings dopeml.Settings, runs []dopeml.Run) *dopeml.Chooser {
	c, err := dopeml.New(dopeml.Defaults(), settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Learn(runs...); err != nil {
		t.Fatal(err)
	}
	return c
}

func by(weights map[dopeml.Criterion]float64, limits map[dopeml.Criterion]float64) dopeml.Wishes {
	return dopeml.Wishes{Weights: weights, Limits: limits}
}

func TestPrioritiesDecide(t *testing.T) {
	c := taught(t, dopeml.Settings{}, someRuns(rand.New(rand.NewPCG(1, 1)), 160))
	large := dopeml.Model{Operations: 3e9, Parameters: 3e7, WeightBytes: 1.2e8, Accuracy: 0.7}
	small := dopeml.Model{Operations: 3e6, Parameters: 3e4, WeightBytes: 1.2e5, Accuracy: 0.7}
	for _, one := range []struct {
		name    string
		model   dopeml.Model
		request dopeml.Request
		wishes  dopeml.Wishes
		want    []string
		why     string
	}{
		{"a large model, fast", large, dopeml.Request{}, by(map[dopeml.Criterion]float64{"latency": 1}, nil), []string{"B3", "B4"}, "predicted best"},
		{"a small model, economical", small, dopeml.Request{}, by(map[dopeml.Criterion]float64{"energy": 1}, nil), []string{"B1", "B2"}, "J an inference"},
		{"a limit rules the economical ones out", large, dopeml.Request{}, by(map[dopeml.Criterion]float64{"energy": 1}, map[dopeml.Criterion]float64{"latency": 0.3}), []string{"B3", "B4"}, "ms is above 300 ms"},
		{"a rate that cores cannot keep up with", large, dopeml.Request{Rate: 5, Batch: 1}, by(map[dopeml.Criterion]float64{"latency": 1, "energy": 100}, nil), []string{"B3", "B4"}, "cannot keep up"},
		{"nobody can", large, dopeml.Request{}, by(map[dopeml.Criterion]float64{"latency": 1}, map[dopeml.Criterion]float64{"latency": 1e-6}), []string{""}, "no backend can be chosen"},
		{"the cost is not known", large, dopeml.Request{}, by(map[dopeml.Criterion]float64{"cost": 1}, nil), []string{""}, "its profile has no cost_per_hour"},
	} {
		t.Run(one.name, func(t *testing.T) {
			choice, err := c.Choose(one.model, one.request, one.wishes)
			if err != nil {
				t.Fatal(err)
			}
			ok := false
			for _, want := range one.want {
				ok = ok || choice.Backend == want
			}
			if !ok || !strings.Contains(choice.Why, one.why) {
				t.Errorf("chose %q: %s", choice.Backend, choice.Why)
			}
			for _, option := range choice.Options {
				if !strings.Contains(choice.Why, option.Backend) {
					t.Errorf("nothing is said of %s: %s", option.Backend, choice.Why)
				}
			}
		})
	}
}

func TestWhatDoesNotFitIsRuledOut(t *testing.T) {
	profiles := dopeml.Defaults()
	runs := someRuns(rand.New(rand.NewPCG(1, 1)), 80) // about 200 MB, 1 GB on a GPU
	profiles[0].MemoryBytes, profiles[2].GPUMemoryBytes = 1e8, 5e8
	c, err := dopeml.New(profiles, dopeml.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Learn(runs...); err != nil {
		t.Fatal(err)
	}
	choice, err := c.Choose(runs[0].Model, dopeml.Request{}, by(map[dopeml.Criterion]float64{"latency": 1}, nil))
	if err != nil {
		t.Fatal(err)
	}
	for b, want := range []string{"of memory and has 95.4 MiB", "", "of GPU memory and has 477 MiB", ""} {
		if got := strings.Join(choice.Options[b].RuledOut, ""); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", profiles[b].Name, got, want)
		}
	}
}

// Without runs a prediction is of the others: it is shown, and not relied on.
func TestABackendThatNeverRanIsNotChosenForItsPrediction(t *testing.T) {
	var runs []dopeml.Run
	for _, run := range someRuns(rand.New(rand.NewPCG(1, 1)), 80) {
		if run.Backend == "B1" || run.Backend == "B3" {
			runs = append(runs, run)
		}
	}
	wishes := by(map[dopeml.Criterion]float64{"latency": 1}, nil)
	for _, exploration := range []dopeml.Exploration{dopeml.Greedy, dopeml.Optimism} {
		choice, err := taught(t, dopeml.Settings{Exploration: exploration}, runs).Choose(runs[0].Model, dopeml.Request{}, wishes)
		if err != nil {
			t.Fatal(err)
		}
		if seen := choice.Options[choice.Chosen].Runs > 0; seen != (exploration == dopeml.Greedy) || choice.Explored == seen {
			t.Errorf("%s: %s", exploration, choice.Why)
		}
		if choice.Options[choice.Greedy].Runs == 0 {
			t.Errorf("%s relies on %s", exploration, choice.Options[choice.Greedy].Backend)
		}
		if band := choice.Options[1].Outcome["latency"]; band.Deviation < band.Mean {
			t.Errorf("the latency of a backend that never ran is said to be %v", band)
		}
	}
}

func TestPredictedMeansKeepTheLimits(t *testing.T) {
	runs := someRuns(rand.New(rand.NewPCG(2, 1)), 80)
	choosers := map[dopeml.Exploration]*dopeml.Chooser{}
	for _, exploration := range []dopeml.Exploration{dopeml.Greedy, dopeml.Optimism} {
		choosers[exploration] = taught(t, dopeml.Settings{Exploration: exploration}, runs)
	}
	rapid.Check(t, func(t *rapid.T) {
		exploration := rapid.SampledFrom([]dopeml.Exploration{dopeml.Greedy, dopeml.Optimism}).Draw(t, "exploration")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		limit := rapid.Float64Range(1e-4, 1).Draw(t, "latency limit")
		joules := rapid.Float64Range(1e-3, 10).Draw(t, "energy limit")
		wishes := by(map[dopeml.Criterion]float64{"latency": 1 + random.Float64(), "energy": random.Float64()},
			map[dopeml.Criterion]float64{"latency": limit, "energy": joules})
		request := dopeml.Request{Rate: rapid.Float64Range(0, 50).Draw(t, "rate"), Batch: 1,
			Pattern: rapid.SampledFrom([]dopeml.Pattern{dopeml.Periodic, dopeml.Event, dopeml.Bursty}).Draw(t, "pattern")}
		choice, err := choosers[exploration].Choose(someModel(random), request, wishes)
		if err != nil {
			t.Fatal(err)
		}
		for b, option := range choice.Options {
			keeps := option.Busy < 1 && option.Outcome["latency"].Mean <= limit && option.Outcome["energy"].Mean <= joules &&
				option.Predicted["memory_bytes"].Mean <= dopeml.Defaults()[b].MemoryBytes
			if keeps != (len(option.RuledOut) == 0) {
				t.Fatalf("%s: %+v", option.Backend, option)
			}
			if b == choice.Chosen && !keeps {
				t.Fatalf("%s was chosen: %s", option.Backend, choice.Why)
			}
			if keeps && choice.Chosen < 0 {
				t.Fatalf("%s keeps the limits and nothing was chosen: %s", option.Backend, choice.Why)
			}
		}
	})
}

func TestAnOutcomeThatIsBetterInEverythingHasLessLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		positive := rapid.Float64Range(1e-3, 1e3)
		wishes := dopeml.Wishes{Weights: map[dopeml.Criterion]float64{}}
		for _, criterion := range dopeml.Criteria() {
			wishes.Weights[criterion] = rapid.Float64Range(0.1, 5).Draw(t, string(criterion))
		}
		worse := dopeml.Outcome{Latency: positive.Draw(t, "l"), Energy: positive.Draw(t, "e"), Cost: positive.Draw(t, "c"), Accuracy: rapid.Float64Range(0.1, 0.8).Draw(t, "a")}
		factor := rapid.Float64Range(1.01, 1.2).Draw(t, "factor")
		better := dopeml.Outcome{Latency: worse.Latency / factor, Energy: worse.Energy / factor, Cost: worse.Cost / factor, Accuracy: worse.Accuracy * factor}
		if got := wishes.Loss(worse) - wishes.Loss(better); math.Abs(got-math.Log(factor)) > 1e-9 {
			t.Fatalf("%v times worse is a loss of %v, want the logarithm", factor, got)
		}
	})
}

func TestWaitingFollowsThePattern(t *testing.T) {
	values := dopeml.Values{dopeml.LatencySeconds: 0.1, dopeml.JoulesPerInference: 1, dopeml.Accuracy: 0.5}
	profile := dopeml.Profile{IdleWatts: 2, CostPerHour: 3600}
	for _, one := range []struct {
		name                        string
		request                     dopeml.Request
		latency, busy, energy, cost float64
	}{
		{"no rate", dopeml.Request{Batch: 1}, 0.1, 0, 1, 0.1},
		{"periodic", dopeml.Request{Batch: 1, Rate: 5}, 0.1, 0.5, 1.2, 0.2},
		{"events: M/D/1", dopeml.Request{Batch: 1, Rate: 5, Pattern: dopeml.Event}, 0.15, 0.5, 1.2, 0.2},
		{"a burst of 4 one by one", dopeml.Request{Batch: 1, Rate: 5, Inferences: 4, Pattern: dopeml.Bursty}, 0.25, 0.5, 1.2, 0.2},
		{"a burst of 4 at once", dopeml.Request{Batch: 4, Rate: 20, Inferences: 4, Pattern: dopeml.Bursty}, 0.1, 0.5, 1.05, 0.05},
		{"too many", dopeml.Request{Batch: 1, Rate: 20}, math.Inf(1), 2, 1, 0.1},
	} {
		t.Run(one.name, func(t *testing.T) {
			got := dopeml.Judge(profile, dopeml.Model{}, one.request, values)
			for name, pair := range map[string][2]float64{"latency": {got.Latency, one.latency}, "busy": {got.Busy, one.busy}, "energy": {got.Energy, one.energy}, "cost": {got.Cost, one.cost}} {
				if pair[0] != pair[1] && !(math.Abs(pair[0]-pair[1]) < 1e-12) {
					t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
				}
			}
		})
	}
}

// The energy of a backend whose runs had none comes from its power.
func TestWhatRunsDoNotSayTheProfileMay(t *testing.T) {
	values := dopeml.Values{dopeml.LatencySeconds: 0.2, dopeml.JoulesPerInference: math.NaN(), dopeml.Accuracy: math.NaN()}
	got := dopeml.Judge(dopeml.Profile{LoadWatts: 10, AccuracyLoss: 0.02}, dopeml.Model{Accuracy: 0.7}, dopeml.Request{Batch: 2}, values)
	if math.Abs(got.Energy-1) > 1e-12 || math.Abs(got.Accuracy-0.68) > 1e-12 || !math.IsNaN(got.Cost) {
		t.Errorf("%+v", got)
	}
}

func TestChoicesFollowFromTheRuns(t *testing.T) {
	runs := someRuns(rand.New(rand.NewPCG(3, 1)), 40)
	model, wishes := someModel(rand.New(rand.NewPCG(4, 1))), by(map[dopeml.Criterion]float64{"latency": 1, "energy": 1}, nil)
	settings := dopeml.Settings{Exploration: dopeml.Optimism}
	first, err := taught(t, settings, runs).Choose(model, dopeml.Request{}, wishes)
	if err != nil {
		t.Fatal(err)
	}
	again := taught(t, settings, runs)
	_, _ = again.Choose(someModel(rand.New(rand.NewPCG(5, 1))), dopeml.Request{Batch: 1}, wishes)
	second, _ := again.Choose(model, dopeml.Request{}, wishes)
	if one, two := text(t, first), text(t, second); one != two {
		t.Errorf("%s and %s", one, two)
	}
}

func text(t *testing.T, choice dopeml.Choice) string {
	t.Helper()
	data, err := json.Marshal(choice)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestExplorationKeepsItsBudget(t *testing.T) {
	for _, exploration := range []dopeml.Exploration{dopeml.Optimism} {
		t.Run(string(exploration), func(t *testing.T) {
			random := rand.New(rand.NewPCG(6, 1))
			c, err := dopeml.New(dopeml.Defaults(), dopeml.Settings{Exploration: exploration, Share: 0.1})
			if err != nil {
				t.Fatal(err)
			}
			explored, tried := 0, map[string]bool{}
			for i := range 100 {
				model := someModel(random)
				choice, err := c.Choose(model, dopeml.Request{Batch: 1}, by(map[dopeml.Criterion]float64{"latency": 1, "energy": random.Float64()}, nil))
				if err != nil {
					t.Fatal(err)
				}
				tried[choice.Backend] = true
				if choice.Explored {
					explored++
				}
				if most := 4 + 0.1*float64(i) + 1; float64(explored) > most {
					t.Fatalf("%d of %d choices explored", explored, i+1)
				}
				run := dopeml.Run{Model: model, Request: dopeml.Request{Batch: 1}, Backend: choice.Backend, Explored: choice.Explored,
					Measured: truth(dopeml.Defaults()[choice.Chosen], model, 0)}
				if err := c.Learn(run); err != nil {
					t.Fatal(err)
				}
				if i == 3 && len(tried) != 4 {
					t.Errorf("after four choices only %v were tried", tried)
				}
			}
			if explored <= 4 {
				t.Errorf("only %d choices explored", explored)
			}
		})
	}
}

func TestRegretFallsWithRuns(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 1))
	c, err := dopeml.New(dopeml.Defaults(), dopeml.Settings{Exploration: dopeml.Optimism, Share: 0.05})
	if err != nil {
		t.Fatal(err)
	}
	var early, late float64
	for i := range 160 {
		model, request := someModel(random), dopeml.Request{Batch: 1}
		wishes := by(map[dopeml.Criterion]float64{"latency": random.Float64(), "energy": random.Float64()}, nil)
		choice, err := c.Choose(model, request, wishes)
		if err != nil {
			t.Fatal(err)
		}
		least, got := math.Inf(1), 0.0
		for b, profile := range dopeml.Defaults() {
			loss := wishes.Loss(dopeml.Judge(profile, model, request, truth(profile, model, 0).Values()))
			least = min(least, loss)
			if b == choice.Chosen {
				got = loss
			}
		}
		if i < 30 {
			early += (got - least) / 30
		} else if i >= 110 {
			late += (got - least) / 50
		}
		if err := c.Learn(dopeml.Run{Model: model, Request: request, Backend: choice.Backend, Explored: choice.Explored,
			Measured: truth(dopeml.Defaults()[choice.Chosen], model, 0.03*random.NormFloat64())}); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("mean regret of the first 30 %.3f, of the last 50 %.3f", early, late)
	if late > 0.5*early {
		t.Errorf("mean regret of the first 30 %.3f, of the last 50 %.3f", early, late)
	}
}

func TestQuestionsThatCannotBeAnswered(t *testing.T) {
	c := taught(t, dopeml.Settings{}, someRuns(rand.New(rand.NewPCG(1, 1)), 8))
	fast := by(map[dopeml.Criterion]float64{"latency": 1}, nil)
	for _, one := range []struct {
		name    string
		ask     func() error
		message string
	}{
		{"no priority", func() error { _, err := c.Choose(dopeml.Model{}, dopeml.Request{}, dopeml.Wishes{}); return err }, "at least one criterion"},
		{"an unknown priority", func() error {
			_, err := c.Choose(dopeml.Model{}, dopeml.Request{}, by(map[dopeml.Criterion]float64{"beauty": 1}, nil))
			return err
		}, `no criterion "beauty"`},
		{"a negative rate", func() error {
			_, err := c.Choose(dopeml.Model{}, dopeml.Request{Rate: -1, Batch: 1}, fast)
			return err
		}, "rate"},
		{"no number", func() error {
			_, err := c.Choose(dopeml.Model{Operations: math.NaN()}, dopeml.Request{}, fast)
			return err
		}, "operations"},
		{"nothing learned", func() error {
			empty, _ := dopeml.New(dopeml.Defaults(), dopeml.Settings{})
			_, err := empty.Choose(dopeml.Model{}, dopeml.Request{}, fast)
			return err
		}, "no runs to learn from"},
		{"a run of another backend", func() error {
			run := someRuns(rand.New(rand.NewPCG(1, 1)), 1)[0]
			run.Backend = "B9"
			return c.Learn(run)
		}, `the backend "B9"`},
		{"an unknown exploration", func() error {
			_, err := dopeml.New(dopeml.Defaults(), dopeml.Settings{Exploration: "wild"})
			return err
		}, `no exploration "wild"`},
		{"two backends of one name", func() error {
			_, err := dopeml.New(append(dopeml.Defaults(), dopeml.Defaults()...), dopeml.Settings{})
			return err
		}, "another backend has this name"},
	} {
		t.Run(one.name, func(t *testing.T) {
			if err := one.ask(); err == nil || !strings.Contains(err.Error(), one.message) {
				t.Errorf("got %v, want %q", err, one.message)
			}
		})
	}
}

func ExampleChooser_Choose() {
	chooser, _ := dopeml.New(dopeml.Defaults(), dopeml.Settings{Exploration: dopeml.Optimism})
	choice, _ := chooser.Choose(dopeml.Model{Operations: 1e9}, dopeml.Request{Batch: 1},
		dopeml.Wishes{Weights: map[dopeml.Criterion]float64{dopeml.ByLatency: 1}})
	fmt.Println(choice.Backend, choice.Explored)
	// Output: B1 true
}
