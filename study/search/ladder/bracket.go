package ladder

// Bracket is one run of successive halving. It compares its trials with each
// other only.
type Bracket struct {
	Start   int // the rung at which its trials start
	Created int
	// Halved is set when a trial went up from the starting rung.
	Halved bool
	Rungs  []Rung // from start to the top
	// Over is set when nobody goes up any more. It is no part of the state: it
	// spares looking again.
	Over bool
}

// Next returns a trial that goes up by the rung, counted from the bracket's
// start, and its place there. The place is negative if there is none now; the
// rung is then the one that still waits for outcomes, or the top one if there
// will be none ever.
func (b *Bracket) Next(eta int) (from, place int) {
	top := len(b.Rungs) - 1
	expected := b.Created
	for from := range top {
		r := &b.Rungs[from]
		if len(r.Entries) < expected {
			return from, -1
		}
		quota := b.Quota(from, eta)
		if place := r.Best(min(quota, len(r.Entries))); place >= 0 {
			return from, place
		}
		// Too many failures leave fewer than the table has places for.
		expected = min(quota, r.Usable())
	}
	return top, -1
}

// Quota is how many go up from the rung, counted from the bracket's start:
// Hyperband's floor(n · eta^-(i+1)), with n as many as the bracket got.
func (b *Bracket) Quota(from, eta int) int {
	n := b.Created
	for i := 0; i <= from && n > 0; i++ {
		n /= eta
	}
	return n
}
