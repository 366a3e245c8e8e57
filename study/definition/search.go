package definition

import (
	"math"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search"
	"slices"
)

// search reads how configurations are chosen, with the defaults filled in; eta
// is the ladder's.
func (d *decoder) search(s section, eta int) Search {
	result := Search{Method: "bohb", Promotion: budget.Asynchronous, Brackets: 1, RandomFraction: 1.0 / 3, GridPoints: 5}
	n, at := s.get("search")
	if n == nil {
		return result
	}
	s, ok := d.section(at, n, "method", "promotion", "seed", "random_fraction", "brackets", "grid_points", "initial", "warm_start", "early_stopping", "restarts", "widen", "groups", "population", "repeats")
	if !ok {
		return result
	}
	d.method(s, &result.Method)
	result.Groups = d.groups(s)
	d.promotion(s, &result)
	d.population(s, &result)
	if n, at := s.get("seed"); n != nil {
		seed := 1
		d.wholeOf(at, n, 0, maxExact, &seed)
		if seed == 0 {
			d.fault(at, n, "must be at least 1: leave it out, and the server draws one and shows it")
		}
		result.Seed = uint64(seed)
	}
	s.number("random_fraction", 0, 1, &result.RandomFraction)
	if result.Promotion != budget.Asynchronous {
		result.Brackets = 0
	}
	s.whole("brackets", 0, budget.MaxRungs, &result.Brackets)
	if n, at := s.get("brackets"); n != nil && result.Brackets > 0 && result.Promotion == budget.NoPromotion {
		d.fault(at, n, "must be left out with promotion: none, as every trial then starts at the top rung")
	}
	s.whole("grid_points", 1, 1000, &result.GridPoints)
	result.Initial = d.initial(s)
	d.reading("search.early_stopping", func() { result.EarlyStopping = d.earlyStopping(s, eta) })
	d.restarts(s, &result)
	result.Repeats = d.repeats(s)
	s.flag("widen", &result.Widen)
	if n, at := s.get("widen"); n != nil && result.Widen && result.Promotion != budget.Asynchronous {
		d.fault(at, n, "must be left out with promotion: %s: only asynchronous promotion can send up more than its share", result.Promotion)
	}
	result.WarmStart = d.warmStart(s)
	return result
}

// restarts reads how cma-es goes on when it has arrived.
func (d *decoder) restarts(s section, target *Search) {
	if target.has(cmaes) {
		target.Restarts = search.IPOP
	}
	n, at := s.get("restarts")
	if n == nil {
		return
	}
	const wanted = "ipop (larger and larger populations), bipop (large and small ones in turn) or none (stay)"
	switch r := search.Restarts(n.raw); {
	case n.kind != text:
		d.wrong(at, n, wanted)
	case !r.Known():
		d.fault(at, n, "must be %s", wanted)
	default:
		target.Restarts = r
	}
}

// promotion reads how trials go up the ladder.
func (d *decoder) promotion(s section, target *Search) {
	n, at := s.get("promotion")
	if n == nil {
		return
	}
	const wanted = "asynchronous (go up at once), synchronous (Hyperband's brackets), none (train every trial in full) or population (replace the worst by children of the best)"
	p := budget.Promotion(n.raw)
	switch {
	case n.kind != text:
		d.wrong(at, n, wanted)
	case !p.Known():
		d.fault(at, n, "must be %s", wanted)
	default:
		target.Promotion = p
	}
}

// population reads how many trials a population has.
func (d *decoder) population(s section, target *Search) {
	n, at := s.get("population")
	if target.Promotion == budget.Population {
		target.Population = 20
		s.whole("population", search.MinPopulation, maxPopulation, &target.Population)
	} else if n != nil {
		d.fault(at, n, "belongs to promotion: population; leave it out")
	}
	if n, at := s.get("brackets"); n != nil && n.raw != "0" && target.Promotion == budget.Population {
		d.fault(at, n, "must be left out with promotion: population, as every trial then starts at the first rung")
	}
}

// maxPopulation bounds a population: every decision looks at all of it.
const maxPopulation = 1000

// stop reads when the study ends, with the defaults filled in.
func (d *decoder) stop(s section, def Definition) Stop {
	result := Stop{Trials: 50, Failures: 10}
	n, at := s.get("stop")
	if n == nil {
		n, at = &node{kind: mapping, line: s.node.line}, join(s.path, "stop")
	}
	s, ok := d.section(at, n, "trials", "seconds", "data_passes", "training_seconds", "joules", "target_reached", "regret", "failures")
	if !ok {
		return result
	}
	s.number("seconds", 0, year, &result.Seconds)
	s.number("data_passes", 0, MaxTrials*maxPasses, &result.DataPasses)
	s.number("training_seconds", 0, MaxTrials*year, &result.TrainingSeconds)
	s.number("joules", 0, maxJoules, &result.Joules)
	s.flag("target_reached", &result.TargetReached)
	s.number("regret", 0, math.MaxFloat64, &result.Regret)
	s.whole("failures", 0, MaxTrials, &result.Failures)
	// A grid and a population end by themselves, a time limit ends everything, and every epoch is
	// some part of a pass. Seconds and joules may never be reported.
	bounded := def.Search.ends() || def.Search.Promotion == budget.Population || result.Seconds > 0 || result.DataPasses > 0
	if bounded {
		result.Trials = 0
	}
	s.whole("trials", 0, MaxTrials, &result.Trials)
	if n, at := s.get("trials"); n != nil && n.kind == number && result.Trials == 0 && !bounded {
		d.fault(at, n, "must be at least 1, unless the search is a grid or a population, or stop.seconds or stop.data_passes bounds the study")
	}
	d.checkRepeats(def.Search, result.Trials)
	if n, at := s.get("target_reached"); result.TargetReached && !slices.ContainsFunc(def.Objectives, func(o Objective) bool { return o.Target != nil }) {
		d.fault(at, n, "needs a target to reach: give the objective one, such as target: 0.9")
	}
	return result
}

// MaxTrials is the most trials that a study may be bounded by: such a bound is no
// plan, and means that the study goes on until somebody ends it.
const MaxTrials = 1_000_000

// The other largest bounds of a study.
const (
	maxPasses = 1_000_000 // of one trial
	maxJoules = 1e18
)

func (d *decoder) retry(s section) Retry {
	result := Retry{Failures: 1}
	n, at := s.get("retry")
	if n == nil {
		return result
	}
	if s, ok := d.section(at, n, "failures"); ok {
		s.whole("failures", 0, 100, &result.Failures)
	}
	return result
}
