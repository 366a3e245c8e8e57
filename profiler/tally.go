package profiler

// tally adds up one event over a span of time, sample by sample.
type tally struct {
	// base is where the window begins that is not added up yet, newest the
	// last count seen.
	base, newest counted
	total        float64
	// enabled and running are the times of the windows in the total.
	enabled, running uint64
}

func newTally(at counted) tally { return tally{base: at, newest: at} }

// observe adds what was counted since the window began, scaled by the part of
// it in which the event had a counter: final = raw × enabled / running (Rocha,
// section 6.3.3). An event that had none stretches its window, so that the next
// sample with one stands for it.
func (t *tally) observe(now counted) {
	if now.value < t.base.value || now.enabled < t.newest.enabled || now.running < t.newest.running {
		return // a reading that went backwards says nothing
	}
	t.newest = now
	value, enabled, running := now.value-t.base.value, now.enabled-t.base.enabled, now.running-t.base.running
	if running == 0 {
		return
	}
	t.total += float64(value) * max(1, float64(enabled)/float64(running))
	t.enabled += enabled
	t.running += running
	t.base = now
}

// sum is the count over the span, and the part of the time in which the event
// was really counted. It is not known when it never was, though it should have
// been; a command that never ran in the span had none.
func (t *tally) sum() (total, fraction float64, known bool) {
	rest := t.newest.enabled - t.base.enabled
	switch {
	case t.enabled+rest == 0:
		return t.total, 1, true
	case t.enabled == 0:
		return 0, 0, false
	}
	// The last window had no counter: it is taken to be like the others.
	total = t.total * float64(t.enabled+rest) / float64(t.enabled)
	return total, min(1, float64(t.running)/float64(t.enabled+rest)), true
}

// restart begins a new span where the last one ended.
func (t *tally) restart() { *t = newTally(t.newest) }
