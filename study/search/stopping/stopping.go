// Package stopping decides which trials stop while they train, because others were better
// at the same epoch.
package stopping

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/study/search/ladder"
)

// Rule names a rule by which trials are stopped while they train.
type Rule string

// The rules.
const (
	// Median stops a trial that is worse than the median of the others at
	// the same epoch (Golovin et al. 2017, section 3.2.2).
	Median Rule = "median"
	// Percentile keeps the best percentage instead of the better half.
	Percentile Rule = "percentile"
	// Halving is asynchronous successive halving that stops the losers
	// instead of pausing them (Li et al. 2020; ASHA's stopping variant).
	Halving Rule = "halving"
)

// Rules lists all rules.
func Rules() []Rule {
	return []Rule{Median, Percentile, Halving}
}

// EarlyStopping is a rule with its settings, complete.
type EarlyStopping struct {
	Rule Rule `json:"rule"`
	// Percentile is how many of a hundred go on, above 0 and below 100; 0 for
	// the other rules.
	Percentile float64 `json:"percentile,omitempty"`
	// GraceEpochs is up to which epoch nobody is stopped.
	GraceEpochs int `json:"grace_epochs"`
	// MinTrials is how many other trials must have a value at the same epoch
	// before one is stopped there, at least 1.
	MinTrials int `json:"min_trials"`
	// EveryEpochs is how many epochs lie between two comparisons, counted from
	// GraceEpochs, at least 1; 0 for halving, which compares at the rungs.
	EveryEpochs int `json:"every_epochs,omitempty"`
}

// Default is the rule with the defaults of the study file; eta is the
// ladder's.
func Default(rule Rule, eta int) EarlyStopping {
	switch rule {
	case Halving: // with fewer there is no best one of eta
		return EarlyStopping{Rule: rule, MinTrials: max(1, eta-1)}
	case Percentile:
		return EarlyStopping{Rule: rule, Percentile: 25, GraceEpochs: 1, MinTrials: 5, EveryEpochs: 1}
	}
	return EarlyStopping{Rule: rule, GraceEpochs: 1, MinTrials: 5, EveryEpochs: 1}
}

// Judge decides whether a trial goes on after its observation, which is in the
// history, and why not.
func Judge(e EarlyStopping, h *ladder.History, number int, o ladder.Observation) (reason string, stop bool) {
	if o.Epoch <= e.GraceEpochs {
		return "", false
	}
	score := ladder.ScoreOf(o.Values, h.Maximize)
	if e.Rule == Halving {
		return e.judgeAtRung(h, ladder.Entry{Trial: number, Score: score}, o.Epoch)
	}
	if math.IsInf(score, -1) {
		return fmt.Sprintf("diverged: it has no value that can win after epoch %d at rung %d", o.Epoch, o.Rung), true
	}
	scores := h.Scores[ladder.Moment{Rung: o.Rung, Epoch: o.Epoch}]
	others := len(scores) - 1
	if (o.Epoch-e.GraceEpochs)%e.EveryEpochs != 0 || others < e.MinTrials {
		return "", false
	}
	best := score
	for _, before := range h.Trials[number].Reports {
		if before.Rung == o.Rung && before.Epoch < o.Epoch {
			best = max(best, ladder.ScoreOf(before.Values, h.Maximize))
		}
	}
	better := ladder.Ahead(scores, best) // its own is not: it is at most its best
	if percentile, keep := e.keeps(others); better >= keep {
		return fmt.Sprintf("after epoch %d at rung %d %d of %d other trials had a better value than its best so far: the best %s%% go on",
			o.Epoch, o.Rung, better, others, strings.TrimSuffix(fmt.Sprintf("%.1f", percentile), ".0")), true
	}
	return "", false
}

// keeps is how many better ones a trial may have beside it, exclusive, among
// the others.
func (e *EarlyStopping) keeps(others int) (percentile float64, keep int) {
	percentile = e.Percentile
	if e.Rule == Median {
		percentile = 50
	}
	// 0.1 · 30 is a little more than 3, and must not count as 4.
	return percentile, max(1, int(math.Ceil(percentile/100*float64(others)-1e-9)))
}

// judgeAtRung keeps the best 1/eta of a rung's trials so far, and the best one
// however few they are.
func (e *EarlyStopping) judgeAtRung(h *ladder.History, own ladder.Entry, epoch int) (reason string, stop bool) {
	i := h.RungAt(epoch)
	if i < 0 {
		return "", false
	}
	if math.IsInf(own.Score, -1) {
		return fmt.Sprintf("diverged: it has no value that can win after the %d epochs of rung %d", epoch, i), true
	}
	r := &h.Rungs[i]
	place, _ := slices.BinarySearchFunc(r.Entries, own, ladder.Entry.Compare)
	n, top := len(r.Entries), max(1, r.Top(h.Eta))
	if n-1 < e.MinTrials || place < top {
		return "", false
	}
	return fmt.Sprintf("rank %d of %d after the %d epochs of rung %d, where the best %d go on", place+1, n, epoch, i, top), true
}
