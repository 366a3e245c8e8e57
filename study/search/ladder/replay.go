package ladder

import (
	"encoding/json"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/space"
)

// Replay puts a recorded trial through its life again.
func (h *History) Replay(s space.Space, number int, t Record) error {
	completed := t.Rung - t.Start
	if t.Status == Measured {
		completed++
	}
	known := slices.Contains([]Status{Out, Measured, Failed, stopped}, t.Status)
	if !known || t.Start < 0 || t.Rung < t.Start || t.Rung >= len(h.Rungs) || len(t.Results) != completed || len(t.Violations) > completed {
		return problem.New(problem.Invalid, "the snapshot's trial %d is at a rung that the study's ladder does not have", number)
	}
	if t.RetryOf != nil && (*t.RetryOf < 0 || *t.RetryOf >= number) {
		return problem.New(problem.Invalid, "the snapshot's trial %d tries trial %d again, which is none before it", number, *t.RetryOf)
	}
	var configuration space.Configuration
	if err := json.Unmarshal(t.Params, &configuration); err != nil {
		return problem.New(problem.Invalid, "the snapshot's trial %d has no readable configuration: %w", number, err)
	}
	if faults := s.Check(configuration); len(faults) > 0 {
		return problem.New(problem.Invalid, "the snapshot's trial %d does not fit the study's space: %s", number, faults[0])
	}
	if !t.drawn(len(s.Parameters)) {
		return problem.New(problem.Invalid, "the snapshot's trial %d was drawn at no point of the study's space", number)
	}
	h.Create(Proposal{Configuration: configuration, Origin: t.Origin, Draw: t.Draw, RetryOf: t.RetryOf}, Slot{t.Bracket, t.Start})
	for i, values := range t.Results {
		if len(values) != len(h.Maximize) {
			return problem.New(problem.Invalid, "the snapshot's trial %d has %d values for %d objectives", number, len(values), len(h.Maximize))
		}
		violation := t.violation(i)
		if !(violation >= 0) {
			return problem.New(problem.Invalid, "the snapshot's trial %d has a violation below 0", number)
		}
		h.Measure(number, values, violation)
		if at := t.Start + i; at < t.Rung {
			h.Promote(number)
		}
	}
	if err := h.replayReports(number, t); err != nil {
		return err
	}
	switch t.Status {
	case Failed:
		h.Fail(number)
	case stopped:
		h.Stop(number)
	}
	return nil
}

// drawn reports whether the record's draws can be of a space of n parameters.
func (t *Record) drawn(n int) bool {
	outside := func(u float64) bool { return !(u >= 0 && u <= 1) }
	return t.Draw == nil || len(t.Draw.Point) == n && !slices.ContainsFunc(t.Draw.Point, outside)
}

// replayReports puts a recorded trial's intermediate values back.
func (h *History) replayReports(number int, t Record) error {
	for _, o := range t.Reports {
		within := o.Rung >= t.Start && o.Rung <= t.Rung && o.Epoch >= 1 && o.Epoch < h.Ladder[o.Rung].Budget.Epochs
		if !within || len(o.Values) != len(h.Maximize) || h.Trials[number].Known(Moment{Rung: o.Rung, Epoch: o.Epoch}) {
			return problem.New(problem.Invalid, "the snapshot's trial %d has a report that cannot be, of epoch %d at rung %d", number, o.Epoch, o.Rung)
		}
		h.Report(number, o)
	}
	return nil
}

// Reorder puts the first outcomes, which were replayed trial by trial, in the
// order in which they came. Older snapshots do not tell it.
func (h *History) Reorder(trials []Record) error {
	if !slices.ContainsFunc(trials, func(t Record) bool { return t.Arrived != 0 }) {
		return nil
	}
	order := make([]int, len(h.Arrivals))
	for i := range order {
		order[i] = -1
	}
	for number, t := range trials {
		arrived := h.Trials[number].Arrived > 0
		if !arrived && t.Arrived == 0 {
			continue
		}
		if !arrived || t.Arrived < 1 || t.Arrived > len(order) || order[t.Arrived-1] >= 0 {
			return problem.New(problem.Invalid, "the snapshot's trial %d had outcome %d of %d, which cannot be", number, t.Arrived, len(order))
		}
		order[t.Arrived-1], h.Trials[number].Arrived = number, t.Arrived
	}
	h.Arrivals = order
	return nil
}
