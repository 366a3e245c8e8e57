package studyfile

import (
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

const (
	// repeatedTrials is how many configurations are trained again unless the file
	// says so.
	repeatedTrials = 3
	// comparedTimes is how many results at most the best and the present settings of a
	// service then have.
	comparedTimes = 8
)

// readRepeats reads how often the best configurations are trained in all: a number,
// or a mapping with it. Nil: once.
//
// A service is compared with its present settings, where search.initial has them; once
// is then kept, as the file says so.
func readRepeats(s tree.Section, present bool) *search.Repeats {
	n, at := s.Get("repeats")
	result := search.Repeats{Trials: repeatedTrials, Times: 3, Present: present}
	if present {
		result.Trials, result.Times = 1, comparedTimes
	}
	if n == nil {
		if present {
			return &result
		}
		return nil
	}
	s.Places.Put(at, at, n.Line)
	switch n.Kind {
	case tree.Number:
		s.WholeOf(at, n, 1, search.MaxRepeatedTimes, &result.Times)
	case tree.Mapping:
		s, ok := s.Open(at, n, "trials", "times", "present")
		if !ok {
			return nil
		}
		s.Whole("trials", 1, search.MaxRepeatedTrials, &result.Trials)
		s.Whole("times", 1, search.MaxRepeatedTimes, &result.Times)
		result.Present = false
		s.Flag("present", &result.Present)
	default:
		s.Wrong(at, n, "how often the best are trained in all, such as 3, or a mapping of trials and times")
		return nil
	}
	if result.Times == 1 && !present {
		return nil
	}
	result.Present = result.Present && result.Times > 1
	return &result
}

// checkRepeats says that repeats would never come.
func checkRepeats(d *tree.Decoder, search definition.Search, trials int) {
	if search.Repeats != nil && search.Repeats.Present && len(search.Initial) == 0 {
		d.Report(problem.Field{Path: "search.repeats", Message: "has present, which needs search.initial: the present settings first"})
	}
	if search.Repeats != nil && trials == 0 && !search.Ends() {
		d.Report(problem.Field{Path: "search.repeats",
			Message: "needs stop.trials: the best are trained again when all trials are created and done, which never comes without a number of trials"})
	}
}
