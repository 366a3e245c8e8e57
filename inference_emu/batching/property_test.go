package batching_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/inference_emu/batching"
)

func drawnCurve(t *rapid.T) batching.Curve {
	points := []batching.Point{{Batch: 1, Seconds: rapid.Float64Range(0.001, 0.1).Draw(t, "seconds of 1")}}
	varies := rapid.Bool().Draw(t, "varies")
	for n := rapid.IntRange(0, 4).Draw(t, "more points"); n > 0; n-- {
		last := points[len(points)-1]
		batch := last.Batch + rapid.IntRange(1, 12).Draw(t, "batch step")
		points = append(points, batching.Point{Batch: batch, Seconds: last.Seconds * rapid.Float64Range(0.8, 4).Draw(t, "factor")})
	}
	for i := range points {
		if varies {
			points[i].Deviation = points[i].Seconds * rapid.Float64Range(0.05, 1.5).Draw(t, "relative deviation")
		}
	}
	curve, err := batching.NewCurve(points)
	if err != nil {
		t.Fatal(err)
	}
	return curve
}

func drawnPolicy(t *rapid.T, curve batching.Curve) batching.Policy {
	policy := batching.Policy{MaxBatch: rapid.IntRange(1, curve.Largest()).Draw(t, "max batch")}
	switch rapid.IntRange(0, 2).Draw(t, "kind of policy") {
	case 1:
		policy.WaitSeconds = rapid.Float64Range(0, 0.3).Draw(t, "wait")
	case 2:
		policy.UntilFull = true
	}
	return policy
}

func drawnArrivals(t *rapid.T, capacity float64) batching.Arrivals {
	rate := capacity * rapid.Float64Range(0.05, 1.3).Draw(t, "load")
	switch rapid.IntRange(0, 2).Draw(t, "process") {
	case 0:
		return batching.Poisson{Rate: rate}
	case 1:
		samples := rapid.IntRange(1, 20).Draw(t, "samples")
		return periodic(float64(samples)/rate, samples, 600)
	default:
		times := batching.Poisson{Rate: rate}.Times(500, 7)
		return batching.Recorded{Seconds: times}
	}
}

// periodic is queries of so many samples at a fixed period.
func periodic(period float64, samples, requests int) batching.Recorded {
	var times []float64
	for i := range requests {
		times = append(times, float64(i/samples)*period)
	}
	return batching.Recorded{Seconds: times}
}

// What must hold for every policy, curve and process: requests are answered
// once, in order, never before they came or faster than inferred; instances do
// one thing at a time; batches leave exactly when the policy's rule, which the
// real server uses too, lets them; and Little's law holds to rounding.
func TestSimulationKeepsItsBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		curve := drawnCurve(t)
		server := batching.Server{Curve: curve, Instances: rapid.IntRange(1, 3).Draw(t, "instances")}
		policy := drawnPolicy(t, curve)
		arrivals := drawnArrivals(t, server.Capacity())
		var batches []batching.Dispatch
		run := batching.Run{Arrivals: arrivals, Requests: 600, Seed: rapid.Uint64().Draw(t, "seed"), Observe: func(d batching.Dispatch) { batches = append(batches, d) }}
		result, err := batching.Simulate(server, policy, run)
		if err != nil {
			t.Fatal(err)
		}
		times := arrivals.Times(600, run.Seed)
		free := make([]float64, server.Instances)
		next, busy, last := 0, 0.0, 0.0
		for _, one := range batches {
			if one.First != next || one.Size < 1 || one.Size > policy.MaxBatch {
				t.Fatalf("batch of %d from request %d, expected request %d and at most %d", one.Size, one.First, next, policy.MaxBatch)
			}
			next += one.Size
			if one.Start < times[next-1] || one.Start < free[one.Instance] || one.Finish < one.Start {
				t.Fatalf("%+v starts before its last request at %g or its instance is free at %g", one, times[next-1], free[one.Instance])
			}
			if !curve.Varies() && math.Abs(one.Finish-one.Start-curve.At(one.Size).Seconds) > 1e-9 {
				t.Fatalf("%+v takes other than %g s", one, curve.At(one.Size).Seconds)
			}
			checkDeparture(t, one, policy, times, free)
			free[one.Instance] = one.Finish
			busy += one.Finish - one.Start
			last = max(last, one.Finish)
		}
		if next != len(times) || result.Requests != len(times) {
			t.Fatalf("%d of %d requests were answered, %d reported", next, len(times), result.Requests)
		}
		checkLittle(t, batches, times, last)
		near(t, "utilization", result.Utilization, busy/last/float64(server.Instances))
		near(t, "mean batch", result.MeanBatch, float64(len(times))/float64(len(batches)))
		near(t, "throughput", result.Throughput, float64(len(times))/last)
	})
}

// checkDeparture asks the rule itself: at the start of a batch it says to take
// this many, and at any earlier moment with a free instance it said to wait.
func checkDeparture(t *rapid.T, one batching.Dispatch, policy batching.Policy, times, free []float64) {
	waiting := 0
	for i := one.First; i < len(times) && times[i] <= one.Start; i++ {
		waiting++
	}
	oldest := one.Start - times[one.First]
	if nobodyElse := one.First+waiting == len(times); policy.UntilFull && nobodyElse {
		return // emptied at the end
	}
	if take, _ := policy.Take(waiting, oldest+1e-9); take != one.Size {
		t.Fatalf("%+v leaves although the rule takes %d of %d waiting, the oldest for %g s", one, take, waiting, oldest)
	}
	earliest := math.Inf(1)
	for _, at := range free {
		earliest = min(earliest, at)
	}
	if possible := max(earliest, times[one.First]); one.Start > possible+1e-9 {
		before := 0
		for i := one.First; i < len(times) && times[i] < one.Start; i++ {
			before++
		}
		if take, again := policy.Take(before, oldest-1e-9); take > 0 || policy.WaitSeconds == 0 && !policy.UntilFull {
			t.Fatalf("%+v could have left before: the rule took %d of %d waiting (asks again in %g s)", one, take, before, again)
		}
	}
}

// checkLittle: the integral of the number of requests present, by events, is
// the sum of their response times.
func checkLittle(t *rapid.T, batches []batching.Dispatch, times []float64, last float64) {
	present, arrived, area, now, sum := 0, 0, 0.0, 0.0, 0.0
	type end struct {
		at   float64
		size int
	}
	var ends []end
	for _, one := range batches {
		ends = append(ends, end{one.Finish, one.Size})
		for i := one.First; i < one.First+one.Size; i++ {
			sum += one.Finish - times[i]
		}
	}
	for arrived < len(times) || len(ends) > 0 {
		earliest := -1
		for i := range ends {
			if earliest < 0 || ends[i].at < ends[earliest].at {
				earliest = i
			}
		}
		if arrived < len(times) && times[arrived] <= ends[earliest].at {
			area += float64(present) * (times[arrived] - now)
			now = times[arrived]
			present++
			arrived++
			continue
		}
		area += float64(present) * (ends[earliest].at - now)
		now = ends[earliest].at
		present -= ends[earliest].size
		ends = append(ends[:earliest], ends[earliest+1:]...)
	}
	if math.Abs(area-sum) > 1e-6*sum || present != 0 || now != last {
		t.Fatalf("the integral of requests present is %g, the sum of response times %g; %d are left", area, sum, present)
	}
}

func near(t *rapid.T, what string, got, want float64) {
	if math.Abs(got-want) > 1e-9*math.Abs(want) {
		t.Fatalf("%s is %g, want %g", what, got, want)
	}
}

// Without chance in the service, requests that come faster find more before
// them: with the same arrivals in less time nobody who is served one by one
// waits less.
func TestSingleSamplesWaitLongerAtHigherRates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Float64Range(0.001, 0.1).Draw(t, "seconds")
		curve, err := batching.NewCurve([]batching.Point{{Batch: 1, Seconds: seconds}})
		if err != nil {
			t.Fatal(err)
		}
		server := batching.Server{Curve: curve, Instances: rapid.IntRange(1, 3).Draw(t, "instances")}
		seed := rapid.Uint64().Draw(t, "seed")
		low := rapid.Float64Range(0.1, 1).Draw(t, "low") / seconds
		high := low * rapid.Float64Range(1, 2).Draw(t, "factor")
		var means []float64
		for _, rate := range []float64{low, high} {
			result, err := batching.Simulate(server, batching.Single(), batching.Run{Arrivals: batching.Poisson{Rate: rate}, Requests: 500, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			if result.P50.Value < seconds*(1-1e-9) {
				t.Fatalf("half of the requests are answered within %g s, inference takes %g", result.P50.Value, seconds)
			}
			means = append(means, result.Mean.Value)
		}
		if means[1] < means[0]*(1-1e-9) {
			t.Fatalf("the mean response time fell from %g to %g as the rate rose", means[0], means[1])
		}
	})
}

// Queries in equal chunks are the periodic load under a greedy policy.
func TestSplitAgreesWithTheSimulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		curve := drawnCurve(t)
		if curve.Varies() {
			t.Skip("exact only where times do not vary")
		}
		query := batching.Query{Samples: rapid.IntRange(1, 24).Draw(t, "samples"), PeriodSeconds: rapid.Float64Range(0.01, 3).Draw(t, "period")}
		server := batching.Server{Curve: curve}
		choice, err := batching.BestSplit(server, query, batching.Goal{Objective: batching.MeanResponse}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, split := range []batching.Split{choice.Single, choice.Whole, choice.Best} {
			size, last := split.Chunks[0], len(split.Chunks)-1
			if !split.KeepsUp || last > 0 && split.Chunks[last-1] < size { // greedy batches are full but for the last
				continue
			}
			result, err := batching.Simulate(server, batching.Greedy(size), batching.Run{Arrivals: periodic(query.PeriodSeconds, query.Samples, 20*query.Samples)})
			if err != nil {
				t.Fatal(err)
			}
			near(t, "mean of samples", result.Mean.Value, split.Mean)
			near(t, "p99 of samples", result.P99.Value, split.P99)
		}
		if choice.Best.KeepsUp && choice.Single.KeepsUp && choice.Best.Mean > choice.Single.Mean*(1+1e-9) {
			t.Fatalf("the best split %s has mean %g, single samples %g", choice.Best, choice.Best.Mean, choice.Single.Mean)
		}
	})
}
