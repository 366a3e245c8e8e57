package tuning_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/inference_emu/tuning"
	"github.com/tandem-tune/tandem/internal/problem"
)

// board is a device whose memory holds batches of up to 27, on which
// the fastest configuration is not the most economical: power grows with the
// cube of the clock and with the cores, and the cores share a part of the work.
func board(c tuning.Configuration) (tuning.Outcome, error) {
	batch, cores, clock := float64(c.BatchSize), float64(max(c.Cores, 1)), c.CPUHertz/1e9
	seconds := 0.002 + batch*0.010*(0.2+0.8/cores)/clock
	watts := 1.5 + 0.4*cores*clock*clock*clock
	memory := int64(50<<20 + c.BatchSize*20<<20)
	if memory > 600<<20 {
		return tuning.Outcome{}, errors.New("out of memory")
	}
	return tuning.Outcome{LatencySeconds: seconds, LatencySecondsHigh: 1.2 * seconds, LatencySecondsLow: 0.8 * seconds, Joules: seconds * watts, MemoryBytes: memory}, nil
}

func space() tuning.Space {
	return tuning.Space{BatchSizes: tuning.Range(1, 32), Cores: []int{1, 2, 3, 4}, CPUHertz: []float64{0.6e9, 0.9e9, 1.2e9, 1.5e9}}
}

func search(t *testing.T, settings tuning.Settings, evaluate tuning.Evaluate) tuning.Result {
	t.Helper()
	if settings.Space.BatchSizes == nil {
		settings.Space = space()
	}
	result, err := tuning.Search(settings, evaluate)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func constraint(t *testing.T, text string) tuning.Constraint {
	t.Helper()
	c, err := tuning.ParseConstraint(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEachObjectiveHasItsOwnBest(t *testing.T) {
	want := map[tuning.Metric]tuning.Configuration{
		tuning.Latency:    {BatchSize: 1, Cores: 4, CPUHertz: 1.5e9},
		tuning.Throughput: {BatchSize: 27, Cores: 4, CPUHertz: 1.5e9},
		tuning.Energy:     {BatchSize: 27, Cores: 4, CPUHertz: 0.9e9},
		tuning.Memory:     {BatchSize: 1, Cores: 1, CPUHertz: 0.6e9},
	}
	for metric, configuration := range want {
		result := search(t, tuning.Settings{Objective: metric}, board)
		if result.Best == nil || result.Best.Configuration != configuration || result.Evaluations != 512 {
			t.Errorf("%s: %+v of %d, want %+v", metric, result.Best, result.Evaluations, configuration)
		}
	}
}

func TestConstraintsAreKept(t *testing.T) {
	limit := constraint(t, "latency_ms <= 50")
	result := search(t, tuning.Settings{Objective: tuning.Energy, Constraints: []tuning.Constraint{limit, constraint(t, "samples_per_second >= 100")}}, board)
	if result.Best == nil || result.Best.Outcome.LatencySeconds > 0.05 || float64(result.Best.Configuration.BatchSize)/result.Best.Outcome.LatencySeconds < 100 {
		t.Fatalf("%+v", result.Best)
	}
	for _, e := range result.Tried {
		better := e.Outcome.Joules/float64(e.Configuration.BatchSize) < result.Best.Outcome.Joules/float64(result.Best.Configuration.BatchSize)
		if e.Feasible() && better {
			t.Errorf("%+v is better than the best", e)
		}
	}
	if worst := result.Best.Outcome.LatencySecondsHigh; worst > 0.05 != (len(result.Doubtful) == 1 && result.Doubtful[0] == "latency_ms <= 50") {
		t.Errorf("a band up to %v: doubtful are %v", worst, result.Doubtful)
	}
}

func TestWhatCannotBeKeptToIsNamed(t *testing.T) {
	alone := search(t, tuning.Settings{Objective: tuning.Energy, Constraints: []tuning.Constraint{constraint(t, "latency_ms <= 2"), constraint(t, "memory_mib <= 500")}}, board)
	if alone.Best != nil || alone.Nearest == nil || len(alone.Unmet) != 1 || !strings.Contains(alone.Unmet[0], "latency_ms <= 2: nothing that was tried keeps to it; the nearest has latency_ms 4") {
		t.Errorf("%+v %v", alone.Nearest, alone.Unmet)
	}
	if c := alone.Nearest.Configuration; c.BatchSize != 1 || c.Cores != 4 || c.CPUHertz != 1.5e9 {
		t.Errorf("the nearest is %+v", c)
	}
	together := search(t, tuning.Settings{Objective: tuning.Energy, Constraints: []tuning.Constraint{constraint(t, "latency_ms <= 10"), constraint(t, "samples_per_second >= 350")}}, board)
	if together.Best != nil || len(together.Unmet) != 1 || !strings.Contains(together.Unmet[0], "by none all of them together") {
		t.Errorf("%v", together.Unmet)
	}
	broken := search(t, tuning.Settings{Objective: tuning.Energy}, func(tuning.Configuration) (tuning.Outcome, error) {
		return tuning.Outcome{}, errors.New("the model is broken")
	})
	if broken.Best != nil || broken.Nearest != nil || broken.Failures != broken.Evaluations || !strings.Contains(broken.Unmet[0], "the model is broken") {
		t.Errorf("%+v", broken)
	}
}

func TestFailuresAreInfeasibleAndNoMore(t *testing.T) {
	result := search(t, tuning.Settings{Objective: tuning.Throughput}, board)
	if result.Failures == 0 || result.Best == nil {
		t.Fatalf("%d failures, best %+v", result.Failures, result.Best)
	}
	for name, outcome := range map[string]tuning.Outcome{
		"no latency": {Joules: 1}, "not a number": {LatencySeconds: math.NaN()}, "endless": {LatencySeconds: math.Inf(1), Joules: 1},
		"negative": {LatencySeconds: 1, Joules: -1}, "no joules": {LatencySeconds: 1},
	} {
		r := search(t, tuning.Settings{Space: tuning.Space{BatchSizes: []int{1}}, Objective: tuning.Energy}, func(tuning.Configuration) (tuning.Outcome, error) { return outcome, nil })
		if r.Best != nil || r.Failures != 1 || r.Tried[0].Failure == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestTheFrontIsWhatNothingBeats(t *testing.T) {
	result := search(t, tuning.Settings{Objective: tuning.Latency, Front: []tuning.Metric{tuning.Latency, tuning.Energy, tuning.Throughput}, Constraints: []tuning.Constraint{constraint(t, "latency_ms <= 100")}}, board)
	values := func(e tuning.Evaluation) [3]float64 {
		b := float64(e.Configuration.BatchSize)
		return [3]float64{e.Outcome.LatencySeconds, e.Outcome.Joules / b, -b / e.Outcome.LatencySeconds}
	}
	beaten := func(e tuning.Evaluation) bool {
		for _, other := range result.Tried {
			a, b := values(other), values(e)
			if other.Feasible() && a != b && a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2] {
				return true
			}
		}
		return false
	}
	on := map[tuning.Configuration]bool{}
	for i, e := range result.Front {
		on[e.Configuration] = true
		if i > 0 && result.Front[i-1].Outcome.LatencySeconds > e.Outcome.LatencySeconds {
			t.Error("the front is not sorted by latency")
		}
	}
	for _, e := range result.Tried {
		if e.Feasible() && beaten(e) == on[e.Configuration] {
			t.Errorf("%+v: on the front %v, beaten %v", e.Configuration, on[e.Configuration], beaten(e))
		}
	}
	if len(on) < 3 {
		t.Errorf("the front has %d configurations", len(on))
	}
}

// A space with too many configurations is thinned out, but keeps its ends.
func TestLargeSpacesAreThinnedOut(t *testing.T) {
	large := tuning.Space{BatchSizes: tuning.Range(1, 100), Cores: tuning.Range(1, 64)}
	for i := range 40 {
		large.CPUHertz = append(large.CPUHertz, 0.5e9+float64(i)*25e6)
	}
	tried := map[tuning.Configuration]bool{}
	result := search(t, tuning.Settings{Space: large, Objective: tuning.Energy}, func(c tuning.Configuration) (tuning.Outcome, error) {
		tried[c] = true
		return board(c)
	})
	if len(tried) > tuning.MaxConfigurations || len(tried) < tuning.MaxConfigurations/3 || result.Evaluations != len(tried) {
		t.Errorf("%d configurations were tried, %d said", len(tried), result.Evaluations)
	}
	for _, c := range []tuning.Configuration{{BatchSize: 1, Cores: 1, CPUHertz: 0.5e9}, {BatchSize: 100, Cores: 64, CPUHertz: 0.5e9 + 39*25e6}} {
		if !tried[c] {
			t.Errorf("%+v was not tried", c)
		}
	}
	if again := search(t, tuning.Settings{Space: large, Objective: tuning.Energy}, board); !reflect.DeepEqual(result, again) {
		t.Error("the same settings give another answer")
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	_, err := tuning.Search(tuning.Settings{
		Space:     tuning.Space{BatchSizes: []int{2, 1}, Cores: []int{0}, CPUHertz: []float64{math.NaN()}},
		Objective: "speed",
		Front:     []tuning.Metric{"beauty"}, Constraints: []tuning.Constraint{{Metric: tuning.Latency, AtLeast: true, Bound: 1}},
	}, board)
	if !problem.Is(err, problem.Invalid) {
		t.Fatal(err)
	}
	for _, want := range []string{"space.batch_sizes[1]: must be larger than the one before it (got 1)", "space.cores[0]: must be a number above 0", "space.cpu_hertz[0]",
		"objective: must be one of latency_seconds",
		"front[0]: must be one of", "constraints[0]: must bound the metric from its bad side"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
}

func TestParseConstraint(t *testing.T) {
	for text, want := range map[string]tuning.Constraint{
		"latency_ms <= 50":           {Metric: tuning.Latency, Bound: 0.05},
		" latency_seconds<=1e-2 ":    {Metric: tuning.Latency, Bound: 0.01},
		"memory_mib <= 512":          {Metric: tuning.Memory, Bound: 512 << 20},
		"memory_bytes <= 1000":       {Metric: tuning.Memory, Bound: 1000},
		"samples_per_second >= 12.5": {Metric: tuning.Throughput, AtLeast: true, Bound: 12.5},
		"joules_per_sample <= 0.2":   {Metric: tuning.Energy, Bound: 0.2}, "millijoules_per_sample <= 200": {Metric: tuning.Energy, Bound: 0.2},
	} {
		got, err := tuning.ParseConstraint(text)
		want.Text = strings.TrimSpace(text)
		if err != nil || math.Abs(got.Bound-want.Bound) > 1e-12*want.Bound {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if got.Bound = want.Bound; got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"": "must be a metric, <= or >=, and a number", "latency_ms": "must be a metric", "latency_ms < 50": "must be a metric", "latency_ms <= -1": "must be a metric",
		"latency_ms <= 50 ms": "must be a metric", "latency_ms <= NaN": "must be a metric", "speed <= 5": "write one of latency_seconds, latency_ms",
		"latency_ms <= 0": "needs a number above 0", "latency_ms <= 1e999": "needs a number above 0", "latency_ms >= 50": "bounds latency_ms from its good side: write <=",
		"samples_per_second <= 5": "write >=", strings.Repeat("x", 10_000): "must be a metric",
	} {
		if _, err := tuning.ParseConstraint(text); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// The best of an exhaustive search is never worse than anything that was tried.
func TestBestIsBest(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		outcomes := map[tuning.Configuration]tuning.Outcome{}
		evaluate := func(c tuning.Configuration) (tuning.Outcome, error) {
			if o, ok := outcomes[c]; ok {
				return o, nil
			}
			if rapid.Bool().Draw(r, "fails") {
				return tuning.Outcome{}, fmt.Errorf("no")
			}
			o := tuning.Outcome{LatencySeconds: rapid.Float64Range(1e-6, 10).Draw(r, "seconds"), Joules: rapid.Float64Range(1e-6, 10).Draw(r, "joules")}
			outcomes[c] = o
			return o, nil
		}
		limit := tuning.Constraint{Metric: tuning.Latency, Bound: rapid.Float64Range(0.1, 10).Draw(r, "limit")}
		result, err := tuning.Search(tuning.Settings{Space: tuning.Space{BatchSizes: []int{1, 2, 4}, Cores: []int{1, 2}}, Objective: tuning.Energy, Constraints: []tuning.Constraint{limit}}, evaluate)
		if err != nil {
			r.Fatal(err)
		}
		for c, o := range outcomes {
			if o.LatencySeconds > limit.Bound {
				continue
			}
			if result.Best == nil || o.Joules/float64(c.BatchSize) < result.Best.Outcome.Joules/float64(result.Best.Configuration.BatchSize)*(1-1e-12) {
				r.Fatalf("%+v is better than %+v", o, result.Best)
			}
		}
		if result.Best != nil && result.Best.Outcome.LatencySeconds > limit.Bound {
			r.Fatal("the best misses the constraint")
		}
	})
}
