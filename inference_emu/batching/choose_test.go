package batching_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/batching"
)

// a curve with a fixed cost, as of a model whose weights are read once a batch.
func fixedCost(t testing.TB, joules bool) batching.Server {
	points := []batching.Point{{Batch: 1, Seconds: 0.0060}, {Batch: 2, Seconds: 0.0068}, {Batch: 4, Seconds: 0.0082}, {Batch: 8, Seconds: 0.0112}, {Batch: 16, Seconds: 0.0170}, {Batch: 32, Seconds: 0.0290}}
	if joules {
		for i := range points {
			points[i].Joules = 10 * points[i].Seconds
		}
	}
	return batching.Server{Curve: curveOf(t, points...)}
}

func chosen(t *testing.T, server batching.Server, goal batching.Goal, run batching.Run) batching.Choice {
	t.Helper()
	choice, err := batching.Choose(server, goal, run)
	if err != nil {
		t.Fatal(err)
	}
	return choice
}

func TestChosenPolicyBeatsSingleAndEveryFixedBatch(t *testing.T) {
	server := fixedCost(t, false)
	for _, rate := range []float64{20, 80, 150, 400, 900} {
		run := batching.Run{Arrivals: batching.Poisson{Rate: rate}, Requests: 30_000, Seed: 4}
		choice := chosen(t, server, batching.Goal{Objective: batching.MeanResponse}, run)
		if choice.Result.Overloaded {
			t.Fatalf("the policy chosen at %g/s does not sustain it: %s", rate, choice.Result.Policy)
		}
		policies := []batching.Policy{batching.Single(), batching.Greedy(32)}
		for batch := 2; batch <= 32; batch++ {
			policies = append(policies, batching.Fixed(batch))
		}
		others, err := batching.Compare(server, policies, run)
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range others {
			if !other.Overloaded && other.Mean.Value < choice.Result.Mean.Value*0.99 {
				t.Errorf("at %g/s %s has a mean of %g s, the chosen %s %g s", rate, other.Policy, other.Mean.Value, choice.Result.Policy, choice.Result.Mean.Value)
			}
		}
		if rate > 1/0.006 && choice.Result.Policy.MaxBatch == 1 {
			t.Errorf("single samples were chosen at %g/s, which they do not sustain", rate)
		}
	}
}

func TestWithoutAFixedCostItSaysNotToBatch(t *testing.T) {
	linear := batching.Server{Curve: curveOf(t, batching.Point{Batch: 1, Seconds: 0.001}, batching.Point{Batch: 64, Seconds: 0.064})}
	for _, objective := range []batching.Objective{batching.MeanResponse, batching.P99} {
		choice := chosen(t, linear, batching.Goal{Objective: objective}, batching.Run{Arrivals: batching.Poisson{Rate: 900}, Requests: 20_000})
		if choice.Result.Policy != batching.Single() || choice.Tried != 1 || !strings.HasPrefix(choice.Why, "do not batch") {
			t.Errorf("%s: chose %s of %d: %s", objective, choice.Result.Policy, choice.Tried, choice.Why)
		}
	}
	// A small CNN of which batches are hardly cheaper: at a rate that single
	// samples sustain easily, the search finds nothing better.
	cnn := batching.Server{Curve: curveOf(t, batching.Point{Batch: 1, Seconds: 0.00024}, batching.Point{Batch: 8, Seconds: 0.00184}, batching.Point{Batch: 64, Seconds: 0.0146})}
	choice := chosen(t, cnn, batching.Goal{Objective: batching.MeanResponse}, batching.Run{Arrivals: batching.Poisson{Rate: 2000}, Requests: 50_000})
	if choice.Result.Policy != batching.Single() || !strings.HasPrefix(choice.Why, "do not batch") {
		t.Errorf("the CNN: chose %s: %s", choice.Result.Policy, choice.Why)
	}
	exact, err := batching.Expect(cnn, choice.Result.Policy, 2000)
	if err != nil || math.Abs(choice.Result.Mean.Value-exact.MeanResponse) > 0.02*exact.MeanResponse {
		t.Errorf("mean %g s, exactly %g s, %v", choice.Result.Mean.Value, exact.MeanResponse, err)
	}
}

// Waiting pays where a batch costs as much as a sample and instances would
// otherwise leave with one request just before the next ones come.
func TestWaitingIsChosenWhereItPays(t *testing.T) {
	server := batching.Server{Curve: curveOf(t, batching.Point{Batch: 1, Seconds: 0.1, Joules: 1}, batching.Point{Batch: 8, Seconds: 0.1, Joules: 1})}
	run := batching.Run{Arrivals: periodic(0.07, 1, 20_000), Seed: 2}
	choice := chosen(t, server, batching.Goal{Objective: batching.Joules, LatencyBound: 0.3}, run)
	policy := choice.Result.Policy
	if !choice.MeetsBound || choice.Result.P99.Value > 0.3 || policy.WaitSeconds == 0 && !policy.UntilFull {
		t.Errorf("chose %s (p99 %g s, meets %v), expected one that waits", policy, choice.Result.P99.Value, choice.MeetsBound)
	}
	if choice.Result.JoulesPerSample > 1.001/3 {
		t.Errorf("%g J a sample; 3 samples fit into a batch within the bound", choice.Result.JoulesPerSample)
	}
}

func TestBoundsAreKeptOrSaidToBeBroken(t *testing.T) {
	server := fixedCost(t, true)
	run := batching.Run{Arrivals: batching.Poisson{Rate: 150}, Requests: 60_000, Seed: 9}
	free := chosen(t, server, batching.Goal{Objective: batching.Joules}, run)
	bound := chosen(t, server, batching.Goal{Objective: batching.Joules, LatencyBound: 0.05}, run)
	if full := 0.29 / 32; free.Result.Policy.MaxBatch != 32 || free.Result.JoulesPerSample > full*1.005 {
		t.Errorf("the least joules a sample are those of full batches of 32, %g, not of %s, %g", full, free.Result.Policy, free.Result.JoulesPerSample)
	}
	if !bound.MeetsBound || bound.Result.P99.Value > 0.052 || bound.Result.JoulesPerSample >= 0.06 || bound.Result.JoulesPerSample <= free.Result.JoulesPerSample {
		t.Errorf("within 50 ms: %s with p99 %g s, %g J a sample", bound.Result.Policy, bound.Result.P99.Value, bound.Result.JoulesPerSample)
	}
	broken := chosen(t, server, batching.Goal{Objective: batching.MeanResponse, LatencyBound: 0.001}, run)
	if broken.MeetsBound || !strings.Contains(broken.Why, "no policy") {
		t.Errorf("1 ms cannot be met, but: %+v", broken)
	}
}

// Whatever waits is taken where single samples do not keep up, and also where they do
// while bursts last: no other size does better then.
func TestWhatWaitsIsTakenInBursts(t *testing.T) {
	server := fixedCost(t, false)
	var times []float64
	for burst := range 300 {
		for i := range 100 {
			times = append(times, float64(burst)+float64(i)*0.001)
		}
	}
	run := batching.Run{Arrivals: batching.Recorded{Seconds: times}}
	choice := chosen(t, server, batching.Goal{Objective: batching.MeanResponse}, run)
	if choice.Result.Policy != batching.Greedy(32) || choice.Tried != 2 {
		t.Fatalf("100 requests in a tenth of each second: %s of %d", choice.Result.Policy, choice.Tried)
	}
	policies := []batching.Policy{batching.Single()}
	for size := 2; size < 32; size++ {
		policies = append(policies, batching.Greedy(size), batching.Policy{MaxBatch: size, WaitSeconds: 0.005})
	}
	others, err := batching.Compare(server, policies, run)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range others {
		if other.Mean.Value < 0.99*choice.Result.Mean.Value {
			t.Errorf("%s has a mean of %g s, the chosen %g s", other.Policy, other.Mean.Value, choice.Result.Mean.Value)
		}
	}
}

func TestChoiceIsTheSameForTheSameSeed(t *testing.T) {
	server := fixedCost(t, false)
	run := batching.Run{Arrivals: batching.Poisson{Rate: 120}, Requests: 40_000, Seed: 12}
	goal := batching.Goal{Objective: batching.P99}
	first, second := chosen(t, server, goal, run), chosen(t, server, goal, run)
	if !reflect.DeepEqual(first, second) {
		t.Errorf("two answers for one seed:\n%+v\n%+v", first, second)
	}
}

func TestOverloadHasNoPolicy(t *testing.T) {
	server := fixedCost(t, false)
	choice := chosen(t, server, batching.Goal{Objective: batching.MeanResponse}, batching.Run{Arrivals: batching.Poisson{Rate: 2000}, Requests: 5000})
	if !choice.Result.Overloaded || choice.MeetsBound || !strings.Contains(choice.Why, "1103.45") {
		t.Errorf("2000/s on a server of 1103.4/s: %+v", choice)
	}
}

func TestFaultsOfRequestsForAChoice(t *testing.T) {
	server := fixedCost(t, false)
	poisson := batching.Run{Arrivals: batching.Poisson{Rate: 1}, Requests: 100}
	for name, one := range map[string]struct {
		server batching.Server
		goal   batching.Goal
		run    batching.Run
		want   string
	}{
		"no curve":          {batching.Server{}, batching.Goal{Objective: batching.MeanResponse}, poisson, "server.curve"},
		"objective":         {server, batching.Goal{Objective: "speed"}, poisson, "goal.objective: must be one of"},
		"no joules":         {server, batching.Goal{Objective: batching.Joules}, poisson, "the curve has no joules"},
		"negative bound":    {server, batching.Goal{Objective: batching.P99, LatencyBound: -1}, poisson, "goal.latency_bound"},
		"no arrivals":       {server, batching.Goal{Objective: batching.P99}, batching.Run{}, "no arrivals"},
		"no rate":           {server, batching.Goal{Objective: batching.P99}, batching.Run{Arrivals: batching.Poisson{}}, "poisson.rate"},
		"unsorted times":    {server, batching.Goal{Objective: batching.P99}, batching.Run{Arrivals: batching.Recorded{Seconds: []float64{1, 3, 2}}}, "recorded.seconds[2]"},
		"too many requests": {server, batching.Goal{Objective: batching.P99}, batching.Run{Arrivals: batching.Poisson{Rate: 1}, Requests: 1 << 30}, "run.requests"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := batching.Choose(one.server, one.goal, one.run); err == nil || !strings.Contains(err.Error(), one.want) {
				t.Errorf("got %v, want it to say %q", err, one.want)
			}
		})
	}
	if _, err := batching.Simulate(server, batching.Greedy(33), poisson); err == nil || !strings.Contains(err.Error(), "policy.max_batch") {
		t.Errorf("a batch beyond the curve: %v", err)
	}
}
