package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/bench/edgetune/dopeml"
)

// request is one of a stream.
type request struct {
	model  int
	wishes dopeml.Wishes
	loss   []float64 // really, for each backend
	keeps  []bool    // whether the backend really keeps the limits
	best   int       // in hindsight
}

// stream has two passes over three quarters of the models, in random order; the
// others are held out, to measure predictions on.
func (t *task) stream(seed uint64) (requests []request, heldOut []int) {
	random := rand.New(rand.NewPCG(seed, 77))
	order := random.Perm(len(t.models))
	heldOut, order = order[:len(order)/4], order[len(order)/4:]
	for range 2 {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, model := range order {
			requests = append(requests, t.request(model, random))
		}
	}
	return requests, heldOut
}

// request draws priorities: how much latency counts against energy is uniform,
// in a third of the requests accuracy counts five times as much as both
// together, and a third have a limit for the latency that at least one backend keeps.
func (t *task) request(model int, random *rand.Rand) request {
	latency := random.Float64()
	r := request{model: model, best: -1, wishes: dopeml.Wishes{
		Weights: map[dopeml.Criterion]float64{dopeml.ByLatency: latency, dopeml.ByEnergy: 1 - latency}, Limits: map[dopeml.Criterion]float64{}}}
	if random.IntN(3) == 0 {
		r.wishes.Weights[dopeml.ByAccuracy] = 5
	}
	if random.IntN(3) == 0 {
		fastest, slowest := math.Inf(1), 0.0
		for _, one := range t.measured[model] {
			fastest, slowest = min(fastest, one.seconds), max(slowest, one.seconds)
		}
		r.wishes.Limits[dopeml.ByLatency] = fastest * math.Pow(slowest/fastest, random.Float64())
	}
	for b := range t.profiles {
		outcome := dopeml.Judge(t.profiles[b], t.models[model], dopeml.Request{Batch: 1}, t.values(model, b))
		r.loss = append(r.loss, r.wishes.Loss(outcome))
		r.keeps = append(r.keeps, len(r.wishes.Broken(outcome)) == 0)
		if r.keeps[b] && (r.best < 0 || r.loss[b] < r.loss[r.best]) {
			r.best = b
		}
	}
	return r
}

// method is a way to choose.
type method struct {
	name     string
	settings *dopeml.Settings
	// fixed chooses without learning; nil when settings are given.
	fixed func(t *task, requests []request, at int, random *rand.Rand) int
}

func methods() []method {
	list := []method{
		{name: "random", fixed: func(t *task, _ []request, _ int, random *rand.Rand) int { return random.IntN(len(t.profiles)) }},
		{name: "one backend, the best in hindsight", fixed: bestFixed},
		{name: "the fastest (its latency known)", fixed: fastest},
	}
	return append(list,
		method{name: "learned, optimism", settings: &dopeml.Settings{Exploration: dopeml.Optimism, Share: 0.1}},
		method{name: "learned, greedy after one run each", settings: &dopeml.Settings{Exploration: dopeml.Optimism, Share: 1e-9}},
	)
}

func bestFixed(t *task, requests []request, _ int, _ *rand.Rand) int {
	best, least := 0, math.Inf(1)
	for b := range t.profiles {
		sum := 0.0
		for _, r := range requests {
			sum += max(0, r.loss[b]-r.loss[r.best])
		}
		if sum < least {
			best, least = b, sum
		}
	}
	return best
}

func fastest(t *task, requests []request, at int, _ *rand.Rand) int {
	best := 0
	for b, one := range t.measured[requests[at].model] {
		if one.seconds < t.measured[requests[at].model][best].seconds {
			best = b
		}
	}
	return best
}

// score is what a stream gave.
type score struct {
	regret        [3]float64 // requests 1 to 10, the rest of the first pass, the second pass
	right, broken float64    // shares of the second pass
	early, late   [2]float64 // percentage errors of latency and energy, after 10 runs and at the end
	predicts      bool
}

// play runs a stream.
func (m method) play(t *task, seed uint64) (s score, err error) {
	requests, heldOut := t.stream(seed)
	s.predicts = m.settings != nil
	random := rand.New(rand.NewPCG(seed, 99))
	choose := func(i int) (int, error) { return m.fixed(t, requests, i, random), nil }
	if m.settings != nil {
		chooser, err := dopeml.New(t.profiles, *m.settings)
		if err != nil {
			return s, err
		}
		choose = func(i int) (int, error) {
			if i == 10 {
				s.early = t.percent(chooser, heldOut)
			}
			return t.choose(chooser, requests[i])
		}
		defer func() { s.late = t.percent(chooser, heldOut) }()
	}
	half := len(requests) / 2
	for i, r := range requests {
		chosen, err := choose(i)
		if err != nil {
			return s, fmt.Errorf("%s on %s: %w", m.name, t.spec.name, err)
		}
		// What breaks a limit may be better than the best that keeps it; that is
		// counted as broken, and as no regret.
		regret := max(0, r.loss[chosen]-r.loss[r.best])
		switch {
		case i >= half:
			s.regret[2] += regret / float64(half)
			s.right += indicator(chosen == r.best) / float64(half)
			s.broken += indicator(!r.keeps[chosen]) / float64(half)
		case i >= 10:
			s.regret[1] += regret / float64(half-10)
		default:
			s.regret[0] += regret / 10
		}
	}
	return s, nil
}

// choose asks the chooser for a request, and teaches it what came of it.
func (t *task) choose(chooser *dopeml.Chooser, r request) (int, error) {
	choice, err := chooser.Choose(t.models[r.model], dopeml.Request{Batch: 1}, r.wishes)
	if err != nil {
		return 0, err
	}
	chosen := choice.Chosen
	if chosen < 0 { // all are predicted to break the limit: somebody must serve it
		chosen = t.fallback(chooser, r.model)
	}
	run := t.run(r.model, chosen)
	run.Explored = choice.Explored
	return chosen, chooser.Learn(run)
}

// fallback is what is predicted fastest.
func (t *task) fallback(chooser *dopeml.Chooser, model int) int {
	best, least := 0, math.Inf(1)
	for b, values := range predicted(chooser, t.models[model], dopeml.Request{Batch: 1}) {
		if values[dopeml.LatencySeconds] < least {
			best, least = b, values[dopeml.LatencySeconds]
		}
	}
	return best
}

// percent is the mean absolute percentage error of latency and energy over all
// backends, of models that were in no request.
func (t *task) percent(chooser *dopeml.Chooser, models []int) (errors [2]float64) {
	for _, model := range models {
		for b, values := range predicted(chooser, t.models[model], dopeml.Request{Batch: 1}) {
			really := t.values(model, b)
			for i, measure := range []dopeml.Measure{dopeml.LatencySeconds, dopeml.JoulesPerInference} {
				errors[i] += math.Abs(values[measure]-really[measure]) / really[measure] / float64(len(models)*len(t.profiles))
			}
		}
	}
	return errors
}

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// predicted is what a run on each backend is expected to take, in the order of the
// profiles; NaN for what no run has measured.
func predicted(chooser *dopeml.Chooser, model dopeml.Model, request dopeml.Request) []dopeml.Values {
	choice, err := chooser.Choose(model, request, dopeml.Wishes{Weights: map[dopeml.Criterion]float64{dopeml.ByLatency: 1}})
	if err != nil {
		return nil
	}
	list := make([]dopeml.Values, len(choice.Options))
	for b, option := range choice.Options {
		for m := range list[b] {
			list[b][m] = math.NaN()
			if band, known := option.Predicted[dopeml.Measure(m).String()]; known {
				list[b][m] = band.Mean
			}
		}
	}
	return list
}
