package studyfile

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// repeatedTrials is how many configurations are trained again unless the file
// says so.
const repeatedTrials = 3

// readRepeats reads how often the best configurations are trained in all: a number,
// or a mapping with it. Nil: once.
func readRepeats(s tree.Section) *search.Repeats {
	n, at := s.Get("repeats")
	if n == nil {
		return nil
	}
	s.Places.Put(at, at, n.Line)
	result := search.Repeats{Trials: repeatedTrials, Times: 3}
	switch n.Kind {
	case tree.Number:
		s.WholeOf(at, n, 1, search.MaxRepeatedTimes, &result.Times)
	case tree.Mapping:
		s, ok := s.Open(at, n, "trials", "times")
		if !ok {
			return nil
		}
		s.Whole("trials", 1, search.MaxRepeatedTrials, &result.Trials)
		s.Whole("times", 1, search.MaxRepeatedTimes, &result.Times)
	default:
		s.Wrong(at, n, "how often the best are trained in all, such as 3, or a mapping of trials and times")
		return nil
	}
	if result.Times == 1 {
		return nil
	}
	return &result
}

// checkRepeats says that repeats would never come.
func checkRepeats(d *tree.Decoder, search definition.Search, trials int) {
	if search.Repeats != nil && trials == 0 && !search.Ends() && search.Promotion != budget.Population {
		d.Report(problem.Field{Path: "search.repeats",
			Message: "needs stop.trials: the best are trained again when all trials are created and done, which never comes without a number of trials"})
	}
}
