package search

import (
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search/ladder"
)

// Expects reports whether the trial is out: the method counts on an outcome of it.
func (m *Method) Expects(trial int) bool {
	if again := m.at(trial); again != nil {
		return again.Status == ladder.Out
	}
	return trial < len(m.history.Trials) && m.history.Trials[trial].Status == ladder.Out
}

// Rests reports whether the trial was measured at its rung and nobody took its
// place: it may be promoted, or nothing follows.
func (m *Method) Rests(trial int) bool {
	if trial >= len(m.history.Trials) {
		return false
	}
	t := &m.history.Trials[trial]
	return t.Status == ladder.Measured
}

// extend moves the bound on trials. Behind repeats there are no more trials: their
// numbers follow those of the trials.
func (m *Method) extend(trials int) error {
	taken := len(m.history.Trials) + len(m.queue)
	if trials != 0 && trials < taken {
		return problem.New(problem.Conflict, "stop.trials cannot become %d: %d are created and %d wait in the queue", trials, len(m.history.Trials), len(m.queue))
	}
	if m.repeats.begun() && trials != m.settings.MaxTrials {
		return problem.New(problem.Conflict, "stop.trials cannot become %d: the search is over and its best trials are trained again (search.repeats); create a study with search.warm_start", trials)
	}
	m.settings.MaxTrials, m.dry = trials, false
	return nil
}
