// Package interference answers: if two trainings share a GPU, how much slower does each
// become?
//
// A [Table] of the pairs that were seen is completed. What it is compared with, a
// regression on what both use and networks over time among that, is in
// bench/pool/colocated. It does no I/O and knows no clock.
package interference

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/regression"
)

// Speed is how fast one kind of training was beside another, of its speed alone:
// above 0.
type Speed struct {
	Own, Other string
	Speed      float64
}

// Table completes the table of pairs of which only some were ever seen, where nothing
// is known of kinds of trainings but their names and families. It is a Gaussian process
// of the logarithm of a speed: how much the one suffers, how much the other presses, and
// what both do together. A kind that was never seen gets what its family has.
type Table struct {
	mean    float64
	process *regression.Process[[2]placed]
	family  func(kind string) string
	known   map[string]bool // families
}

// placed is a kind in its family.
type placed struct{ kind, family string }

const (
	// relatives is how much two kinds of one family have in common, together how much
	// what two do together varies, in units of what each does alone, and noise the
	// variance of one speed in these units.
	relatives = 0.8
	together  = 0.5
	noise     = 0.02
)

// Complete learns from speeds that were seen. family names what kinds are near each
// other.
func Complete(seen []Speed, family func(kind string) string) (*Table, error) {
	if len(seen) == 0 {
		return nil, fmt.Errorf("no pairs to learn from")
	}
	t := &Table{family: family, known: map[string]bool{}}
	logarithms, cells := make([]float64, len(seen)), make([][2]placed, len(seen))
	for i, one := range seen {
		if !(one.Speed > 0) || math.IsInf(one.Speed, 0) {
			return nil, fmt.Errorf("pair %d: %s beside %s has the speed %g: it must be above 0", i, one.Own, one.Other, one.Speed)
		}
		logarithms[i], cells[i] = math.Log(one.Speed), t.cell(one.Own, one.Other)
		t.mean += logarithms[i] / float64(len(seen))
		t.known[cells[i][0].family], t.known[cells[i][1].family] = true, true
	}
	for i := range logarithms {
		logarithms[i] -= t.mean
	}
	t.process = regression.NewProcess(cells, logarithms, noise, alike)
	return t, nil
}

func (t *Table) cell(own, other string) [2]placed {
	return [2]placed{{own, t.family(own)}, {other, t.family(other)}}
}

// alike is the covariance of two pairs.
func alike(a, b [2]placed) float64 {
	own, other := near(a[0], b[0]), near(a[1], b[1])
	return own + other + together*own*other
}

// near is what two kinds have in common.
func near(a, b placed) float64 {
	switch {
	case a == b:
		return 1
	case a.family == b.family:
		return relatives
	}
	return 0
}

// Speed is how fast one kind should be beside another. One of whose family none was ever
// seen counts as all are in the mean; false where that is so of both.
func (t *Table) Speed(own, other string) (speed float64, known bool) {
	cell := t.cell(own, other)
	return math.Exp(t.mean + t.process.Mean(cell)), t.known[cell[0].family] || t.known[cell[1].family]
}
