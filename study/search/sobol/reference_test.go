package sobol

import (
	"fmt"
	"testing"

	reference "github.com/c-bata/goptuna/sobol"

	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/space"
)

// goptuna goes through the sequence in the order of Gray's code, without a shift,
// and leaves out the second dimension.
func TestSobolHasThePointsOfGoptuna(t *testing.T) {
	const points = 1 << 12
	for _, dimensions := range []int{3, 4, 10, 64} {
		var numbers space.Space
		for i := range dimensions {
			numbers.Parameters = append(numbers.Parameters, space.Parameter{Name: fmt.Sprint("x", i), Kind: space.Model, Type: space.FloatType, High: 1})
		}
		ours, err := New(numbers, 7)
		if err != nil {
			t.Fatal(err)
		}
		h := ladder.New(numbers, nil, 0, nil, false)
		clear(ours.shift)
		engine, point := reference.NewEngine(uint32(dimensions-1)), make([]float64, dimensions)
		for n := uint64(1); n < points; n++ {
			if !ours.at(h, n^n>>1, point) {
				t.Fatalf("point %d is not allowed", n)
			}
			for j, want := range engine.Draw() {
				dimension := j
				if j > 0 {
					dimension = j + 1
				}
				if got := point[dimension] - 0.5/(1<<32); got != want {
					t.Fatalf("%d dimensions: point %d is at %v on axis %d, by goptuna at %v", dimensions, n, got, dimension, want)
				}
			}
		}
	}
}
