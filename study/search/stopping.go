package search

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/trial"
)

// StoppingRule names a rule by which trials are stopped while they train.
type StoppingRule string

// The rules.
const (
	// MedianRule stops a trial that is worse than the median of the others at
	// the same epoch (Golovin et al. 2017, section 3.2.2).
	MedianRule StoppingRule = "median"
	// PercentileRule keeps the best percentage instead of the better half.
	PercentileRule StoppingRule = "percentile"
	// HalvingRule is asynchronous successive halving that stops the losers
	// instead of pausing them (Li et al. 2020; ASHA's stopping variant).
	HalvingRule StoppingRule = "halving"
)

// StoppingRules lists all rules.
func StoppingRules() []StoppingRule {
	return []StoppingRule{MedianRule, PercentileRule, HalvingRule}
}

// EarlyStopping is a rule with its settings, complete.
type EarlyStopping struct {
	Rule StoppingRule `json:"rule"`
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

// DefaultStopping is the rule with the defaults of the study file; eta is the
// ladder's.
func DefaultStopping(rule StoppingRule, eta int) EarlyStopping {
	switch rule {
	case HalvingRule: // with fewer there is no best one of eta
		return EarlyStopping{Rule: rule, MinTrials: max(1, eta-1)}
	case PercentileRule:
		return EarlyStopping{Rule: rule, Percentile: 25, GraceEpochs: 1, MinTrials: 5, EveryEpochs: 1}
	}
	return EarlyStopping{Rule: rule, GraceEpochs: 1, MinTrials: 5, EveryEpochs: 1}
}

// validateStopping says what is wrong with the rule and how it goes with the
// rest of the settings.
func (s Settings) validateStopping(require requirement) {
	e := s.EarlyStopping
	if e == nil {
		return
	}
	const path = "search.early_stopping"
	require(slices.Contains(StoppingRules(), e.Rule), path+".rule", string(e.Rule), "must be median, percentile or halving")
	require(len(s.Maximize) == 1, path, nil, "needs one objective: what a trial has before it is measured is not ranked by several; leave it out")
	require(e.GraceEpochs >= 0, path+".grace_epochs", e.GraceEpochs, "must be at least 0")
	require(e.MinTrials >= 1, path+".min_trials", e.MinTrials, "must be at least 1")
	if e.Rule == PercentileRule {
		require(e.Percentile > 0 && e.Percentile < 100, path+".percentile", fmt.Sprint(e.Percentile), "must be above 0 and below 100: how many of a hundred go on")
	} else {
		require(e.Percentile == 0, path+".percentile", fmt.Sprint(e.Percentile), "belongs to rule: percentile; leave it out")
	}
	if e.Rule != HalvingRule {
		require(e.EveryEpochs >= 1, path+".every_epochs", e.EveryEpochs, "must be at least 1")
		return
	}
	require(e.EveryEpochs == 0, path+".every_epochs", e.EveryEpochs, "must be left out with rule: halving, which compares at the epochs of the ladder's rungs")
	require(s.Promotion == budget.NoPromotion, path+".rule", string(e.Rule),
		"needs promotion: none, as trials go on by themselves until they are stopped; promotion: asynchronous is the same with trials that pause")
	require(len(s.Rungs) >= 2, path+".rule", string(e.Rule), "needs a ladder of two rungs or more to compare at: give budget.epochs a min below its max")
	for i := 1; i < len(s.Rungs); i++ {
		if s.Rungs[i].Budget.DataFraction != s.Rungs[0].Budget.DataFraction {
			require(false, path+".rule", string(e.Rule),
				"needs a ladder whose data fraction does not grow, as a trial trains on one share of the data from its first epoch: write budget.policy: epochs")
			return
		}
	}
}

// observation is an intermediate value of a trial: what it had after an epoch
// of a rung that it has not completed yet.
type observation struct {
	Rung  int `json:"rung"`
	Epoch int `json:"epoch"`
	// Values has one entry for each objective.
	Values []trial.Float `json:"values"`
}

// moment is where trials compare: the same epoch, on the same share of the data.
type moment struct{ rung, epoch int }

// known reports whether the trial has a value there already.
func (t *record) known(at moment) bool {
	return slices.ContainsFunc(t.Reports, func(o observation) bool { return o.Rung == at.rung && o.Epoch == at.epoch })
}

// report takes an intermediate value in that was not known.
func (h *history) report(number int, o observation) {
	t := &h.trials[number]
	t.Reports = append(t.Reports, o)
	score := scoreOf(o.Values, h.maximize)
	if h.halving {
		if i := h.rungAt(o.Epoch); i >= 0 {
			// It has what a trial has that was measured there, and goes on or
			// is stopped at once: nobody is left to promote.
			h.rungs[i].add(entry{trial: number, score: score, promoted: true}, nil)
			h.arrived(number)
		}
		return
	}
	at := moment{o.Rung, o.Epoch}
	h.scores[at] = slices.Insert(h.scores[at], ahead(h.scores[at], score), score)
}

// ahead counts the scores that are better; they are sorted, the best first.
func ahead(scores []float64, score float64) int {
	return sort.Search(len(scores), func(i int) bool { return scores[i] <= score })
}

// rungAt is the rung below the top that ends with the epoch, or -1.
func (h *history) rungAt(epoch int) int {
	return slices.IndexFunc(h.ladder[:len(h.ladder)-1], func(r budget.Rung) bool { return r.Budget.Epochs == epoch })
}

// stop takes a trial off its worker for good: it was beaten. At its rung it
// counts like a failure, since it has no value of that budget. Under halving it
// has its value at the rung where it was stopped, and no place at the top.
func (h *history) stop(number int) {
	t := &h.trials[number]
	t.Status = stopped
	h.arrived(number)
	if !h.halving {
		h.rank(t, entry{trial: number, failed: true})
	}
	h.out--
}

// judge decides whether a trial goes on after its observation, which is in the
// history, and why not.
func (e *EarlyStopping) judge(h *history, number int, o observation) (reason string, stop bool) {
	if o.Epoch <= e.GraceEpochs {
		return "", false
	}
	score := scoreOf(o.Values, h.maximize)
	if e.Rule == HalvingRule {
		return e.judgeAtRung(h, entry{trial: number, score: score}, o.Epoch)
	}
	if math.IsInf(score, -1) {
		return fmt.Sprintf("diverged: it has no value that can win after epoch %d at rung %d", o.Epoch, o.Rung), true
	}
	scores := h.scores[moment{o.Rung, o.Epoch}]
	others := len(scores) - 1
	if (o.Epoch-e.GraceEpochs)%e.EveryEpochs != 0 || others < e.MinTrials {
		return "", false
	}
	best := score
	for _, before := range h.trials[number].Reports {
		if before.Rung == o.Rung && before.Epoch < o.Epoch {
			best = max(best, scoreOf(before.Values, h.maximize))
		}
	}
	better := ahead(scores, best) // its own is not: it is at most its best
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
	if e.Rule == MedianRule {
		percentile = 50
	}
	// 0.1 · 30 is a little more than 3, and must not count as 4.
	return percentile, max(1, int(math.Ceil(percentile/100*float64(others)-1e-9)))
}

// judgeAtRung keeps the best 1/eta of a rung's trials so far, and the best one
// however few they are.
func (e *EarlyStopping) judgeAtRung(h *history, own entry, epoch int) (reason string, stop bool) {
	i := h.rungAt(epoch)
	if i < 0 {
		return "", false
	}
	if math.IsInf(own.score, -1) {
		return fmt.Sprintf("diverged: it has no value that can win after the %d epochs of rung %d", epoch, i), true
	}
	r := &h.rungs[i]
	place, _ := slices.BinarySearchFunc(r.entries, own, entry.compare)
	n, top := len(r.entries), max(1, r.top(h.eta))
	if n-1 < e.MinTrials || place < top {
		return "", false
	}
	return fmt.Sprintf("rank %d of %d after the %d epochs of rung %d, where the best %d go on", place+1, n, epoch, i, top), true
}
