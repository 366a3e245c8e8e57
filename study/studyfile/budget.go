package studyfile

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// readBudget reads how much a trial may spend, with the defaults filled in. A service
// has windows, which are epochs, and no data.
func readBudget(s tree.Section, service bool) budget.Settings {
	b := budget.Settings{Rounding: budget.Nearest}
	n, at := s.Get("budget")
	if n == nil {
		if service {
			b.Policy = budget.Epochs
		}
		return b.WithDefaults()
	}
	s, ok := s.Open(at, n, "policy", "growth", "rounding", "epochs", "data_fraction", "seconds", "joules", "eta")
	if !ok {
		s.Places.Spoil("budget")
		return b.WithDefaults()
	}
	readPart(s.Decoder, "budget.policy", func() { s.Text("policy", tree.MaxKey, (*string)(&b.Policy)) })
	readPart(s.Decoder, "budget.growth", func() { s.Text("growth", tree.MaxKey, (*string)(&b.Growth)) })
	readPart(s.Decoder, "budget.rounding", func() { s.Text("rounding", tree.MaxKey, (*string)(&b.Rounding)) })
	readPart(s.Decoder, "budget.epochs", func() { readEpochs(s, &b.Epochs) })
	readPart(s.Decoder, "budget.data_fraction", func() { readDataFraction(s, &b.DataFraction) })
	readPart(s.Decoder, "budget.seconds", func() { readAmount(s, "seconds", &b.Seconds) })
	readPart(s.Decoder, "budget.joules", func() { readAmount(s, "joules", &b.Joules) })
	readPart(s.Decoder, "budget.eta", func() { s.Whole("eta", 2, budget.MaxEta, &b.Eta) })
	if service && b.Policy == "" && b.Seconds.Max == 0 && b.Joules.Max == 0 {
		b.Policy = budget.Epochs
	}
	return b.WithDefaults()
}

// readPart runs a step and notes if it found faults: what is checked of the
// part later would only repeat them.
func readPart(d *tree.Decoder, domain string, step func()) {
	before := len(d.Faults)
	step()
	if len(d.Faults) > before {
		d.Places.Spoil(domain)
	}
}

// readAmount reads a range of seconds or joules, or the one that every rung has.
func readAmount(s tree.Section, name string, r *budget.AmountRange) {
	n, at := s.Get(name)
	if n == nil {
		return
	}
	if n.Kind == tree.Number {
		s.NumberOf(at, n, budget.MinAmount, budget.MaxAmount, &r.Max)
		r.Min = r.Max
		return
	}
	if bounds, ok := s.Open(at, n, "min", "max"); ok {
		bounds.Number("min", budget.MinAmount, budget.MaxAmount, &r.Min)
		if highest, at := bounds.Need("max", "what the top rung spends, counted from a trial's first epoch"); highest != nil {
			s.NumberOf(at, highest, budget.MinAmount, budget.MaxAmount, &r.Max)
		}
	}
}

// readEpochs reads a range, or the one number of epochs that every rung has.
func readEpochs(s tree.Section, r *budget.EpochRange) {
	n, at := s.Get("epochs")
	if n == nil {
		return
	}
	if n.Kind == tree.Number {
		s.WholeOf(at, n, 1, budget.MaxEpochs, &r.Min)
		r.Max = r.Min
		return
	}
	bounds, ok := s.Open(at, n, "min", "max")
	if !ok {
		return
	}
	bounds.Whole("min", 1, budget.MaxEpochs, &r.Min)
	if highest, at := bounds.Need("max", "the most epochs a trial trains"); highest != nil {
		s.WholeOf(at, highest, 1, budget.MaxEpochs, &r.Max)
	}
}

// readDataFraction reads a range, or the one share that every rung trains on.
func readDataFraction(s tree.Section, r *budget.FractionRange) {
	n, at := s.Get("data_fraction")
	if n == nil {
		return
	}
	if n.Kind == tree.Number {
		s.NumberOf(at, n, budget.MinFraction, 1, &r.Min)
		r.Max = r.Min
		return
	}
	if bounds, ok := s.Open(at, n, "min", "max"); ok {
		bounds.Number("min", budget.MinFraction, 1, &r.Min)
		bounds.Number("max", budget.MinFraction, 1, &r.Max)
	}
}
