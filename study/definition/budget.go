package definition

import "github.com/tandem-tune/tandem/budget"

// budget reads how much a trial may spend, with the defaults filled in.
func (d *decoder) budget(s section) budget.Settings {
	var b budget.Settings
	n, at := s.get("budget")
	if n == nil {
		return b.WithDefaults()
	}
	s, ok := d.section(at, n, "policy", "growth", "epochs", "data_fraction", "seconds", "joules", "eta")
	if !ok {
		d.places.spoil("budget")
		return b.WithDefaults()
	}
	d.policy(s, &b)
	d.reading("budget.growth", func() { s.text("growth", maxKey, (*string)(&b.Growth)) })
	d.reading("budget.epochs", func() { d.epochs(s, &b.Epochs) })
	d.reading("budget.data_fraction", func() { d.dataFraction(s, &b.DataFraction) })
	d.reading("budget.seconds", func() { d.amount(s, "seconds", &b.Seconds) })
	d.reading("budget.joules", func() { d.amount(s, "joules", &b.Joules) })
	d.reading("budget.eta", func() { s.whole("eta", 2, budget.MaxEta, &b.Eta) })
	return b.WithDefaults()
}

// reading runs a step and notes if it found faults: what is checked of the
// part later would only repeat them.
func (d *decoder) reading(domain string, step func()) {
	before := len(d.faults)
	step()
	if len(d.faults) > before {
		d.places.spoil(domain)
	}
}

func (d *decoder) policy(s section, b *budget.Settings) {
	d.reading("budget.policy", func() { s.text("policy", maxKey, (*string)(&b.Policy)) })
}

// amount reads a range of seconds or joules, or the one that every rung has.
func (d *decoder) amount(s section, name string, r *budget.AmountRange) {
	n, at := s.get(name)
	if n == nil {
		return
	}
	if n.kind == number {
		d.numberOf(at, n, budget.MinAmount, budget.MaxAmount, &r.Max)
		r.Min = r.Max
		return
	}
	if bounds, ok := d.section(at, n, "min", "max"); ok {
		bounds.number("min", budget.MinAmount, budget.MaxAmount, &r.Min)
		if highest, at := bounds.need("max", "what the top rung spends, counted from a trial's first epoch"); highest != nil {
			d.numberOf(at, highest, budget.MinAmount, budget.MaxAmount, &r.Max)
		}
	}
}

// epochs reads a range, or the one number of epochs that every rung has.
func (d *decoder) epochs(s section, r *budget.EpochRange) {
	n, at := s.get("epochs")
	if n == nil {
		return
	}
	if n.kind == number {
		d.wholeOf(at, n, 1, budget.MaxEpochs, &r.Min)
		r.Max = r.Min
		return
	}
	bounds, ok := d.section(at, n, "min", "max")
	if !ok {
		return
	}
	bounds.whole("min", 1, budget.MaxEpochs, &r.Min)
	if highest, at := bounds.need("max", "the most epochs a trial trains"); highest != nil {
		d.wholeOf(at, highest, 1, budget.MaxEpochs, &r.Max)
	}
}

// dataFraction reads a range, or the one share that every rung trains on.
func (d *decoder) dataFraction(s section, r *budget.FractionRange) {
	n, at := s.get("data_fraction")
	if n == nil {
		return
	}
	if n.kind == number {
		d.numberOf(at, n, budget.MinFraction, 1, &r.Min)
		r.Max = r.Min
		return
	}
	if bounds, ok := d.section(at, n, "min", "max"); ok {
		bounds.number("min", budget.MinFraction, 1, &r.Min)
		bounds.number("max", budget.MinFraction, 1, &r.Max)
	}
}
