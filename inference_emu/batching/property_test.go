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
		return recorded(times)
	}
}

// recorded is requests that came once, at these seconds.
type recorded []float64

func (r recorded) PerSecond() float64 { return float64(len(r)-1) / (r[len(r)-1] - r[0]) }

func (r recorded) Times(requests int, _ uint64) []float64 { return r[:min(requests, len(r))] }

// periodic is queries of so many samples at a fixed period.
func periodic(period float64, samples, requests int) recorded {
	var times []float64
	for i := range requests {
		times = append(times, float64(i/samples)*period)
	}
	return times
}

// What must hold for every policy, curve and process: requests are answered
// once, in order, never before they came or faster than inferred; the server does
// one thing at a time; batches leave exactly when the policy's rule, which the
// real server uses too, lets them; and Little's law holds to rounding.
func TestSimulationKeepsItsBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		curve := drawnCurve(t)
		server := batching.Server{Curve: curve}
		policy := drawnPolicy(t, curve)
		arrivals := drawnArrivals(t, server.Capacity())
		var batches []batching.Dispatch
		run := batching.Run{Arrivals: arrivals, Requests: 600, Seed: rapid.Uint64().Draw(t, "seed"), Observe: func(d batching.Dispatch) { batches = append(batches, d) }}
		result := batching.Simulate(server, policy, run)
		times := arrivals.Times(600, run.Seed)
		next, busy, free := 0, 0.0, 0.0
		for _, one := range batches {
			if one.First != next || one.Size < 1 || one.Size > policy.MaxBatch {
				t.Fatalf("batch of %d from request %d, expected request %d and at most %d", one.Size, one.First, next, policy.MaxBatch)
			}
			next += one.Size
			if one.Start < times[next-1] || one.Start < free || one.Finish < one.Start {
				t.Fatalf("%+v starts before its last request at %g or the server is free at %g", one, times[next-1], free)
			}
			if !curve.Varies() && math.Abs(one.Finish-one.Start-curve.At(one.Size).Seconds) > 1e-9 {
				t.Fatalf("%+v takes other than %g s", one, curve.At(one.Size).Seconds)
			}
			checkDeparture(t, one, policy, times, free)
			free = one.Finish
			busy += one.Finish - one.Start
		}
		if next != len(times) {
			t.Fatalf("%d of %d requests were answered", next, len(times))
		}
		checkLittle(t, batches, times, free)
		near(t, "utilization", result.Utilization, busy/free)
		near(t, "mean batch", result.MeanBatch, float64(len(times))/float64(len(batches)))
	})
}

// checkDeparture asks the rule itself: at the start of a batch it says to take
// this many, and at any earlier moment with the server free it said to wait.
func checkDeparture(t *rapid.T, one batching.Dispatch, policy batching.Policy, times []float64, free float64) {
	waiting := 0
	for i := one.First; i < len(times) && times[i] <= one.Start; i++ {
		waiting++
	}
	oldest := one.Start - times[one.First]
	if nobodyElse := one.First+waiting == len(times); policy.UntilFull && nobodyElse {
		return // emptied at the end
	}
	if size, _ := take(policy, waiting, oldest+1e-9); size != one.Size {
		t.Fatalf("%+v leaves although the rule takes %d of %d waiting, the oldest for %g s", one, size, waiting, oldest)
	}
	if possible := max(free, times[one.First]); one.Start > possible+1e-9 {
		before := 0
		for i := one.First; i < len(times) && times[i] < one.Start; i++ {
			before++
		}
		if size, again := take(policy, before, oldest-1e-9); size > 0 || policy.WaitSeconds == 0 && !policy.UntilFull {
			t.Fatalf("%+v could have left before: the rule took %d of %d waiting (asks again in %g s)", one, size, before, again)
		}
	}
}

// take is the rule by which requests are put together where they really come, as in
// bench/edgetune/gather: how many of those that wait to take now, of which the oldest has
// waited so long, or in how many seconds to ask again.
func take(p batching.Policy, waiting int, oldestSeconds float64) (size int, againSeconds float64) {
	switch {
	case waiting >= p.MaxBatch:
		return p.MaxBatch, 0
	case waiting == 0 || p.UntilFull:
		return 0, math.Inf(1)
	case oldestSeconds >= p.WaitSeconds:
		return waiting, 0
	default:
		return 0, p.WaitSeconds - oldestSeconds
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
		server := batching.Server{Curve: curve}
		seed := rapid.Uint64().Draw(t, "seed")
		low := rapid.Float64Range(0.1, 1).Draw(t, "low") / seconds
		high := low * rapid.Float64Range(1, 2).Draw(t, "factor")
		var means []float64
		for _, rate := range []float64{low, high} {
			result := batching.Simulate(server, batching.Single(), batching.Run{Arrivals: batching.Poisson{Rate: rate}, Requests: 500, Seed: seed})
			if result.Mean < seconds*(1-1e-9) || result.P99 < seconds*(1-1e-9) {
				t.Fatalf("requests are answered within %g s, inference takes %g", result.Mean, seconds)
			}
			means = append(means, result.Mean)
		}
		if means[1] < means[0]*(1-1e-9) {
			t.Fatalf("the mean response time fell from %g to %g as the rate rose", means[0], means[1])
		}
	})
}

// Queries in equal chunks are a periodic load under a greedy policy.
func TestSplitAgreesWithTheSimulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		curve := drawnCurve(t)
		if curve.Varies() {
			t.Skip("exact only where times do not vary")
		}
		samples := rapid.IntRange(1, 24).Draw(t, "samples")
		split, err := batching.BestSplit(curve, samples, batching.MeanResponse)
		if err != nil {
			t.Fatal(err)
		}
		single, _ := batching.BestSplit(curveOf(t, curve.At(1)), samples, batching.MeanResponse)
		for _, one := range []batching.Split{split, single} {
			size, last := one.Chunks[0], len(one.Chunks)-1
			if last > 0 && one.Chunks[last-1] < size { // greedy batches are full but for the last
				continue
			}
			result := batching.Simulate(batching.Server{Curve: curve}, batching.Greedy(size), batching.Run{Arrivals: periodic(1.01*one.Last, samples, 20*samples)})
			near(t, "mean of samples", result.Mean, one.Mean)
			near(t, "p99 of samples", result.P99, one.P99)
		}
		if split.Mean > single.Mean*(1+1e-9) {
			t.Fatalf("the best split %v has mean %g, single samples %g", split.Chunks, split.Mean, single.Mean)
		}
	})
}
