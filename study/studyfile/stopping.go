package studyfile

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/search/stopping"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// readEarlyStopping reads by which rule trials are stopped while they train: its
// name, or a mapping with its settings. Nil: none is. eta is the ladder's.
func readEarlyStopping(s tree.Section, eta int) *stopping.EarlyStopping {
	n, at := s.Get("early_stopping")
	if n == nil {
		return nil
	}
	switch n.Kind {
	case tree.Text:
		s.Places.Put(at, at, n.Line)
		s.Places.Put(tree.Join(at, "rule"), at, n.Line)
		if !checkStoppingRule(s.Decoder, at, n) {
			return nil
		}
		rule := stopping.Default(stopping.Rule(n.Raw), eta)
		return &rule
	case tree.Mapping:
	default:
		s.Wrong(at, n, "a rule (median, percentile or halving) or a mapping with a rule")
		return nil
	}
	s, ok := s.Open(at, n, "rule", "percentile", "grace_epochs", "min_trials", "every_epochs")
	if !ok {
		return nil
	}
	which, at := s.Need("rule", "median, percentile or halving")
	if which == nil || !checkStoppingRule(s.Decoder, at, which) {
		return nil
	}
	rule := stopping.Default(stopping.Rule(which.Raw), eta)
	s.Number("percentile", 0, 100, &rule.Percentile)
	s.Whole("grace_epochs", 0, budget.MaxEpochs, &rule.GraceEpochs)
	s.Whole("min_trials", 1, definition.MaxTrials, &rule.MinTrials)
	s.Whole("every_epochs", 1, budget.MaxEpochs, &rule.EveryEpochs)
	return &rule
}

func checkStoppingRule(d *tree.Decoder, at string, n *tree.Node) bool {
	switch stopping.Rule(n.Raw) {
	case stopping.Median, stopping.Percentile, stopping.Halving:
		if n.Kind == tree.Text {
			return true
		}
	}
	d.Fault(at, n, "must be median (stop what is worse than the median at its epoch), percentile (keep the best percentage) or halving (keep one in budget.eta at each rung)")
	return false
}
