package definition

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search"
)

// earlyStopping reads by which rule trials are stopped while they train: its
// name, or a mapping with its settings. Nil: none is. eta is the ladder's.
func (d *decoder) earlyStopping(s section, eta int) *search.EarlyStopping {
	n, at := s.get("early_stopping")
	if n == nil {
		return nil
	}
	switch n.kind {
	case text:
		d.places.put(at, at, n.line)
		d.places.put(join(at, "rule"), at, n.line)
		if !d.stoppingRule(at, n) {
			return nil
		}
		rule := search.DefaultStopping(search.StoppingRule(n.raw), eta)
		return &rule
	case mapping:
	default:
		d.wrong(at, n, "a rule (median, percentile or halving) or a mapping with a rule")
		return nil
	}
	s, ok := d.section(at, n, "rule", "percentile", "grace_epochs", "min_trials", "every_epochs")
	if !ok {
		return nil
	}
	which, at := s.need("rule", "median, percentile or halving")
	if which == nil || !d.stoppingRule(at, which) {
		return nil
	}
	rule := search.DefaultStopping(search.StoppingRule(which.raw), eta)
	s.number("percentile", 0, 100, &rule.Percentile)
	s.whole("grace_epochs", 0, budget.MaxEpochs, &rule.GraceEpochs)
	s.whole("min_trials", 1, MaxTrials, &rule.MinTrials)
	s.whole("every_epochs", 1, budget.MaxEpochs, &rule.EveryEpochs)
	return &rule
}

func (d *decoder) stoppingRule(at string, n *node) bool {
	switch search.StoppingRule(n.raw) {
	case search.MedianRule, search.PercentileRule, search.HalvingRule:
		if n.kind == text {
			return true
		}
	}
	d.fault(at, n, "must be median (stop what is worse than the median at its epoch), percentile (keep the best percentage) or halving (keep one in budget.eta at each rung)")
	return false
}
