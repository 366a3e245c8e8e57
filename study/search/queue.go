package search

import (
	"fmt"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
)

// Waiting implements [Queue].
func (m *machine) Waiting() int { return len(m.queue) }

// enqueue takes a configuration that somebody wants tried. What it lacks is
// drawn now, so that what cannot be completed is refused now.
func (m *machine) enqueue(given space.Configuration) error {
	if m.repeats.begun() {
		return problem.New(problem.Conflict,
			"nothing more can be enqueued: the search is over and its best trials are trained again (search.repeats); create a study with the configurations as search.initial")
	}
	if bound := m.settings.MaxTrials; bound > 0 && len(m.history.Trials)+len(m.queue) >= bound {
		return problem.New(problem.Conflict,
			"nothing more can be enqueued: stop.trials is %d, %d are created and %d wait in the queue; create a study with a larger stop.trials and give it the configurations as search.initial",
			bound, len(m.history.Trials), len(m.queue))
	}
	before := *m.source
	complete, err := m.history.Cube.Complete(given, rand.New(m.source))
	if err != nil {
		*m.source = before
		return err
	}
	m.queue = append(m.queue, complete)
	return nil
}

// dequeue proposes the configuration that waits longest.
func (m *machine) dequeue() (ladder.Proposal, bool) {
	if len(m.queue) == 0 {
		return ladder.Proposal{}, false
	}
	first := m.queue[0]
	m.queue = m.queue[1:]
	reason := "enqueued by a user"
	if left := len(m.queue); left > 0 {
		reason = fmt.Sprintf("enqueued by a user; %d more wait", left)
	}
	return ladder.Proposal{Configuration: first, Origin: propose.OriginEnqueued, Reason: reason}, true
}
