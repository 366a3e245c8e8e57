package studyfile

import (
	"slices"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/cmaes"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// readSearch reads how configurations are chosen, with the defaults filled in; eta
// is the ladder's.
func readSearch(s tree.Section, eta int, service bool) definition.Search {
	result := definition.Search{Method: "bohb", Promotion: budget.Asynchronous, Brackets: 1, RandomFraction: 1.0 / 3, Learning: search.LowerRungs, GridPoints: 5}
	s, ok := s.Part("search", "method", "promotion", "seed", "random_fraction", "brackets", "learning", "grid_points", "initial", "warm_start", "early_stopping", "restarts", "repeats")
	if !ok {
		return result
	}
	readMethod(s, &result.Method)
	readWord(s, "promotion", "asynchronous (go up at once), synchronous (Hyperband's brackets) or none (train every trial in full)", budget.Promotion.Known, &result.Promotion)
	if n, at := s.Get("seed"); n != nil {
		seed := 1
		s.WholeOf(at, n, 0, tree.MaxExact, &seed)
		if seed == 0 {
			s.Fault(at, n, "must be at least 1: leave it out, and the server draws one and shows it")
		}
		result.Seed = uint64(seed)
	}
	s.Number("random_fraction", 0, 1, &result.RandomFraction)
	if result.Promotion != budget.Asynchronous {
		result.Brackets = 0
	}
	s.Whole("brackets", 0, budget.MaxRungs, &result.Brackets)
	if n, at := s.Get("brackets"); n != nil && result.Brackets > 0 && result.Promotion == budget.NoPromotion {
		s.Fault(at, n, "must be left out with promotion: none, as every trial then starts at the top rung")
	}
	readWord(s, "learning", "lower_rungs (learn from what was bad below, too) or one_rung", search.Learning.Known, &result.Learning)
	s.Whole("grid_points", 1, 1000, &result.GridPoints)
	result.Initial = readInitial(s)
	readPart(s.Decoder, "search.early_stopping", func() { result.EarlyStopping = readEarlyStopping(s, eta) })
	if result.Method == "cma-es" {
		result.Restarts = cmaes.IPOP
	}
	readWord(s, "restarts", "ipop (larger and larger populations), bipop (large and small ones in turn) or none (stay)", cmaes.Restarts.Known, &result.Restarts)
	result.Repeats = readRepeats(s, service && len(result.Initial) > 0)
	result.WarmStart = readWarmStart(s)
	return result
}

// readWord reads one of the words that are known; wanted says which they are.
func readWord[T ~string](s tree.Section, key, wanted string, known func(T) bool, target *T) {
	switch n, at := s.Get(key); {
	case n == nil:
	case n.Kind != tree.Text:
		s.Wrong(at, n, wanted)
	case !known(T(n.Raw)):
		s.Fault(at, n, "must be %s", wanted)
	default:
		*target = T(n.Raw)
	}
}

// readStop reads when the study ends, with the defaults filled in.
func readStop(s tree.Section, def definition.Definition) definition.Stop {
	result := definition.Stop{Trials: 50, Failures: 10}
	n, at := s.Get("stop")
	if n == nil {
		n, at = &tree.Node{Kind: tree.Mapping, Line: s.Node.Line}, tree.Join(s.Path, "stop")
	}
	s, ok := s.Open(at, n, "trials", "seconds", "data_passes", "training_seconds", "joules", "cost", "co2_g", "target_reached", "failures", "failures_in_a_row")
	if !ok {
		return result
	}
	s.Number("seconds", 0, year, &result.Seconds)
	s.Number("data_passes", 0, definition.MaxTrials*maxPasses, &result.DataPasses)
	s.Number("training_seconds", 0, definition.MaxTrials*year, &result.TrainingSeconds)
	s.Number("joules", 0, maxJoules, &result.Joules)
	s.Number("cost", 0, maxJoules, &result.Cost)
	s.Number("co2_g", 0, maxJoules, &result.CO2)
	s.Flag("target_reached", &result.TargetReached)
	s.Whole("failures", 0, definition.MaxTrials, &result.Failures)
	s.Whole("failures_in_a_row", 0, definition.MaxTrials, &result.FailuresInARow)
	// A grid ends by itself, a time limit ends everything, and every epoch is
	// some part of a pass. Seconds and joules may never be reported.
	bounded := def.Search.Ends() || result.Seconds > 0 || result.DataPasses > 0
	if bounded {
		result.Trials = 0
	}
	s.Whole("trials", 0, definition.MaxTrials, &result.Trials)
	if n, at := s.Get("trials"); n != nil && n.Kind == tree.Number && result.Trials == 0 && !bounded {
		s.Fault(at, n, "must be at least 1, unless the search is a grid, or stop.seconds or stop.data_passes bounds the study")
	}
	checkRepeats(s.Decoder, def.Search, result.Trials)
	if n, at := s.Get("target_reached"); result.TargetReached && !slices.ContainsFunc(def.Objectives, func(o definition.Objective) bool { return o.Target != nil }) {
		s.Fault(at, n, "needs a target to reach: give the objective one, such as target: 0.9")
	}
	return result
}

// The other largest bounds of a study.
const (
	maxPasses = 1_000_000 // of one trial
	maxJoules = 1e18
)

func readRetry(s tree.Section) definition.Retry {
	result := definition.Retry{Failures: 1}
	if s, ok := s.Part("retry", "failures"); ok {
		s.Whole("failures", 0, 100, &result.Failures)
	}
	return result
}
