package search

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
)

// Waiting is how many enqueued configurations wait to be created.
func (m *Method) Waiting() int { return len(m.queue) }

// queued is a configuration that waits to be tried.
type queued struct {
	configuration space.Configuration // complete
	retryOf       *int                // the failed trial that it is of; nil: of none
}

// Retryable are the trials that failed, or were lost, and that are not tried again
// yet: their numbers, the first one first.
func (m *Method) Retryable() []int {
	again := map[int]bool{}
	note := func(of *int) {
		if of != nil {
			again[*of] = true
		}
	}
	for _, one := range m.queue {
		note(one.retryOf)
	}
	for _, t := range m.history.Trials {
		note(t.RetryOf)
	}
	var failed []int
	for number, t := range m.history.Trials {
		if t.Status == ladder.Failed && !again[number] {
			failed = append(failed, number)
		}
	}
	return failed
}

// enqueue takes a configuration that somebody wants tried. What it lacks is
// drawn now, so that what cannot be completed is refused now.
func (m *Method) enqueue(e Event) error {
	if m.repeats.begun() {
		return problem.New(problem.Conflict,
			"nothing more can be enqueued: the search is over and its best trials are trained again (search.repeats); create a study with the configurations as search.initial")
	}
	if bound := m.settings.MaxTrials; bound > 0 && len(m.history.Trials)+len(m.queue) >= bound {
		return problem.New(problem.Conflict,
			"nothing more can be enqueued: stop.trials is %d, %d are created and %d wait in the queue; give the study more trials first ('tandem study extend')",
			bound, len(m.history.Trials), len(m.queue))
	}
	if e.RetryOf != nil {
		if !slices.Contains(m.Retryable(), *e.RetryOf) {
			return problem.New(problem.Conflict, "trial %d cannot be tried again: it has not failed, or was tried again already", *e.RetryOf)
		}
		m.queue = append(m.queue, queued{m.history.Configuration(*e.RetryOf), e.RetryOf})
		return nil
	}
	before := *m.source
	complete, err := m.history.Cube.Complete(e.Configuration, rand.New(m.source))
	if err != nil {
		*m.source = before
		return err
	}
	m.queue = append(m.queue, queued{configuration: complete})
	return nil
}

// dequeue proposes the configuration that waits longest.
func (m *Method) dequeue() (ladder.Proposal, bool) {
	if len(m.queue) == 0 {
		return ladder.Proposal{}, false
	}
	first := m.queue[0]
	m.queue = m.queue[1:]
	reason := "enqueued by a user"
	if first.retryOf != nil {
		reason = fmt.Sprintf("tries trial %d again, which failed", *first.retryOf)
	}
	if left := len(m.queue); left > 0 {
		reason += fmt.Sprintf("; %d more wait", left)
	}
	return ladder.Proposal{Configuration: first.configuration, Origin: propose.OriginEnqueued, RetryOf: first.retryOf, Reason: reason}, true
}
