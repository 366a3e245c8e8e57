package space

import (
	"math/rand/v2"

	"github.com/tandem-tune/tandem/internal/problem"
)

// maxDraws bounds how many forbidden combinations Sample draws in a row. A
// space of which one configuration in a thousand is allowed fails to find one
// with a chance of e^-100.
const maxDraws = 100_000

// Sample draws a configuration uniformly: each number evenly over its scale
// (and so over its logarithm, or its steps), each choice with equal chance,
// conditional parameters only where they exist. Forbidden combinations are
// drawn again; the error, [problem.Exhausted], says that nearly everything is
// forbidden. The space must be valid.
func (c *Cube) Sample(r *rand.Rand) (Configuration, error) {
	point, err := c.Draw(r)
	if err != nil {
		return nil, err
	}
	return c.Decode(point), nil
}

// Draw is Sample before it is decoded: the masked point of the configuration.
func (c *Cube) Draw(r *rand.Rand) ([]float64, error) {
	point := make([]float64, len(c.dimensions))
	return point, c.draw(r, point, maxDraws)
}

// draw fills the point with an allowed, masked draw.
func (c *Cube) draw(r *rand.Rand, point []float64, limit int) error {
	for range limit {
		for i := range point {
			point[i] = r.Float64()
		}
		c.Mask(point)
		if !c.Forbids(point) {
			return nil
		}
	}
	return problem.New(problem.Exhausted,
		"%d random configurations in a row were forbidden: the forbidden combinations leave almost nothing of the search space; remove or narrow one of them", limit)
}
