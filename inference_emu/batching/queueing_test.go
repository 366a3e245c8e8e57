package batching_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/batching"
)

func curveOf(t interface {
	Helper()
	Fatal(...any)
}, points ...batching.Point) batching.Curve {
	t.Helper()
	curve, err := batching.NewCurve(points)
	if err != nil {
		t.Fatal(err)
	}
	return curve
}

// within fails unless the values differ by less than the share of the second.
func within(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if !(math.Abs(got-want) <= share*math.Abs(want)) {
		t.Errorf("%s is %g, want %g within %g %%", what, got, want, share*100)
	}
}

func simulated(t *testing.T, server batching.Server, policy batching.Policy, run batching.Run) batching.Result {
	t.Helper()
	return batching.Simulate(server, policy, run)
}

// The mean response time of M/G/1 by the formula of Pollaczek and Khinchine:
// M/D/1 without deviation, M/M/1 with a deviation as large as the mean.
func TestSingleSamplesFollowPollaczekKhinchine(t *testing.T) {
	for _, deviation := range []float64{0, 0.005, 0.01, 0.02} {
		for _, utilization := range []float64{0.3, 0.7, 0.9} {
			t.Run(fmt.Sprintf("deviation %g utilization %g", deviation, utilization), func(t *testing.T) {
				const seconds = 0.01
				rate := utilization / seconds
				want := seconds + rate*(seconds*seconds+deviation*deviation)/2/(1-utilization)
				server := batching.Server{Curve: curveOf(t, batching.Point{Batch: 1, Seconds: seconds, Deviation: deviation})}
				exact, err := batching.Expect(server, batching.Single(), rate)
				if err != nil {
					t.Fatal(err)
				}
				within(t, "exact mean response", exact.MeanResponse, want, 1e-6)
				within(t, "exact utilization", exact.Utilization, utilization, 1e-6)
				result := simulated(t, server, batching.Single(), batching.Run{Arrivals: batching.Poisson{Rate: rate}, Requests: 150_000, Seed: 3})
				if math.Abs(result.Mean-want) > 2*result.HalfWidth {
					t.Errorf("simulated mean response %g ± %g, theory says %g", result.Mean, result.HalfWidth, want)
				}
				within(t, "simulated mean response", result.Mean, want, 0.12)
				within(t, "simulated utilization", result.Utilization, utilization, 0.01)
			})
		}
	}
}

// In M/M/1 response times are exponential, so the percentile is known.
func TestThePercentileOfExponentialService(t *testing.T) {
	server := batching.Server{Curve: curveOf(t, batching.Point{Batch: 1, Seconds: 1, Deviation: 1})}
	result := simulated(t, server, batching.Single(), batching.Run{Arrivals: batching.Poisson{Rate: 0.5}, Requests: 1_000_000, Seed: 8})
	within(t, "percentile 99", result.P99, -2*math.Log(1-0.99), 0.04)
}

var bulk = []batching.Point{{Batch: 1, Seconds: 0.010}, {Batch: 4, Seconds: 0.016}, {Batch: 16, Seconds: 0.040}}

func TestBulkServiceFollowsItsMarkovChain(t *testing.T) {
	noisy := []batching.Point{{Batch: 1, Seconds: 0.010, Deviation: 0.004}, {Batch: 16, Seconds: 0.040, Deviation: 0.010}}
	for _, points := range [][]batching.Point{bulk, noisy} {
		server := batching.Server{Curve: curveOf(t, points...)}
		for _, policy := range []batching.Policy{batching.Greedy(4), batching.Greedy(16), batching.Fixed(3), batching.Fixed(16)} {
			for _, share := range []float64{0.2, 0.6, 0.9} {
				t.Run(fmt.Sprintf("%s deviation %g at %g", policy, points[0].Deviation, share), func(t *testing.T) {
					rate := share * server.Sustains(policy)
					exact, err := batching.Expect(server, policy, rate)
					if err != nil {
						t.Fatal(err)
					}
					result := simulated(t, server, policy, batching.Run{Arrivals: batching.Poisson{Rate: rate}, Requests: 150_000, Seed: 11})
					if math.Abs(result.Mean-exact.MeanResponse) > 2.5*result.HalfWidth {
						t.Errorf("simulated mean response %g ± %g, exact %g", result.Mean, result.HalfWidth, exact.MeanResponse)
					}
					within(t, "simulated mean response", result.Mean, exact.MeanResponse, 0.05)
					within(t, "simulated mean batch", result.MeanBatch, exact.MeanBatch, 0.02)
					within(t, "simulated utilization", result.Utilization, exact.Utilization, 0.02)
				})
			}
		}
	}
}

// Full batches of two arrive with Erlang-2 gaps; served exponentially that is
// E2/M/1, whose waiting time has a closed form.
func TestFullBatchesOfTwoFollowErlangArrivals(t *testing.T) {
	const seconds, rate = 1.0, 1.2
	server := batching.Server{Curve: curveOf(t, batching.Point{Batch: 1, Seconds: seconds, Deviation: seconds}, batching.Point{Batch: 2, Seconds: seconds, Deviation: seconds})}
	root := 0.5 // of s = (rate / (rate + (1-s)/seconds))^2
	for range 200 {
		root = math.Pow(rate/(rate+(1-root)/seconds), 2)
	}
	// A request waits for its partner half of the time one gap, then as E2/M/1.
	want := 0.5/rate + seconds/(1-root)
	exact, err := batching.Expect(server, batching.Fixed(2), rate)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "exact mean response", exact.MeanResponse, want, 1e-6)
}

func TestDeterministicQueueIsExact(t *testing.T) {
	server := batching.Server{Curve: curveOf(t, batching.Point{Batch: 1, Seconds: 0.25, Joules: 2}, batching.Point{Batch: 4, Seconds: 0.5, Joules: 3}), IdleWatts: 1}
	run := batching.Run{Arrivals: periodic(1, 4, 400)}
	single := simulated(t, server, batching.Single(), run)
	within(t, "mean of single samples", single.Mean, (0.25+0.5+0.75+1)/4, 1e-12)
	within(t, "utilization of single samples", single.Utilization, 1, 1e-12)
	within(t, "joules of single samples", single.JoulesPerSample, 2, 1e-12)
	batch := simulated(t, server, batching.Greedy(4), run)
	within(t, "mean of batches of 4", batch.Mean, 0.5, 1e-12)
	within(t, "p99 of batches of 4", batch.P99, 0.5, 1e-12)
	within(t, "joules of batches of 4", batch.JoulesPerSample, (100*3+(99.5-50)*1)/400, 1e-12)
	run.Arrivals = periodic(0.99, 4, 400)
	if result := simulated(t, server, batching.Single(), run); !result.Overloaded {
		t.Errorf("4 samples of 0.25 s in every 0.99 s were said to be sustained: %+v", result)
	}
}

func TestOverloadIsToldWithTheRateThatHolds(t *testing.T) {
	server := batching.Server{Curve: curveOf(t, bulk...)}
	run := batching.Run{Arrivals: batching.Poisson{Rate: 101}, Requests: 20_000, Seed: 1}
	result := simulated(t, server, batching.Single(), run)
	if !result.Overloaded || math.Abs(result.SustainsPerSecond-100) > 1e-9 {
		t.Errorf("overloaded %v, sustains %g; want true and 100", result.Overloaded, result.SustainsPerSecond)
	}
	if result := simulated(t, server, batching.Greedy(16), run); result.Overloaded {
		t.Error("16 samples in 40 ms were said not to sustain 101/s")
	}
	if _, err := batching.Expect(server, batching.Single(), 100); err == nil {
		t.Error("no error from theory at the rate where the queue grows for ever")
	}
	if got := server.Capacity(); math.Abs(got-400) > 1e-9 {
		t.Errorf("capacity %g, want 400", got)
	}
}
