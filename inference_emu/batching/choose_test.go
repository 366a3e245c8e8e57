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

// against are policies against the arrivals that the result of a choice is of.
func against(server batching.Server, policies []batching.Policy, run batching.Run) (results []batching.Result) {
	run.Seed = ^run.Seed
	for _, policy := range policies {
		results = append(results, batching.Simulate(server, policy, run))
	}
	return results
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
		for _, other := range against(server, policies, run) {
			if !other.Overloaded && other.Mean < choice.Result.Mean*0.99 {
				t.Errorf("at %g/s %s has a mean of %g s, the chosen %s %g s", rate, other.Policy, other.Mean, choice.Result.Policy, choice.Result.Mean)
			}
		}
		if rate > 1/0.006 && choice.Result.Policy.MaxBatch == 1 {
			t.Errorf("single samples were chosen at %g/s, which they do not sustain", rate)
		}
	}
}

func TestWithoutAFixedCostItDoesNotBatch(t *testing.T) {
	linear := batching.Server{Curve: curveOf(t, batching.Point{Batch: 1, Seconds: 0.001}, batching.Point{Batch: 64, Seconds: 0.064})}
	for _, objective := range []batching.Objective{batching.MeanResponse, batching.P99} {
		choice := chosen(t, linear, batching.Goal{Objective: objective}, batching.Run{Arrivals: batching.Poisson{Rate: 900}, Requests: 20_000})
		if choice.Result.Policy != batching.Single() {
			t.Errorf("%s: chose %s", objective, choice.Result.Policy)
		}
	}
	// A small CNN of which batches are hardly cheaper: at a rate that single
	// samples sustain easily, the search finds nothing better.
	cnn := batching.Server{Curve: curveOf(t, batching.Point{Batch: 1, Seconds: 0.00024}, batching.Point{Batch: 8, Seconds: 0.00184}, batching.Point{Batch: 64, Seconds: 0.0146})}
	choice := chosen(t, cnn, batching.Goal{Objective: batching.MeanResponse}, batching.Run{Arrivals: batching.Poisson{Rate: 2000}, Requests: 50_000})
	if choice.Result.Policy != batching.Single() {
		t.Errorf("the CNN: chose %s", choice.Result.Policy)
	}
	exact, err := batching.Expect(cnn, choice.Result.Policy, 2000)
	if err != nil || math.Abs(choice.Result.Mean-exact.MeanResponse) > 0.02*exact.MeanResponse {
		t.Errorf("mean %g s, exactly %g s, %v", choice.Result.Mean, exact.MeanResponse, err)
	}
}

// Waiting pays where a batch costs as much as a sample and batches would
// otherwise leave with one request just before the next ones come.
func TestWaitingIsChosenWhereItPays(t *testing.T) {
	server := batching.Server{Curve: curveOf(t, batching.Point{Batch: 1, Seconds: 0.1, Joules: 1}, batching.Point{Batch: 8, Seconds: 0.1, Joules: 1})}
	run := batching.Run{Arrivals: periodic(0.07, 1, 20_000), Seed: 2}
	choice := chosen(t, server, batching.Goal{Objective: batching.Joules, LatencyBound: 0.3}, run)
	policy := choice.Result.Policy
	if !choice.MeetsBound || choice.Result.P99 > 0.3 || policy.WaitSeconds == 0 && !policy.UntilFull {
		t.Errorf("chose %s (p99 %g s, meets %v), expected one that waits", policy, choice.Result.P99, choice.MeetsBound)
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
	if !bound.MeetsBound || bound.Result.P99 > 0.052 || bound.Result.JoulesPerSample >= 0.06 || bound.Result.JoulesPerSample <= free.Result.JoulesPerSample {
		t.Errorf("within 50 ms: %s with p99 %g s, %g J a sample", bound.Result.Policy, bound.Result.P99, bound.Result.JoulesPerSample)
	}
	broken := chosen(t, server, batching.Goal{Objective: batching.MeanResponse, LatencyBound: 0.001}, run)
	if broken.MeetsBound {
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
	run := batching.Run{Arrivals: recorded(times)}
	choice := chosen(t, server, batching.Goal{Objective: batching.MeanResponse}, run)
	if choice.Result.Policy != batching.Greedy(32) {
		t.Fatalf("100 requests in a tenth of each second: %s", choice.Result.Policy)
	}
	policies := []batching.Policy{batching.Single()}
	for size := 2; size < 32; size++ {
		policies = append(policies, batching.Greedy(size), batching.Policy{MaxBatch: size, WaitSeconds: 0.005})
	}
	for _, other := range against(server, policies, run) {
		if other.Mean < 0.99*choice.Result.Mean {
			t.Errorf("%s has a mean of %g s, the chosen %g s", other.Policy, other.Mean, choice.Result.Mean)
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
	if !choice.Result.Overloaded || choice.MeetsBound || choice.Result.Policy != batching.Greedy(32) {
		t.Errorf("2000/s on a server of 1103.4/s: %+v", choice)
	}
}

func TestEnergyThatIsNotKnownIsNoObjective(t *testing.T) {
	server := fixedCost(t, false)
	if _, err := batching.Choose(server, batching.Goal{Objective: batching.Joules}, batching.Run{Arrivals: batching.Poisson{Rate: 1}, Requests: 100}); err == nil || !strings.Contains(err.Error(), "energy of a batch is not known") {
		t.Errorf("a policy: %v", err)
	}
	if _, err := batching.BestSplit(server.Curve, 8, batching.Joules); err == nil {
		t.Error("a split has an energy that is not known")
	}
}
