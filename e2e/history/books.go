package history

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// maxLosses is how often the infrastructure may lose a trial, maxExplained how often
// where it is known why.
const maxLosses, maxExplained = 20, 100

// trials compares the trials with what the log tells of them.
func (c *check) trials() {
	created, epochs := 0, 0
	for number, t := range c.books.Trials {
		if t.Number != number {
			c.violated(Kept, "trial %d stands in place %d", t.Number, number)
		}
		if t.RepeatOf == nil {
			created++
		}
		epochs += t.Epochs
		l, known := c.lives[t.ID]
		if !known {
			c.violated(Kept, "the log does not tell of trial %d", t.Number)
			continue
		}
		c.trial(t, l)
	}
	if told := len(c.lives); told > len(c.books.Trials) {
		c.violated(Kept, "the log tells of %d trials, and %d are there", told, len(c.books.Trials))
	}
	if most := c.books.Definition.Stop.Trials; most > 0 && created > most {
		c.violated(Bounded, "%d trials were created of at most %d", created, most)
	}
	if counted := c.books.Study.Progress.Epochs; counted != epochs {
		c.violated(Recount, "the study counts %d epochs and its trials %d", counted, epochs)
	}
}

func (c *check) trial(t trial.Trial, l *life) {
	if t.State != l.state || t.LeaseEpoch != l.lease {
		c.violated(Kept, "trial %d is %s under lease %d, and its log ends with %s under lease %d", t.Number, t.State, t.LeaseEpoch, l.state, l.lease)
	}
	if c.books.Study.Status.Over() && !t.State.Terminal() {
		c.violated(OneEnd, "the study is %s and trial %d is %s", c.books.Study.Status, t.Number, t.State)
	}
	if gone := t.State == trial.Lost || t.State == trial.Failed; gone && !c.failed[t.Number] {
		c.violated(Bounded, "trial %d is %s, and its search was not told that it will not be measured", t.Number, t.State)
	}
	if l.promoted > t.Promotions {
		c.violated(Bounded, "trial %d was leased %d times after a pause and promoted %d times", t.Number, l.promoted, t.Promotions)
	}
	if most := c.books.Definition.Retry.Failures + 1; t.Failures > most || t.Losses-t.Explained > maxLosses || t.Explained > maxExplained {
		c.violated(Bounded, "trial %d has %d failures of at most %d, and %d losses of at most %d", t.Number, t.Failures, most, t.Losses-t.Explained, maxLosses)
	}
	var seconds trial.Float
	for _, report := range l.reports {
		seconds += report.Seconds
	}
	if t.Epochs != len(l.reports) || !equal(t.Seconds, seconds) {
		c.violated(Recount, "trial %d counts %d epochs in %v s, and its reports are %d with %v s", t.Number, t.Epochs, float64(t.Seconds), len(l.reports), float64(seconds))
	}
	for _, result := range t.Results {
		c.result(t, l, result)
	}
	c.checkpoint(t, l)
}

// result compares a result with the report that ended its budget.
func (c *check) result(t trial.Trial, l *life, result trial.Result) {
	last := result.Budget.Epochs
	if result.Epoch > 0 {
		last = result.Epoch
	}
	at := l.find(result.Rung, last)
	if at < 0 {
		c.violated(Recount, "trial %d has a result at rung %d and no report of epoch %d", t.Number, result.Rung, last)
		return
	}
	for i, objective := range c.books.Definition.Objectives {
		if objective.Metric == "" {
			continue // a formula's value depends on more than the report
		}
		value, reported := l.reports[at].Metrics[objective.Metric]
		if reported && (i >= len(result.Values) || !equal(value, result.Values[i])) {
			c.violated(Recount, "trial %d reported %s = %v at the end of rung %d, and its result has %v", t.Number, objective.Metric, float64(value), result.Rung, result.Values)
		}
	}
}

// checkpoint compares what a trial would go on from with what was committed.
func (c *check) checkpoint(t trial.Trial, l *life) {
	kept := t.Checkpoint
	if kept == nil {
		return
	}
	if !slices.Contains(l.checkpoints, *kept) {
		c.violated(Behind, "trial %d would go on from %+v, which nobody committed", t.Number, *kept)
	}
	if c.books.Artifacts == nil {
		return
	}
	if came := c.books.Artifacts[kept.Artifact]; came != kept.Artifact {
		c.violated(Behind, "the checkpoint of trial %d is %s, and what the server has under that name is %q", t.Number, kept.Artifact, came)
	}
}

// best looks for the best trial by itself. What several objectives, constraints
// and repeats make of it is not told by single reports.
func (c *check) best() {
	def := c.books.Definition
	if len(def.Objectives) != 1 || def.Objectives[0].Metric == "" || len(def.Constraints) > 0 || def.Search.Repeats != nil {
		return
	}
	highest, want := -1, trial.Float(math.NaN())
	for _, t := range c.books.Trials {
		value, measured := t.Value(0)
		if !measured || value.IsNaN() {
			continue
		}
		rung := t.Results[len(t.Results)-1].Rung
		if rung > highest || rung == highest && better(value, want, def.Objectives[0].Direction) {
			highest, want = rung, value
		}
	}
	told := c.books.Study.Progress.Best
	switch {
	case told == nil && highest >= 0:
		c.violated(Recount, "no trial is called the best, and one has %v at rung %d", float64(want), highest)
	case told != nil && (told.Rung != highest || !equal(told.Value, want)):
		c.violated(Recount, "the best is said to have %v at rung %d, and the reports say %v at rung %d", float64(told.Value), told.Rung, float64(want), highest)
	}
}

func better(value, than trial.Float, direction definition.Direction) bool {
	if direction == definition.Maximize {
		return value > than
	}
	return value < than
}

// equal compares to the last bit; NaN is NaN.
func equal(a, b trial.Float) bool {
	return math.Float64bits(float64(a)) == math.Float64bits(float64(b)) || a.IsNaN() && b.IsNaN()
}

// acknowledged looks for everything that a client was told is saved.
func (c *check) acknowledged() {
	for _, one := range c.operations {
		if !one.Acknowledged || one.Void {
			continue
		}
		l, known := c.lives[one.Trial]
		if !known || !c.kept(one, l) {
			c.violated(Kept, "%s is not", one)
		}
	}
}

func (c *check) kept(one Operation, l *life) bool {
	switch one.Kind {
	case Lease:
		return l.workers[one.LeaseEpoch] == one.Worker
	case Report:
		return l.has(one.Rung, one.Epoch)
	case Checkpoint: // one that is older than what the trial would go on from changes nothing
		return slices.ContainsFunc(l.checkpoints, func(kept trial.Checkpoint) bool {
			return kept.Epoch > one.Epoch || kept.Epoch == one.Epoch && (one.Artifact == "" || kept.Artifact == one.Artifact)
		})
	default:
		return l.states[held{one.LeaseEpoch, one.State}]
	}
}

// String names the operation.
func (o Operation) String() string {
	switch o.Kind {
	case Lease:
		return fmt.Sprintf("lease %d of trial %s to %s", o.LeaseEpoch, o.Trial, o.Worker)
	case Report:
		return fmt.Sprintf("the report of epoch %d of trial %s at rung %d under lease %d", o.Epoch, o.Trial, o.Rung, o.LeaseEpoch)
	case Checkpoint:
		return fmt.Sprintf("the checkpoint %.12s of epoch %d of trial %s under lease %d", o.Artifact, o.Epoch, o.Trial, o.LeaseEpoch)
	default:
		return fmt.Sprintf("that trial %s is %s after lease %d", o.Trial, o.State, o.LeaseEpoch)
	}
}

// sent looks for the sender of everything that is there.
func (c *check) sent() {
	reports := make(map[trial.ID][]Operation)
	artifacts := make(map[trial.ID]map[string]bool)
	for _, one := range c.operations {
		switch {
		case one.Kind == Report:
			reports[one.Trial] = append(reports[one.Trial], one)
		case one.Kind == Checkpoint && one.Artifact != "":
			if artifacts[one.Trial] == nil {
				artifacts[one.Trial] = make(map[string]bool)
			}
			artifacts[one.Trial][one.Artifact] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.lives)) {
		for _, report := range c.lives[id].reports {
			if !slices.ContainsFunc(reports[id], func(one Operation) bool { return sends(one, report) }) {
				c.violated(Sent, "nobody sent epoch %d of trial %s with %v under lease %d", report.Epoch, id, report.Metrics, report.LeaseEpoch)
			}
		}
		for _, kept := range c.lives[id].checkpoints {
			if len(artifacts) > 0 && !artifacts[id][kept.Artifact] {
				c.violated(Sent, "nobody sent the checkpoint %s of trial %s", kept.Artifact, id)
			}
		}
	}
}

// sends reports whether the operation is the accepted report's.
func sends(one Operation, report trial.Report) bool {
	return one.Epoch == report.Epoch && one.Rung == report.Rung &&
		(one.LeaseEpoch == 0 || one.LeaseEpoch == report.LeaseEpoch) &&
		(one.Worker == "" || one.Worker == report.Worker) &&
		maps.EqualFunc(one.Metrics, report.Metrics, equal)
}
