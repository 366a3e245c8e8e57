// Package interference answers: if two trainings share a GPU, how much slower does each
// become?
//
// [Factors] complete the table of the pairs that were seen. What they are compared with,
// a regression on what both use and networks over time among that, is in
// bench/pool/colocated. It does no I/O and knows no clock.
package interference

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/internal/regression"
)

// Speed is how fast one kind of training was beside another, of its speed alone:
// above 0.
type Speed struct {
	Own, Other string
	Speed      float64
}

// Factors complete the table of pairs in two steps: first that of families of kinds,
// then what is left of it by kind. A kind that was never seen so gets what its family
// has.
type Factors struct {
	families, kinds *table
	family          func(kind string) string
}

// TrainFactors learns from speeds that were seen. family names what kinds are near each
// other.
func TrainFactors(seen []Speed, family func(kind string) string, seed uint64) (*Factors, error) {
	f := &Factors{family: family}
	near, left := slices.Clone(seen), slices.Clone(seen)
	for i, one := range seen {
		near[i].Own, near[i].Other = family(one.Own), family(one.Other)
	}
	var err error
	if f.families, err = trainTable(near, seed); err != nil {
		return nil, err
	}
	for i, one := range near {
		said, _ := f.families.speed(one.Own, one.Other)
		left[i].Speed /= said
	}
	f.kinds, err = trainTable(left, seed)
	return f, err
}

// Speed is how fast one kind should be beside another. One of whose family none was ever
// seen counts as all are in the mean; false where that is so of both.
func (f *Factors) Speed(own, other string) (speed float64, known bool) {
	said, known := f.families.speed(f.family(own), f.family(other))
	left, _ := f.kinds.speed(own, other)
	return said * left, known
}

// table completes one of which only some pairs were ever seen, where nothing
// is known of kinds of trainings but their names (as Paragon and Quasar do, which
// the notes cite): the logarithm of a speed is a mean, how much the one suffers,
// how much the other presses, and a product of what each is sensitive to and what
// each makes use of. It is found by alternating least squares.
type table struct {
	mean  float64
	kinds map[string]int
	own   [][]float64 // suffers, 1, sensitivities
	other [][]float64 // 1, presses, uses
}

const (
	// rank is the number of resources that kinds are told apart by.
	rank = 2
	// rounds of alternating least squares.
	rounds = 60
	// shrink is the weight of the belief that a kind is as all are, in pairs.
	shrink = 0.3
)

func trainTable(seen []Speed, seed uint64) (*table, error) {
	if len(seen) == 0 {
		return nil, fmt.Errorf("no pairs to learn from")
	}
	f := &table{kinds: map[string]int{}}
	random := rand.New(rand.NewPCG(seed, 9)) //nolint:gosec // what is drawn has to repeat
	for i, one := range seen {
		if !(one.Speed > 0) || math.IsInf(one.Speed, 0) {
			return nil, fmt.Errorf("pair %d: %s beside %s has the speed %g: it must be above 0", i, one.Own, one.Other, one.Speed)
		}
		for _, name := range []string{one.Own, one.Other} {
			if _, known := f.kinds[name]; !known {
				f.kinds[name] = len(f.kinds)
				f.own = append(f.own, []float64{0, 1, small(random), small(random)})
				f.other = append(f.other, []float64{1, 0, small(random), small(random)})
			}
		}
		f.mean += math.Log(one.Speed) / float64(len(seen))
	}
	for range rounds {
		for kind := range f.own {
			f.solve(kind, seen, true)
			f.solve(kind, seen, false)
		}
	}
	return f, nil
}

func small(random *rand.Rand) float64 { return 0.1 * random.NormFloat64() }

// solve finds what one kind suffers and is sensitive to, or presses and uses,
// with all others as they are.
func (f *table) solve(kind int, seen []Speed, own bool) {
	var inputs [][]float64
	var values []float64
	for _, one := range seen {
		a, b := f.kinds[one.Own], f.kinds[one.Other]
		// What is fixed of the other side: its bias is taken off, the rest is x.
		var x []float64
		left := math.Log(one.Speed) - f.mean
		switch {
		case own && a == kind:
			x = append([]float64{1}, f.other[b][2:]...)
			left -= f.other[b][1]
		case !own && b == kind:
			x = append([]float64{1}, f.own[a][2:]...)
			left -= f.own[a][0]
		default:
			continue
		}
		inputs, values = append(inputs, x), append(values, left)
	}
	found := make([]float64, 1+rank)
	copy(found, regression.FitRidge(inputs, values, shrink))
	if own {
		f.own[kind][0] = found[0]
		copy(f.own[kind][2:], found[1:])
	} else {
		f.other[kind][1] = found[0]
		copy(f.other[kind][2:], found[1:])
	}
}

// speed is that of one kind beside another. One that was never seen in any pair counts
// as all are in the mean; false where that is so of both.
func (f *table) speed(own, other string) (speed float64, known bool) {
	suffers, presses := []float64{0, 1, 0, 0}, []float64{1, 0, 0, 0}
	if at, seen := f.kinds[own]; seen {
		suffers, known = f.own[at], true
	}
	if at, seen := f.kinds[other]; seen {
		presses, known = f.other[at], true
	}
	return math.Exp(f.mean + regression.Dot(suffers, presses)), known
}
