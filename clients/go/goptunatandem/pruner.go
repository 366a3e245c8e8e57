package goptunatandem

import (
	"fmt"
	"maps"
	"math"

	"github.com/c-bata/goptuna"
	"github.com/c-bata/goptuna/medianstopping"
	"github.com/c-bata/goptuna/successivehalving"
)

// rule is how the server stops trials early. A pruner counts in steps, as a trial
// reports them; the server counts reports, each an epoch.
type rule struct {
	stopping map[string]any // search.early_stopping, without what counts in steps
	warmup   int            // nobody is stopped before this step
	// eta is halving's factor between two rungs, 0 for other rules; lowest are the steps
	// of its lowest rung.
	eta, lowest int
}

func ruleOf(pruner goptuna.Pruner) (rule, error) {
	percentile := func(of medianstopping.PercentilePruner) rule {
		stopping := map[string]any{"rule": "median", "min_trials": max(of.NStartUpTrials, 1)}
		if of.Percentile != 50 {
			stopping["rule"], stopping["percentile"] = "percentile", of.Percentile
		}
		return rule{stopping: stopping, warmup: of.NWarmUpSteps}
	}
	switch of := pruner.(type) {
	case nil:
		return percentile(*medianstopping.NewMedianPruner().PercentilePruner), nil
	case *medianstopping.MedianPruner:
		return percentile(*of.PercentilePruner), nil
	case *medianstopping.PercentilePruner:
		return percentile(*of), nil
	case *successivehalving.Pruner:
		times := math.Pow(float64(of.ReductionFactor), float64(of.MinEarlyStoppingRate))
		return rule{stopping: map[string]any{"rule": "halving"}, eta: of.ReductionFactor, lowest: of.MinResource * int(times)}, nil
	}
	return rule{}, fmt.Errorf("goptunatandem: Pruner is nil, or one of goptuna's packages medianstopping or successivehalving, not %T: the server has no rule for it", pruner)
}

// reports is how many of the steps are below a number of them.
func reports(steps []int, below int) int {
	count := 0
	for _, step := range steps {
		if step < below {
			count++
		}
	}
	return count
}

// rungs is the epochs of halving's lowest rung; 0 if there is no ladder.
func (r rule) rungs(steps []int) int {
	if r.eta == 0 || len(steps) < 2 {
		return 0
	}
	if lowest := max(reports(steps, steps[0]+r.lowest), 1); lowest < len(steps) {
		return lowest
	}
	return 0
}

// budget is the study's, for trials that report at these steps.
func (r rule) budget(steps []int) map[string]any {
	epochs := max(len(steps), 1)
	if lowest := r.rungs(steps); lowest > 0 {
		return map[string]any{"policy": "epochs", "epochs": map[string]int{"min": lowest, "max": epochs}, "eta": r.eta}
	}
	return map[string]any{"epochs": epochs}
}

// search is what belongs into the study's search.
func (r rule) search(steps []int) map[string]any {
	if len(steps) < 2 || r.eta > 0 && r.rungs(steps) == 0 {
		return map[string]any{}
	}
	stopping := maps.Clone(r.stopping)
	if r.eta == 0 {
		stopping["grace_epochs"] = reports(steps, r.warmup)
	}
	return map[string]any{"early_stopping": stopping}
}
