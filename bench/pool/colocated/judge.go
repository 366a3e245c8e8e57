package colocated

// NoSlowdown predicts that nothing disturbs.
type NoSlowdown struct{}

// Predict says that both run as alone.
func (NoSlowdown) Predict(a, b Profile) (Colocation, error) {
	if err := CheckBoth(a, b); err != nil {
		return Colocation{}, err
	}
	return Play(a, b, func(completion [2]float64) (speed, busy [2]float64) {
		return [2]float64{1, 1}, [2]float64{a.At(completion[0]).Utilization, b.At(completion[1]).Utilization}
	}), nil
}

// Sharing predicts that two that want more of the machine than there is each get
// it in proportion, and that there is no other disturbance.
type Sharing struct{}

// Predict shares the machine by utilization.
func (Sharing) Predict(a, b Profile) (Colocation, error) {
	if err := CheckBoth(a, b); err != nil {
		return Colocation{}, err
	}
	return Play(a, b, func(completion [2]float64) (speed, busy [2]float64) {
		ua, ub := a.At(completion[0]).Utilization, b.At(completion[1]).Utilization
		s := shared(ua, ub)
		return [2]float64{s, s}, [2]float64{s * ua, s * ub}
	}), nil
}

// shared is the speed of two that share a machine in proportion.
func shared(ua, ub float64) float64 { return 1 / max(1, ua+ub) }

// Limits say which pairs are bad. The zero value refuses those that lose.
type Limits struct {
	// LeastGain is what [Colocation.Gain] has to be; 1.05 when 0, so that an
	// estimate on the edge is no reason to share.
	LeastGain float64
	// MostSlowdown bounds that of either; none when 0.
	MostSlowdown float64
}

// Refuses reports whether the pair is bad.
func (l Limits) Refuses(c Colocation) bool {
	if l.LeastGain == 0 {
		l.LeastGain = 1.05
	}
	worst := max(c.Jobs[0].Slowdown(), c.Jobs[1].Slowdown())
	return c.Gain() < l.LeastGain || l.MostSlowdown > 0 && worst > l.MostSlowdown
}

// OutcomeOf is what became of the two, as a predictor tells it.
func OutcomeOf(p Pair) (Colocation, error) {
	if err := p.Check(); err != nil {
		return Colocation{}, err
	}
	c := Colocation{Period: max(p.Alone[0].Seconds, p.Alone[1].Seconds) / Periods}
	last := max(p.Ended(0), p.Ended(1))
	for k := range p.Alone {
		c.Jobs[k].Seconds, c.Jobs[k].Alone = p.Ended(k), p.Alone[k].Seconds
		for step := 1; float64(step-1)*c.Period < last; step++ {
			completion, utilization := p.At(k, float64(step)*c.Period)
			c.Jobs[k].Completion, c.Jobs[k].Utilization = append(c.Jobs[k].Completion, completion), append(c.Jobs[k].Utilization, utilization)
		}
	}
	return c, nil
}
