package batching

// queriesPlayed is how many queries are played where times vary.
const queriesPlayed = 20_000

// splitOf is what a division comes to.
func splitOf(server Server, query Query, chunks []int, seed uint64) Split {
	split := Split{Chunks: chunks}
	answered := 0.0
	joules := 0.0
	for _, size := range chunks {
		point := server.Curve.At(size)
		answered += point.Seconds
		joules += point.Joules
		split.Mean += answered * float64(size)
	}
	samples := float64(query.Samples)
	split.Mean /= samples
	split.Last = answered
	split.KeepsUp = answered <= query.PeriodSeconds*(1+1e-9)
	if server.Curve.HasJoules() {
		split.JoulesPerSample = (joules + server.IdleWatts*max(query.PeriodSeconds-answered, 0)) / samples
	}
	play := queryPlay{draw: service{curve: server.Curve, random: stream(seed, serviceStream)}, chunks: chunks, period: query.PeriodSeconds}
	queries := 1
	if server.Curve.Varies() && split.KeepsUp {
		queries = max(200, min(queriesPlayed, 2_000_000/query.Samples))
	}
	split.P99 = play.percentile(0.99, queries)
	return split
}

// queryPlay plays queries that are divided into chunks, one after the other.
type queryPlay struct {
	draw   service
	chunks []int
	period float64 // seconds
}

// percentile is that of the response times of samples. A query that is not done
// when the next one comes delays it.
func (q queryPlay) percentile(rank float64, queries int) float64 {
	var responses []float64
	now := 0.0
	for n := range queries {
		arrived := float64(n) * q.period
		now = max(now, arrived)
		for _, size := range q.chunks {
			now += q.draw.seconds(size)
			for range size {
				responses = append(responses, now-arrived)
			}
		}
	}
	return quantile(responses, rank)
}

// last is the percentile of the times until queries are done, when each comes
// as the one before is done.
func (q queryPlay) last(rank float64, queries int) float64 {
	times := make([]float64, queries)
	for n := range times {
		for _, size := range q.chunks {
			times[n] += q.draw.seconds(size)
		}
	}
	return quantile(times, rank)
}
