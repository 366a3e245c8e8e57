package perf

// Tally adds up one event over a span of time, sample by sample.
type Tally struct {
	// base is where the window begins that is not added up yet, newest the
	// last count seen.
	base, newest Counted
	total        float64
	// enabled and running are the times of the windows in the total.
	enabled, running uint64
}

// NewTally begins at a count.
func NewTally(at Counted) Tally { return Tally{base: at, newest: at} }

// Observe adds what was counted since the window began, scaled by the part of
// it in which the event had a counter: final = raw × enabled / running (Rocha,
// section 6.3.3). An event that had none stretches its window, so that the next
// sample with one stands for it.
func (t *Tally) Observe(now Counted) {
	if now.Value < t.base.Value || now.Enabled < t.newest.Enabled || now.Running < t.newest.Running {
		return // a reading that went backwards says nothing
	}
	t.newest = now
	value, enabled, running := now.Value-t.base.Value, now.Enabled-t.base.Enabled, now.Running-t.base.Running
	if running == 0 {
		return
	}
	t.total += float64(value) * max(1, float64(enabled)/float64(running))
	t.enabled += enabled
	t.running += running
	t.base = now
}

// Sum is the count over the span, and the part of the time in which the event
// was really counted. It is not known when it never was, though it should have
// been; a command that never ran in the span had none.
func (t *Tally) Sum() (total, fraction float64, known bool) {
	rest := t.newest.Enabled - t.base.Enabled
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

// Restart begins a new span where the last one ended.
func (t *Tally) Restart() { *t = NewTally(t.newest) }
