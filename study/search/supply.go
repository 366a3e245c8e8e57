package search

import "math"

// Supply is a [Method] that can say how many requests in a row it would answer with
// a trial, if nothing were measured meanwhile. Where nobody knows how many
// configurations are left, that is a guess, and not 0 while there is one. Asking changes
// nothing. Where no trial is out and none is left, the request that ends the search
// counts as one. All methods that [New] returns can.
type Supply interface {
	Startable() int
}

// Startable implements [Supply].
func (m *machine) Startable() int {
	h := m.history
	if m.repeats.begun() {
		return max(m.repeats.owed(h), ending(h.out+m.repeats.out))
	}
	fresh := m.fresh()
	count := fresh + m.promotion.earnable(h, fresh, m.room()-fresh)
	if count > 0 || h.out > 0 {
		return count
	}
	return max(m.repeats.owed(h), ending(0))
}

// ending is the request that a search needs to end, or to send up its last, once
// nothing is out.
func ending(out int) int {
	if out > 0 {
		return 0
	}
	return 1
}

// fresh is how many new trials may start, at most.
func (m *machine) fresh() int {
	left := math.MaxInt32
	if g, limited := m.proposer.(*grid); limited {
		left = len(g.order) - g.next
	}
	if p, limited := m.promotion.(population); limited {
		left = min(left, max(0, p.size-m.history.originals-len(m.queue)))
	}
	if m.dry || m.promotion.full(m.history) {
		left = 0
	}
	return min(left+len(m.queue), m.room())
}

// room is how many more trials the study may have.
func (m *machine) room() int {
	if m.settings.MaxTrials == 0 {
		return math.MaxInt
	}
	return max(0, m.settings.MaxTrials-len(m.history.trials))
}

// owed is how many trainings again of the best may start now.
func (r *repeats) owed(h *history) int {
	if r.settings == nil {
		return 0
	}
	count := 0
	for _, c := range r.choose(h) {
		begun, owed := r.tally(c)
		count += max(0, owed-begun)
	}
	return count
}

// promotable counts the entries among the first limit that may go up.
func (r *rung) promotable(limit int) int {
	count := 0
	for at := r.gone; at < min(limit, len(r.entries)); at++ {
		if r.entries[at].promotable() {
			count++
		}
	}
	return count
}

func (none) earnable(*history, int, int) int { return 0 }

func (a asynchronous) earnable(h *history, _, _ int) int {
	count := 0
	for from := range len(h.rungs) - 1 {
		limit := h.rungs[from].top(a.eta)
		if a.widen {
			limit, _ = h.widened(from, limit, a.eta)
		}
		count += h.rungs[from].promotable(limit)
	}
	return count
}

func (s synchronous) earnable(h *history, fresh, _ int) int {
	count := 0
	for i := h.firstOpen; i < len(h.brackets); i++ {
		b := &h.brackets[i]
		if b.over || i == len(h.brackets)-1 && !s.isFull(b) && fresh > 0 {
			continue
		}
		expected := b.created
		for from := range len(b.rungs) - 1 {
			r := &b.rungs[from]
			if len(r.entries) < expected {
				break
			}
			quota := b.quota(from, s.eta)
			count += r.promotable(quota)
			expected = min(quota, r.usable())
		}
	}
	return count
}

func (population) earnable(h *history, _, room int) int {
	count := 0
	for from := range len(h.rungs) - 1 {
		r := &h.rungs[from]
		n, fifth := len(r.entries), len(r.entries)/exploitShare
		parents := min(fifth, r.usable()) > 0
		for place, e := range r.entries {
			switch {
			case e.promoted:
			case (place >= n-fifth || !e.promotable()) && parents && room > 0:
				room--
				count++
			case e.promotable():
				count++
			}
		}
	}
	return count
}
