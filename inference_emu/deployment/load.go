package deployment

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/batching"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

// MaxStreams is how many samples a request may have.
const MaxStreams = 1000

// Load is how requests come, if not one sample after the other.
type Load struct {
	// Rate is how many requests of one sample come in a second, independently of each
	// other, and P99Seconds what the 99th percentile of waiting and inference may be.
	Rate, P99Seconds float64
	// Streams is how many samples a request has, if they come one after the other.
	Streams int
}

// Batching is how a program puts the samples of a load together, by the rule of
// [batching.Policy], and what is predicted of it by simulation.
type Batching struct {
	RatePerSecond   float64 `json:"rate_per_second,omitempty" doc:"requests of one sample that come in a second, independently of each other"`
	Streams         int     `json:"streams,omitempty" doc:"samples of a request, if they come one after the other"`
	P99BoundSeconds float64 `json:"p99_bound_seconds,omitempty" doc:"what the 99th percentile of response times may be"`
	MaxBatch        int     `json:"max_batch"`
	WaitSeconds     float64 `json:"wait_seconds" doc:"how long the first sample waits for others"`
	// The times are of waiting and inference; 0 where it is overloaded.
	MeanSeconds float64 `json:"mean_seconds"`
	P99Seconds  float64 `json:"p99_seconds"`
	// JoulesPerSample has those of the device at rest between batches.
	JoulesPerSample   float64 `json:"joules_per_sample,omitempty"`
	Utilization       float64 `json:"utilization" doc:"share of the time in which it infers"`
	SustainsPerSecond float64 `json:"sustains_per_second" doc:"samples a second up to which it keeps up"`
	Overloaded        bool    `json:"overloaded,omitempty" doc:"it does not keep up with the rate"`
}

// String is the policy and what it comes to.
func (b Batching) String() string {
	text := fmt.Sprintf("max_batch=%d wait_seconds=%.4g", b.MaxBatch, b.WaitSeconds)
	switch {
	case b.Streams > 0:
		return fmt.Sprintf("%s: %d samples take %.4g ms", text, b.Streams, 1e3*b.P99Seconds)
	case b.Overloaded:
		return fmt.Sprintf("%s: overloaded by %.6g requests/s, the most is %.4g", text, b.RatePerSecond, b.SustainsPerSecond)
	}
	text = fmt.Sprintf("%s: p99 %.4g ms at %.6g requests/s, %.0f%% busy", text, 1e3*b.P99Seconds, b.RatePerSecond, 100*b.Utilization)
	if b.JoulesPerSample > 0 {
		text += fmt.Sprintf(", %.3g J/sample with the time at rest", b.JoulesPerSample)
	}
	return text
}

// bound is what the 99th percentile may be, in words.
func (b Batching) bound() string {
	return fmt.Sprintf("p99_ms <= %.6g at %.6g requests/s", 1e3*b.P99BoundSeconds, b.RatePerSecond)
}

// station is the device with so many cores at one clock.
type station struct {
	evaluations []tuning.Evaluation // by batch
	server      batching.Server
	// least is what the objective comes to under the load at the least.
	least float64
}

// served is a station under the load.
type served struct {
	Batching
	station station
	batch   tuning.Evaluation
	// rank is 0 within the bound, 1 beyond it and 2 overloaded; of the same rank the
	// one with the least value is best.
	rank  int
	value float64
}

const (
	mostStations   = 256
	playedRequests = 20_000
	asGood         = 0.01 // by how much, in parts, others may be better than the answer
)

// underLoad chooses of what was tried under the settings' load.
func (s site) underLoad(r tuning.Result) (tuning.Result, *Batching, error) {
	if s.settings.Load == nil || r.Best == nil {
		return r, nil, nil
	}
	var best *served
	for _, one := range s.stations(r.Tried) {
		if best != nil && best.rank == 0 && one.least >= (1-asGood)*best.value {
			break // no other is better by more than that
		}
		got, err := s.serve(one)
		if err != nil {
			return r, nil, err
		}
		if best == nil || cmp.Or(got.rank-best.rank, cmp.Compare(got.value, best.value)) < 0 {
			best = &got
		}
	}
	if best == nil {
		return r, nil, nil
	}
	r.Best, r.Doubtful = &best.batch, s.tuning().Doubtful(best.batch)
	switch {
	case best.Overloaded:
		r.Nearest, r.Unmet = r.Best, []string{fmt.Sprintf("%s: it is overloaded, the most that it sustains is %.4g", best.bound(), best.SustainsPerSecond)}
	case best.rank > 0:
		r.Nearest, r.Unmet = r.Best, []string{fmt.Sprintf("%s: nothing that was tried keeps to it; the nearest has p99_ms %.4g", best.bound(), 1e3*best.P99Seconds)}
	case !s.keepsTo(*best):
		r.Doubtful = append(r.Doubtful, best.bound())
	}
	if len(r.Unmet) > 0 {
		r.Best = nil
	}
	return r, &best.Batching, nil
}

// stations are the device with each number of cores and clock that runs batches within
// the constraints, those that may be best first.
func (s site) stations(tried []tuning.Evaluation) (list []station) {
	places := map[tuning.Configuration]int{}
	for _, one := range tried {
		at := one.Configuration
		at.BatchSize = 0
		place, known := places[at]
		if !one.Feasible() {
			continue
		}
		if !known {
			place, places[at] = len(list), len(list)
			list = append(list, station{})
		}
		list[place].evaluations = append(list[place].evaluations, one)
	}
	if every := 1 + len(list)/mostStations; every > 1 { // the last, which is the fastest, and each so many before it
		var kept []station
		for i := len(list) - 1; i >= 0; i -= every {
			kept = append(kept, list[i])
		}
		list = kept
	}
	var sound []station
	for _, one := range list {
		if curve, err := s.curve(one.evaluations, value); err == nil { // else what was told of it cannot be
			one.server = batching.Server{Curve: curve, IdleWatts: s.device.Power.IdleWatts.Value}
			one.least = s.least(one.server)
			sound = append(sound, one)
		}
	}
	slices.SortStableFunc(sound, func(a, b station) int { return cmp.Compare(a.least, b.least) })
	return sound
}

func value(o tuning.Outcome) float64 { return o.LatencySeconds }

// worst is the bad end of the band of what was estimated.
func worst(o tuning.Outcome) float64 { return max(o.LatencySeconds, o.LatencySecondsHigh) }

// curve is the time of batches. Between sizes that were measured estimates do not count;
// smaller batches than the first take as long as that.
func (s site) curve(evaluations []tuning.Evaluation, seconds func(tuning.Outcome) float64) (batching.Curve, error) {
	ran := func(one tuning.Evaluation) bool { return one.Outcome.Measured }
	first := slices.IndexFunc(evaluations, ran)
	last := len(evaluations) - 1
	for last > first && !ran(evaluations[last]) {
		last--
	}
	var points []batching.Point
	for i, one := range evaluations {
		if first >= 0 && i > first && i < last && !ran(one) {
			continue
		}
		point := batching.Point{Batch: one.Configuration.BatchSize, Seconds: seconds(one.Outcome), Joules: s.drawn(one)}
		if run, ok := s.ran(one.Configuration); ok && run.P90 > run.Seconds && run.Seconds > shortest {
			spread := min(math.Log(run.P90/run.Seconds)/normal90, widest)
			point.Seconds *= math.Exp(spread * spread / 2)
			point.Deviation = point.Seconds * math.Sqrt(math.Expm1(spread*spread))
		}
		points = append(points, point)
	}
	if least := points[0]; least.Batch > 1 {
		least.Batch = 1
		points = slices.Insert(points, 0, least)
	}
	if slices.ContainsFunc(points, func(one batching.Point) bool { return one.Joules == 0 }) {
		for i := range points {
			points[i].Joules = 0
		}
	}
	return batching.NewCurve(points)
}

// Times below shortest seconds, and that vary by more than a factor of e to the widest, are
// nothing that was measured.
const (
	shortest = 1e-9
	widest   = 2
)

// drawn are the joules of a batch beside those at rest, which an estimate of the batch
// alone may fall short of: those of the band between rest and load.
func (s site) drawn(one tuning.Evaluation) float64 {
	o, idle, load := one.Outcome, s.device.Power.IdleWatts.Value, s.device.Power.LoadWatts.Value
	run, ran := s.ran(one.Configuration)
	switch {
	case o.Joules == 0:
		return 0
	case ran && run.Joules > 0, s.fit.plain != nil, o.JoulesHigh <= o.Joules, idle >= load:
		return max(o.Joules, idle*o.LatencySeconds)
	}
	return within(estimate.Estimate{Value: o.Joules, High: o.JoulesHigh}, o.LatencySeconds, idle, load) * o.LatencySeconds
}

// normal90 is by how many deviations the 90th percentile of a normal distribution is
// above its median. Times are taken as log-normal: most are near the median, and a few
// long.
const normal90 = 1.2816

// least is the least that the objective can come to under the load.
func (s site) least(server batching.Server) float64 {
	load, least := s.settings.Load, math.Inf(1)
	if s.settings.Objective != tuning.Energy {
		return server.Curve.At(1).Seconds
	}
	for batch := 1; batch <= server.Curve.Largest(); batch++ {
		point, idle := server.Curve.At(batch), server.IdleWatts
		if load.Streams > 0 {
			idle = 0
		}
		least = min(least, (point.Joules-idle*point.Seconds)/float64(batch))
	}
	if load.Streams > 0 {
		return least
	}
	return least + server.IdleWatts/load.Rate
}

// serve puts the samples of the load together at the station.
func (s site) serve(one station) (served, error) {
	load, goal := s.settings.Load, batching.Goal{Objective: batching.MeanResponse, LatencyBound: s.settings.Load.P99Seconds}
	if s.settings.Objective == tuning.Energy {
		goal.Objective = batching.Joules
	}
	got := served{Batching: Batching{RatePerSecond: load.Rate, Streams: load.Streams, P99BoundSeconds: load.P99Seconds}, station: one}
	if load.Streams > 0 {
		return got.split(goal.Objective)
	}
	choice, err := batching.Choose(one.server, goal, s.played())
	if err != nil {
		return got, err
	}
	result := choice.Result
	got.MaxBatch, got.WaitSeconds = result.Policy.MaxBatch, result.Policy.WaitSeconds
	got.Utilization, got.SustainsPerSecond, got.Overloaded = min(1, result.Utilization), result.SustainsPerSecond, result.Overloaded
	switch {
	case result.Overloaded:
		got.rank, got.value = 2, -result.SustainsPerSecond
		return got.with(), nil
	case !choice.MeetsBound:
		got.rank, got.value = 1, result.P99
	case goal.Objective == batching.Joules:
		got.value = result.JoulesPerSample
	default:
		got.value = result.Mean
	}
	got.MeanSeconds, got.P99Seconds, got.JoulesPerSample = result.Mean, result.P99, result.JoulesPerSample
	return got.with(), nil
}

// played are the requests that are simulated, always the same.
func (s site) played() batching.Run {
	return batching.Run{Arrivals: batching.Poisson{Rate: s.settings.Load.Rate}, Requests: playedRequests, Seed: 1}
}

// split puts the samples of each request into batches.
func (got served) split(objective batching.Objective) (served, error) {
	if objective != batching.Joules {
		objective = batching.P99 // until the last sample is answered
	}
	best, err := batching.BestSplit(got.station.server.Curve, got.Streams, objective)
	if err != nil {
		return got, err
	}
	got.MaxBatch, got.MeanSeconds, got.P99Seconds, got.JoulesPerSample = best.Chunks[0], best.Last, best.P99, best.JoulesPerSample
	got.Utilization, got.SustainsPerSecond = 1, float64(got.Streams)/best.Last
	if got.value = best.Last; objective == batching.Joules {
		got.value = best.JoulesPerSample
	}
	return got.with(), nil
}

// with has the configuration that runs its largest batches.
func (got served) with() served {
	tried := got.station.evaluations
	at := slices.IndexFunc(tried, func(one tuning.Evaluation) bool { return one.Configuration.BatchSize >= got.MaxBatch })
	got.batch = tried[max(0, at)]
	return got
}

// keepsTo reports whether the bound holds at the bad end of the band, too.
func (s site) keepsTo(best served) bool {
	if best.Streams > 0 {
		return true
	}
	server := best.station.server
	curve, err := s.curve(best.station.evaluations, worst)
	if err != nil {
		return false
	}
	server.Curve = curve
	result := batching.Simulate(server, batching.Policy{MaxBatch: best.MaxBatch, WaitSeconds: best.WaitSeconds}, s.played())
	return !result.Overloaded && result.P99 <= best.P99BoundSeconds
}
