package definition

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search"
)

// repeatedTrials is how many configurations are trained again unless the file
// says so.
const repeatedTrials = 3

// repeats reads how often the best configurations are trained in all: a number,
// or a mapping with it. Nil: once.
func (d *decoder) repeats(s section) *search.Repeats {
	n, at := s.get("repeats")
	if n == nil {
		return nil
	}
	d.places.put(at, at, n.line)
	result := search.Repeats{Trials: repeatedTrials, Times: 3}
	switch n.kind {
	case number:
		d.wholeOf(at, n, 1, search.MaxRepeatedTimes, &result.Times)
	case mapping:
		s, ok := d.section(at, n, "trials", "times")
		if !ok {
			return nil
		}
		s.whole("trials", 1, search.MaxRepeatedTrials, &result.Trials)
		s.whole("times", 1, search.MaxRepeatedTimes, &result.Times)
	default:
		d.wrong(at, n, "how often the best are trained in all, such as 3, or a mapping of trials and times")
		return nil
	}
	if result.Times == 1 {
		return nil
	}
	return &result
}

// checkRepeats says that repeats would never come.
func (d *decoder) checkRepeats(search Search, trials int) {
	if search.Repeats != nil && trials == 0 && !search.ends() && search.Promotion != budget.Population {
		d.faults = append(d.faults, d.places.locate(problem.Field{Path: "search.repeats",
			Message: "needs stop.trials: the best are trained again when all trials are created and done, which never comes without a number of trials"}))
	}
}
