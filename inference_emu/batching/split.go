package batching

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Query is the load of the thesis' server scenario: a query of several samples
// comes at a fixed period.
type Query struct {
	Samples       int     `json:"samples"`
	PeriodSeconds float64 `json:"period_seconds"`
}

const (
	mostSamples = 2048
	// queriesPlayed is how many queries are played where times vary.
	queriesPlayed = 20_000
)

// Split is a way to divide a query, and what it comes to. Where inference times
// vary, the seconds are those of the mean times, and P99 is simulated.
type Split struct {
	// Chunks are the sizes of the batches, in order.
	Chunks []int `json:"chunks"`
	// Mean is the mean time from the query's arrival to a sample's answer, and
	// Last that to the answer of the last one.
	Mean float64 `json:"mean_seconds"`
	Last float64 `json:"last_seconds"`
	// P99 is the 99th percentile over the samples of all queries.
	P99             float64 `json:"p99_seconds"`
	JoulesPerSample float64 `json:"joules_per_sample,omitempty"`
	// KeepsUp tells that a query is finished before the next one comes, on
	// average if times vary.
	KeepsUp bool `json:"keeps_up"`
}

// SplitChoice is the best division of a query and what it is compared with.
type SplitChoice struct {
	Best   Split `json:"best"`
	Single Split `json:"single"` // one by one
	Whole  Split `json:"whole"`  // in as few batches as the curve allows
	// ShortestPeriod is the least seconds that a query of so many samples
	// takes.
	ShortestPeriod float64 `json:"shortest_period_seconds"`
}

// BestSplit divides a query into batches of equal sizes, or that differ by one
// sample: [MeanResponse] minimizes the mean over samples, [P99] the time of the last
// one, [Joules] the energy; under the condition that a query is done within its
// period and within the bound, if there is one. If nothing keeps up with the period,
// the best is what takes least time, and says so. It is for one instance. The best
// division into any sizes is little better (docs/benchmarks/edgetune.md).
func BestSplit(server Server, query Query, goal Goal, seed uint64) (SplitChoice, error) {
	if err := server.check(); err != nil {
		return SplitChoice{}, err
	}
	if err := goal.check(server.Curve); err != nil {
		return SplitChoice{}, err
	}
	if query.Samples < 1 || query.Samples > mostSamples || server.instances() > 1 {
		return SplitChoice{}, problem.New(problem.Invalid, "a query of %d samples on %d instances cannot be split: from 1 to %d samples on 1 instance", query.Samples, server.instances(), mostSamples)
	}
	if err := positive("query", "period_seconds", query.PeriodSeconds); err != nil {
		return SplitChoice{}, err
	}
	limit := query.PeriodSeconds
	if goal.LatencyBound > 0 {
		limit = min(limit, goal.LatencyBound)
	}
	fewest := (query.Samples + server.Curve.Largest() - 1) / server.Curve.Largest()
	var best, quickest Split
	lowest := math.Inf(1)
	for batches := fewest; batches <= query.Samples; batches++ {
		one := splitOf(server, query, equal(query.Samples, batches))
		if batches == fewest || one.Last < quickest.Last {
			quickest = one
		}
		value := map[Objective]float64{MeanResponse: one.Mean, P99: one.Last, Joules: one.JoulesPerSample}[goal.Objective]
		if one.Last <= limit*(1+1e-9) && value < lowest {
			best, lowest = one, value
		}
	}
	if best.Chunks == nil {
		best = quickest
	}
	choice := SplitChoice{
		Best: best, Single: splitOf(server, query, equal(query.Samples, query.Samples)), Whole: splitOf(server, query, equal(query.Samples, fewest)),
		ShortestPeriod: quickest.Last,
	}
	for _, one := range []*Split{&choice.Best, &choice.Single, &choice.Whole} {
		one.play(server, query, seed)
	}
	return choice, nil
}

// equal are so many chunks whose sizes differ by at most one, the larger ones first.
func equal(samples, batches int) []int {
	chunks := make([]int, batches)
	for i := range chunks {
		chunks[i] = (samples + batches - 1 - i) / batches
	}
	return chunks
}

// splitOf is what a division comes to, but for P99.
func splitOf(server Server, query Query, chunks []int) Split {
	split, joules := Split{Chunks: chunks}, 0.0
	for _, size := range chunks {
		point := server.Curve.At(size)
		split.Last += point.Seconds
		joules += point.Joules
		split.Mean += split.Last * float64(size) / float64(query.Samples)
	}
	split.KeepsUp = split.Last <= query.PeriodSeconds*(1+1e-9)
	if server.Curve.HasJoules() {
		split.JoulesPerSample = (joules + server.IdleWatts*max(query.PeriodSeconds-split.Last, 0)) / float64(query.Samples)
	}
	return split
}

// play finds P99 by queries one after the other. One that is not done when the next
// one comes delays it.
func (s *Split) play(server Server, query Query, seed uint64) {
	queries := 1
	if server.Curve.Varies() && s.KeepsUp {
		queries = max(200, min(queriesPlayed, 2_000_000/query.Samples))
	}
	draw := service{curve: server.Curve, random: stream(seed, serviceStream)}
	var responses []float64
	now := 0.0
	for n := range queries {
		arrived := float64(n) * query.PeriodSeconds
		now = max(now, arrived)
		for _, size := range s.Chunks {
			now += draw.seconds(size)
			for range size {
				responses = append(responses, now-arrived)
			}
		}
	}
	s.P99 = quantile(responses, 0.99)
}

// String is the division in words, such as "4 × 8".
func (s Split) String() string {
	text := ""
	for i := 0; i < len(s.Chunks); {
		n := i
		for n < len(s.Chunks) && s.Chunks[n] == s.Chunks[i] {
			n++
		}
		if i > 0 {
			text += " + "
		}
		text += fmt.Sprintf("%d × %d", n-i, s.Chunks[i])
		i = n
	}
	return text
}
