package graph

import (
	"math"
	"math/bits"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Largest is where products and sums of this package stop instead of
// overflowing. No model comes near it; [Graph.Check] refuses one that does.
const Largest = math.MaxInt64

// Product multiplies sizes; a negative one counts as zero.
func Product(sizes ...int64) int64 {
	result, large := int64(1), false
	for _, size := range sizes {
		if size <= 0 {
			return 0
		}
		high, low := bits.Mul64(uint64(result), uint64(size))
		if high != 0 || low > Largest {
			large = true
			continue
		}
		result = int64(low)
	}
	if large {
		return Largest
	}
	return result
}

// Sum adds sizes that are not negative.
func Sum(sizes ...int64) int64 {
	var result int64
	for _, size := range sizes {
		if size > Largest-result {
			return Largest
		}
		result += size
	}
	return result
}

// Broadcast is the shape of an elementwise operator's output: shapes are
// aligned at their last dimension, and a size of 1 is repeated.
func Broadcast(shapes ...[]int64) ([]int64, error) {
	rank := 0
	for _, shape := range shapes {
		rank = max(rank, len(shape))
	}
	result := make([]int64, rank)
	for i := range result {
		result[i] = 1
		for _, shape := range shapes {
			at := i - (rank - len(shape))
			if at < 0 || shape[at] == 1 || shape[at] == result[i] {
				continue
			}
			if result[i] != 1 {
				return nil, problem.New(problem.Invalid, "shapes %v do not go together: dimension %d is %d in one and %d in another", shapes, i, result[i], shape[at])
			}
			result[i] = shape[at]
		}
	}
	return result, nil
}
