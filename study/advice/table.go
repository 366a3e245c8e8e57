package advice

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/combin"

	"github.com/tandem-tune/tandem/study/space"
)

// labelled is a trial that is, or is not, what is looked for.
type labelled struct {
	configuration space.Configuration
	is            bool
}

// table has the trials as points of the space's cube.
type table struct {
	space  space.Space
	cube   *space.Cube
	trials []labelled
	points [][]float64
}

func newTable(s space.Space, trials []labelled) table {
	t := table{space: s, cube: s.Cube(), trials: trials, points: make([][]float64, len(trials))}
	for i, one := range trials {
		t.points[i] = t.cube.Encode(one.configuration)
	}
	return t
}

// count compares the trials whose coordinate is inside with the others that have the
// parameter. It answers false where none is both inside and looked for, or none is
// outside.
func (t table) count(d int, inside func(float64) bool) (Piece, bool) {
	piece := Piece{Parameter: t.space.Parameters[d].Name}
	var places []int
	for i, point := range t.points {
		u, is := point[d], 0
		if t.trials[i].is {
			is = 1
		}
		switch {
		case math.IsNaN(u):
		case inside(u):
			piece.Inside++
			piece.Hits += is
			places = append(places, i)
		default:
			piece.Outside++
			piece.Misses += is
		}
	}
	if piece.Hits == 0 || piece.Outside == 0 {
		return Piece{}, false
	}
	slices.SortFunc(places, func(a, b int) int { return cmp.Compare(t.points[a][d], t.points[b][d]) })
	low, top := t.trials[places[0]].configuration[piece.Parameter], t.trials[places[len(places)-1]].configuration[piece.Parameter]
	if piece.Values = []space.Value{low}; low != top {
		piece.Values = append(piece.Values, top)
	}
	return piece, true
}

// fisher is the one-sided probability of Fisher's exact test: of at least so many
// hits among those inside, if being inside did not matter.
func fisher(hits, inside, misses, outside int) float64 {
	all, total := hits+misses, inside+outside
	sum := 0.0
	for k := hits; k <= min(inside, all); k++ {
		if all-k <= outside {
			sum += math.Exp(choose(inside, k) + choose(outside, all-k) - choose(total, all))
		}
	}
	return min(1, sum)
}

// choose is the logarithm of the number of ways to choose k of n.
func choose(n, k int) float64 { return combin.LogGeneralizedBinomial(float64(n), float64(k)) }
