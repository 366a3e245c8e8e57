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
	process *regression.Process[Speed]
	family  func(kind string) string
	known   map[string]bool // families
}

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
	logarithms := make([]float64, len(seen))
	for i, one := range seen {
		if !(one.Speed > 0) || math.IsInf(one.Speed, 0) {
			return nil, fmt.Errorf("pair %d: %s beside %s has the speed %g: it must be above 0", i, one.Own, one.Other, one.Speed)
		}
		logarithms[i] = math.Log(one.Speed)
		t.mean += logarithms[i] / float64(len(seen))
		t.known[family(one.Own)], t.known[family(one.Other)] = true, true
	}
	for i := range logarithms {
		logarithms[i] -= t.mean
	}
	t.process = regression.NewProcess(seen, logarithms, noise, t.alike)
	return t, nil
}

// alike is the covariance of two pairs.
func (t *Table) alike(a, b Speed) float64 {
	own, other := t.near(a.Own, b.Own), t.near(a.Other, b.Other)
	return own + other + together*own*other
}

// near is what two kinds have in common.
func (t *Table) near(a, b string) float64 {
	switch {
	case a == b:
		return 1
	case t.family(a) == t.family(b):
		return relatives
	}
	return 0
}

// Speed is how fast one kind should be beside another. One of whose family none was ever
// seen counts as all are in the mean; false where that is so of both.
func (t *Table) Speed(own, other string) (speed float64, known bool) {
	said, _ := t.process.Predict(Speed{Own: own, Other: other})
	return math.Exp(t.mean + said), t.known[t.family(own)] || t.known[t.family(other)]
}
