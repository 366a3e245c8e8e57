package batching

import (
	"cmp"
	"fmt"
	"math"
	"slices"

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
	// mostTraded is the most samples for which time is traded for the objective.
	mostTraded = 128
	mostRoom   = 20_000
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
	// takes, and MostSamples the most samples a query may have at this period,
	// of up to 20,000.
	ShortestPeriod float64 `json:"shortest_period_seconds"`
	MostSamples    int     `json:"most_samples"`
}

// BestSplit divides a query into batches, exactly, by dynamic programming over
// the samples that are left: [MeanResponse] minimizes the mean over samples,
// [P99] and [Throughput] the time of the last one, [Joules] the energy; under
// the condition that a query is done within its period and within the bound,
// if there is one. (Queries of more than 128 samples whose best division takes
// longer than that are divided so that they take least time.) Equal chunks are preferred where they are at most 0.2%
// worse. If nothing keeps up with the period, the best is what takes least
// time, and says so. It is for one instance.
func BestSplit(server Server, query Query, goal Goal, seed uint64) (SplitChoice, error) {
	if err := server.check(); err != nil {
		return SplitChoice{}, err
	}
	if err := goal.check(server); err != nil {
		return SplitChoice{}, err
	}
	if err := (Periodic{PeriodSeconds: query.PeriodSeconds, Samples: query.Samples}).check(); err != nil {
		return SplitChoice{}, err
	}
	if query.Samples > mostSamples || server.instances() > 1 {
		return SplitChoice{}, problem.New(problem.Invalid, "a query of %d samples on %d instances cannot be split: at most %d samples on 1 instance", query.Samples, server.instances(), mostSamples)
	}
	plan := division{curve: server.Curve, objective: goal.Objective}
	shown := func(chunks []int) Split { return splitOf(server, query, chunks, seed) }
	quickest := division{curve: server.Curve, objective: Throughput}
	least, most := quickest.within(query.Samples, math.Inf(1)), 0
	room := int(min(query.PeriodSeconds*server.Capacity()*(1+1e-9), mostRoom))
	for samples, seconds := range quickest.leastSeconds(room) {
		if seconds <= query.PeriodSeconds*(1+1e-9) {
			most = samples
		}
	}
	limit := query.PeriodSeconds
	if goal.LatencyBound > 0 {
		limit = min(limit, goal.LatencyBound)
	}
	best := plan.within(query.Samples, math.Inf(1))
	if server.secondsOf(best) > limit*(1+1e-9) {
		best = nil
		if query.Samples <= mostTraded {
			best = plan.within(query.Samples, limit)
		}
	}
	if best == nil {
		best = least
	}
	best = plan.equalized(best, limit)
	return SplitChoice{
		Best: shown(best), Single: shown(equal(query.Samples, 1)), Whole: shown(equal(query.Samples, server.Curve.Largest())),
		ShortestPeriod: server.secondsOf(least), MostSamples: most,
	}, nil
}

func (s Server) secondsOf(chunks []int) float64 {
	sum := 0.0
	for _, size := range chunks {
		sum += s.Curve.At(size).Seconds
	}
	return sum
}

// equal are chunks of the size, the last one of what is left.
func equal(samples, size int) []int {
	var chunks []int
	for ; samples > 0; samples -= size {
		chunks = append(chunks, min(size, samples))
	}
	return chunks
}

// division divides samples into chunks for an objective.
type division struct {
	curve     Curve
	objective Objective
}

// cost is what a chunk adds to the objective when so many samples, its own
// included, still wait for an answer.
func (d division) cost(chunk, waiting int) float64 {
	point := d.curve.At(chunk)
	switch d.objective {
	case MeanResponse:
		return float64(waiting) * point.Seconds
	case Joules:
		return point.Joules
	}
	return point.Seconds
}

// label is a way to divide the samples left: no other takes both less time and
// costs less.
type label struct {
	seconds, cost float64
	chunk, next   int // the first chunk, and the label for what it leaves
}

// within are the cheapest chunks that take at most the limit, nil if there are
// none: the labels of all numbers of samples, from one sample up.
func (d division) within(samples int, limit float64) []int {
	limit *= 1 + 1e-9
	labels := make([][]label, samples+1)
	labels[0] = []label{{}}
	for left := 1; left <= samples; left++ {
		var all []label
		for chunk := 1; chunk <= min(left, d.curve.Largest()); chunk++ {
			seconds, cost := d.curve.At(chunk).Seconds, d.cost(chunk, left)
			for i, rest := range labels[left-chunk] {
				if one := (label{seconds + rest.seconds, cost + rest.cost, chunk, i}); one.seconds <= limit {
					all = append(all, one)
				}
			}
		}
		labels[left] = undominated(all, math.IsInf(limit, 0))
	}
	if len(labels[samples]) == 0 {
		return nil
	}
	at := len(labels[samples]) - 1 // the cheapest is the slowest of them
	var chunks []int
	for left := samples; left > 0; {
		one := labels[left][at]
		chunks = append(chunks, one.chunk)
		left, at = left-one.chunk, one.next
	}
	return chunks
}

// undominated are the labels of which none is slower and dearer than another,
// the fastest first; only the cheapest if time does not matter.
func undominated(all []label, onlyCheapest bool) []label {
	slices.SortStableFunc(all, func(a, b label) int { return cmp.Compare(a.seconds, b.seconds) })
	var kept []label
	for _, one := range all {
		if len(kept) > 0 && one.cost >= kept[len(kept)-1].cost*(1-1e-12) {
			continue
		}
		if onlyCheapest {
			kept = kept[:0]
		}
		kept = append(kept, one)
	}
	return kept
}

// leastSeconds is the least time of each number of samples.
func (d division) leastSeconds(samples int) []float64 {
	least := make([]float64, samples+1)
	for left := 1; left <= samples; left++ {
		least[left] = math.Inf(1)
		for chunk := 1; chunk <= min(left, d.curve.Largest()); chunk++ {
			least[left] = min(least[left], least[left-chunk]+d.curve.At(chunk).Seconds)
		}
	}
	return least
}

// equalized are equal chunks if some are nearly as good as these.
func (d division) equalized(chunks []int, limit float64) []int {
	samples, seconds, cost := 0, 0.0, 0.0
	for _, size := range chunks {
		samples += size
	}
	total := func(chunks []int) (seconds, cost float64) {
		waiting := samples
		for _, size := range chunks {
			seconds += d.curve.At(size).Seconds
			cost += d.cost(size, waiting)
			waiting -= size
		}
		return seconds, cost
	}
	seconds, cost = total(chunks)
	best, bestCost := chunks, cost*1.002
	for size := min(samples, d.curve.Largest()); size > 0; size-- {
		one := equal(samples, size)
		if s, c := total(one); c <= bestCost && s <= max(limit, seconds)*(1+1e-9) {
			best, bestCost = one, c
		}
	}
	return best
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
