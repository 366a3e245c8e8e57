package searchtest

import (
	"math"

	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/stopping"
)

// moment is an epoch of a rung.
type moment struct{ rung, epoch int }

// knows reports whether the trial reported the epoch before.
func (r *referee) knows(e search.Event) bool {
	_, known := r.at(e.Trial).reports[moment{e.Rung, e.Epoch}]
	return known
}

// report enters an intermediate value, and checks that the trial is stopped
// exactly when the rule says so.
func (r *referee) report(e search.Event, actions []search.Action) {
	if len(actions) > 1 || len(actions) == 1 && (actions[0].Kind != search.Stop || actions[0].Trial != e.Trial || actions[0].Reason == "") {
		r.Fatalf("the report %s was answered with %s", show(e), show(actions))
	}
	if e.Trial >= len(r.trials) {
		if len(actions) > 0 {
			r.Fatalf("the report %s of a repeat was answered with %s", show(e), show(actions))
		}
		return
	}
	if r.knows(e) {
		return
	}
	t := &r.trials[e.Trial]
	r.exhausted = false
	t.reports[moment{e.Rung, e.Epoch}] = r.scoreOf(e)
	loses := r.loses(e)
	if loses != (len(actions) == 1) {
		r.Fatalf("the report %s was answered with %s, though it loses: %t", show(e), show(actions), loses)
	}
	if loses {
		t.state, t.outcomes[t.rung] = failed, outcome{lost: true}
	}
}

// loses says whether the trial has lost with its report, by counting.
func (r *referee) loses(e search.Event) bool {
	rule, own := r.settings.EarlyStopping, r.scoreOf(e)
	if e.Epoch <= rule.GraceEpochs {
		return false
	}
	best := own
	if rule.Rule == stopping.Halving {
		at := false
		for _, rung := range r.settings.Rungs[:r.top()] {
			at = at || rung.Budget.Epochs == e.Epoch
		}
		if !at {
			return false
		}
	} else {
		for epoch := 1; epoch < e.Epoch; epoch++ {
			if before, known := r.trials[e.Trial].reports[moment{e.Rung, epoch}]; known {
				best = max(best, before)
			}
		}
	}
	if math.IsInf(own, -1) {
		return true
	}
	if rule.EveryEpochs > 0 && (e.Epoch-rule.GraceEpochs)%rule.EveryEpochs != 0 {
		return false
	}
	others, better, older := 0, 0, 0
	for number, other := range r.trials {
		score, known := other.reports[moment{e.Rung, e.Epoch}]
		if !known || number == e.Trial {
			continue
		}
		others++
		if score > best {
			better++
		} else if score == best && number < e.Trial {
			older++
		}
	}
	if others < rule.MinTrials {
		return false
	}
	switch rule.Rule {
	case stopping.Halving: // of equals the older one is the better one
		return better+older >= max(1, (others+1)/r.settings.Eta)
	case stopping.Percentile:
		return better > 0 && float64(better) > rule.Percentile/100*float64(others)-1e-6
	default:
		return better > 0 && 2*better >= others
	}
}
