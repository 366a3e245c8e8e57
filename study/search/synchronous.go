package search

import "fmt"

// synchronous is Hyperband (Li et al. 2018, algorithm 1): brackets one after
// the other, from the one that starts at the cheapest rung to the one that
// starts at the top, and then from the first again. Each is a run of
// successive halving with rungs of its own; the best of a rung go up when all
// of the rung have an outcome.
//
// There is no barrier between brackets: who finds nothing to do in the older
// ones starts trials of the next.
type synchronous struct {
	open
	eta   int
	sizes []int // Hyperband's n_s, by starting rung
}

func newSynchronous(rungs, eta, limit int) synchronous {
	if limit == 0 || limit > rungs {
		limit = rungs
	}
	sizes := make([]int, limit)
	for start := range sizes {
		sizes[start] = int(min(bracketSize(rungs-1, rungs-1-start, eta), maxBracket))
	}
	return synchronous{eta: eta, sizes: sizes}
}

// maxBracket bounds a bracket's size to what every platform's int holds; it is
// more than a study creates.
const maxBracket = 1 << 30

// earned serves the oldest bracket first.
func (s synchronous) earned(h *history, o outlook) (step, bool) {
	for i := h.firstOpen; i < len(h.brackets); i++ {
		b := &h.brackets[i]
		complete := i < len(h.brackets)-1 || s.isFull(b)
		if b.over || !complete && !o.last {
			continue
		}
		from, place := b.next(s.eta)
		if place >= 0 {
			r := &b.rungs[from]
			reason := fmt.Sprintf("rank %d of %d at rung %d of bracket %d, where the best %d go up",
				place+1, len(r.entries), b.start+from, i+1, b.quota(from, s.eta))
			return step{trial: r.entries[place].trial, reason: reason}, true
		}
		b.over = complete && from == len(b.rungs)-1
	}
	for h.firstOpen < len(h.brackets) && h.brackets[h.firstOpen].over {
		h.firstOpen++
	}
	return step{}, false
}

// isFull reports whether nobody joins the bracket any more: it has its size,
// or it was cut short because there was nobody to create, and went on since.
func (s synchronous) isFull(b *bracket) bool {
	return b.halved || b.created >= s.sizes[b.start]
}

func (s synchronous) start(h *history) slot {
	n := len(h.brackets)
	if n > 0 && !s.isFull(&h.brackets[n-1]) {
		return slot{bracket: n, rung: h.brackets[n-1].start}
	}
	return slot{bracket: n + 1, rung: n % len(s.sizes)}
}

func (s synchronous) allows(h *history, at slot) bool {
	n := len(h.brackets)
	return at == slot{bracket: n + 1, rung: n % len(s.sizes)} || n > 0 && at == slot{bracket: n, rung: h.brackets[n-1].start}
}
