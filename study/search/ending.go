package search

// Ended reports whether a [Request] would be answered with [Finish].
func (m *Method) Ended() bool {
	if m.history.Out > 0 || m.repeats.out > 0 || len(m.queue) > 0 {
		return false
	}
	if _, _, again := m.repeats.next(m.history); again {
		return false
	}
	if m.repeats.begun() {
		return true
	}
	if m.proposes() {
		return false
	}
	if _, up := m.promotion.Earned(m.history, true); up {
		return false
	}
	_, up := finalPromotion(m.history)
	return !up
}

// proposes reports whether there would be another configuration. Only a grid is used
// up before the study's bound is: for other methods nothing is computed.
func (m *Method) proposes() bool {
	if bound := m.settings.MaxTrials; bound > 0 && len(m.history.Trials) >= bound {
		return false
	}
	if m.dry {
		return false
	}
	if m.settings.Method != "grid" {
		return true
	}
	before := *m.source
	_, more := m.proposeNext()
	*m.source = before
	return more
}
