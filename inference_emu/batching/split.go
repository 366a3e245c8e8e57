package batching

import "math"

// queriesPlayed is how many queries are played where times vary, samplesPlayed about how
// many samples at most.
const (
	queriesPlayed = 20_000
	samplesPlayed = 2_000_000
)

// Split is a way to divide a query of several samples, and what it comes to. Where
// inference times vary, the seconds are those of the mean times, and P99 is simulated.
type Split struct {
	// Chunks are the sizes of the batches, in order.
	Chunks []int
	// Mean is the mean time from the query's arrival to a sample's answer, and
	// Last that to the answer of the last one.
	Mean, Last float64
	// P99 is the 99th percentile over the samples of all queries.
	P99             float64
	JoulesPerSample float64
}

// BestSplit divides queries of so many samples, which come one after the other, into
// batches of equal sizes, or that differ by one sample: [MeanResponse] minimizes the mean
// over samples, [P99] the time of the last one, [Joules] the energy. The best division
// into any sizes is little better (docs/benchmarks/edgetune.md).
func BestSplit(curve Curve, samples int, objective Objective) (Split, error) {
	if err := (Goal{Objective: objective}).check(curve); err != nil {
		return Split{}, err
	}
	var best Split
	lowest := math.Inf(1)
	for batches := (samples + curve.Largest() - 1) / curve.Largest(); batches <= samples; batches++ {
		one := splitOf(curve, equal(samples, batches))
		if value := map[Objective]float64{MeanResponse: one.Mean, P99: one.Last, Joules: one.JoulesPerSample}[objective]; value < lowest {
			best, lowest = one, value
		}
	}
	best.P99 = tail(curve, best.Chunks)
	return best, nil
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
func splitOf(curve Curve, chunks []int) Split {
	split, samples := Split{Chunks: chunks}, 0.0
	for _, size := range chunks {
		point := curve.At(size)
		split.Last += point.Seconds
		split.JoulesPerSample += point.Joules
		split.Mean += split.Last * float64(size)
		samples += float64(size)
	}
	split.Mean /= samples
	split.JoulesPerSample /= samples
	return split
}

// tail is the 99th percentile over the samples of queries in these chunks.
func tail(curve Curve, chunks []int) float64 {
	queries := 1
	if curve.Varies() {
		queries = min(queriesPlayed, samplesPlayed/(len(chunks)*chunks[0]))
	}
	draw := service{curve: curve, random: stream(1, serviceStream)}
	var responses []float64
	for range queries {
		now := 0.0
		for _, size := range chunks {
			now += draw.seconds(size)
			for range size {
				responses = append(responses, now)
			}
		}
	}
	return quantile(responses, 0.99)
}
