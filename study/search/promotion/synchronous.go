package promotion

import (
	"fmt"

	"github.com/tandem-tune/tandem/study/search/ladder"
)

// synchronous is Hyperband (Li et al. 2018, algorithm 1): brackets one after
// the other, from the one that starts at the cheapest rung to the one that
// starts at the top, and then from the first again. Each is a run of
// successive halving with rungs of its own; the best of a rung go up when all
// of the rung have an outcome.
//
// There is no barrier between brackets: who finds nothing to do in the older
// ones starts trials of the next.
type synchronous struct {
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

// Earned serves the oldest bracket first.
func (s synchronous) Earned(h *ladder.History, last bool) (Step, bool) {
	for i := h.FirstOpen; i < len(h.Brackets); i++ {
		b := &h.Brackets[i]
		complete := i < len(h.Brackets)-1 || s.isFull(b)
		if b.Over || !complete && !last {
			continue
		}
		from, place := b.Next(s.eta)
		if place >= 0 {
			r := &b.Rungs[from]
			reason := fmt.Sprintf("rank %d of %d at rung %d of bracket %d, where the best %d go up",
				place+1, len(r.Entries), b.Start+from, i+1, b.Quota(from, s.eta))
			return Step{Trial: r.Entries[place].Trial, Reason: reason}, true
		}
		b.Over = complete && from == len(b.Rungs)-1
	}
	for h.FirstOpen < len(h.Brackets) && h.Brackets[h.FirstOpen].Over {
		h.FirstOpen++
	}
	return Step{}, false
}

// isFull reports whether nobody joins the bracket any more: it has its size,
// or it was cut short because there was nobody to create, and went on since.
func (s synchronous) isFull(b *ladder.Bracket) bool {
	return b.Halved || b.Created >= s.sizes[b.Start]
}

func (s synchronous) Start(h *ladder.History) ladder.Slot {
	n := len(h.Brackets)
	if n > 0 && !s.isFull(&h.Brackets[n-1]) {
		return ladder.Slot{Bracket: n, Rung: h.Brackets[n-1].Start}
	}
	return ladder.Slot{Bracket: n + 1, Rung: n % len(s.sizes)}
}

func (s synchronous) Allows(h *ladder.History, at ladder.Slot) bool {
	n := len(h.Brackets)
	return at == ladder.Slot{Bracket: n + 1, Rung: n % len(s.sizes)} || n > 0 && at == ladder.Slot{Bracket: n, Rung: h.Brackets[n-1].Start}
}

func (s synchronous) Earnable(h *ladder.History, fresh int) int {
	count := 0
	for i := h.FirstOpen; i < len(h.Brackets); i++ {
		b := &h.Brackets[i]
		if b.Over || i == len(h.Brackets)-1 && !s.isFull(b) && fresh > 0 {
			continue
		}
		expected := b.Created
		for from := range len(b.Rungs) - 1 {
			r := &b.Rungs[from]
			if len(r.Entries) < expected {
				break
			}
			quota := b.Quota(from, s.eta)
			count += r.Promotable(quota)
			expected = min(quota, r.Usable())
		}
	}
	return count
}
