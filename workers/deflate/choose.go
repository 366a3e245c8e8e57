package deflate

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Demand is what the jobs of a class are and what their users accept.
type Demand struct {
	// Rate is how many come a second; Standing is that of [Class].
	Rate     float64
	Standing int
	// Service is what they take when so much of their data is left out, and
	// everything is so many times as fast.
	Service func(drop, speed float64) (Phases, error)
	// Loss is how much accuracy leaving out so much costs, in the user's unit;
	// nil: the class drops nothing. It must not fall.
	Loss func(drop float64) float64
	// MostLoss bounds it. MostDrop bounds the drop ratio itself; 0: only the loss
	// does.
	MostLoss, MostDrop float64
	// MeanSeconds and TailSeconds bound the mean response and the response that
	// 95% are within; 0: not bounded.
	MeanSeconds, TailSeconds float64
	// Speed is that of its jobs, 1 for no sprint: the effective one of the
	// class's timeout (section 4.3).
	Speed float64
}

// tail is the share of responses that TailSeconds is about.
const tail = 0.95

// Choice is a drop ratio for each class, and what follows from it.
type Choice struct {
	Drop []float64
	// Mean and Tail are the response times, in seconds; estimates of the model.
	// There are none where more work comes than can be done.
	Mean, Tail []float64
	Loss       []float64
	Load       float64
}

// ErrNoChoice is of limits that no drop ratios keep.
var ErrNoChoice = errors.New("no drop ratios keep all limits")

// mostChoices bounds how many combinations of drop ratios are looked at: with
// many classes the grid gets coarser.
const mostChoices = 500

// Choose finds the drop ratios with the least loss that keep every limit before
// an engine with so many slots, from a grid in steps of 1/steps (coarser where
// many classes may drop something): what is lost is added up over the classes,
// weighted by their rates; of equal losses the one with the least mean response
// over all jobs is taken. This is the search of section 4.4.3 (and of the end of
// 4.4.4), with limits in place of weights.
//
// The error is ErrNoChoice where there is none; then the choice is what comes
// nearest, the largest drop ratios that are allowed.
func Choose(demands []Demand, slots, steps int) (Choice, error) {
	if len(demands) == 0 || slots < 1 || steps < 1 || steps > 100 {
		return Choice{}, fmt.Errorf("%d classes before %d slots in %d steps: at least one class and one slot, and 1 to 100 steps", len(demands), slots, steps)
	}
	c := chooser{demands: demands, slots: slots, bestLoss: math.Inf(1), bestMean: math.Inf(1)}
	grids := c.grids(steps)
	if err := c.search(grids, make([]float64, 0, len(demands))); err != nil {
		return Choice{}, err
	}
	if c.best == nil {
		deepest := make([]float64, len(demands))
		for k, grid := range grids {
			deepest[k] = grid[len(grid)-1]
		}
		choice, err := Judge(demands, slots, deepest)
		if err != nil {
			return choice, err
		}
		return choice, ErrNoChoice
	}
	return Judge(demands, slots, c.best)
}

// Deepest is the choice of the largest drop ratios that are allowed.
func Deepest(demands []Demand, slots, steps int) (Choice, error) {
	c := chooser{demands: demands, slots: slots}
	var drop []float64
	for _, grid := range c.grids(steps) {
		drop = append(drop, grid[len(grid)-1])
	}
	return Judge(demands, slots, drop)
}

// chooser is one search for a choice.
type chooser struct {
	demands            []Demand
	slots              int
	best               []float64
	bestLoss, bestMean float64
}

// grids are the drop ratios that each class may have, rising from 0.
func (c *chooser) grids(steps int) [][]float64 {
	for ; ; steps = (steps + 1) / 2 {
		grids, all := make([][]float64, len(c.demands)), 1
		for k, demand := range c.demands {
			grids[k] = demand.grid(steps)
			all *= len(grids[k])
		}
		if all <= mostChoices || steps == 1 {
			return grids
		}
	}
}

func (d Demand) grid(steps int) []float64 {
	grid := []float64{0}
	if d.Loss == nil {
		return grid
	}
	for step := 1; step < steps; step++ {
		drop := float64(step) / float64(steps)
		if d.Loss(drop) > d.MostLoss || d.MostDrop > 0 && drop > d.MostDrop+1e-9 {
			break
		}
		grid = append(grid, drop)
	}
	return grid
}

// search tries all combinations that begin with the ratios.
func (c *chooser) search(grids [][]float64, drop []float64) error {
	if k := len(drop); k < len(grids) {
		for _, one := range grids[k] {
			if err := c.search(grids, append(drop, one)); err != nil {
				return err
			}
		}
		return nil
	}
	loss, mean, rates := 0.0, 0.0, 0.0
	for i, demand := range c.demands {
		loss += demand.Rate * demand.lossAt(drop[i])
		rates += demand.Rate
	}
	if loss > c.bestLoss {
		return nil
	}
	q, err := queueOf(c.demands, c.slots, drop)
	if errors.Is(err, ErrOverloaded) {
		return nil
	}
	if err != nil {
		return err
	}
	for k, demand := range c.demands {
		one := q.Mean(k)
		mean += demand.Rate * one
		if demand.MeanSeconds > 0 && one > demand.MeanSeconds || demand.TailSeconds > 0 && q.Tail(k, demand.TailSeconds) > 1-tail {
			return nil
		}
	}
	if c.best == nil || loss < c.bestLoss || mean < c.bestMean {
		c.best, c.bestLoss, c.bestMean = slices.Clone(drop), loss, mean
	}
	return nil
}

func (d Demand) lossAt(drop float64) float64 {
	if d.Loss == nil {
		return 0
	}
	return d.Loss(drop)
}

// queueOf is the queue with these drop ratios.
func queueOf(demands []Demand, slots int, drop []float64) (*Queue, error) {
	var classes []Class
	for i, demand := range demands {
		speed := demand.Speed
		if speed == 0 {
			speed = 1
		}
		service, err := demand.Service(drop[i], speed)
		if err != nil {
			return nil, fmt.Errorf("class %d: %w", i, err)
		}
		classes = append(classes, Class{Rate: demand.Rate, Service: service, Standing: demand.Standing})
	}
	return NewQueue(classes, slots)
}

// Judge is what follows from drop ratios, one for each class. Where more work
// comes than can be done there are no response times, and it is no error.
func Judge(demands []Demand, slots int, drop []float64) (Choice, error) {
	if len(drop) != len(demands) {
		return Choice{}, fmt.Errorf("%d drop ratios for %d classes: one for each is needed", len(drop), len(demands))
	}
	c := Choice{Drop: slices.Clone(drop)}
	for i, demand := range demands {
		c.Loss = append(c.Loss, demand.lossAt(drop[i]))
	}
	q, err := queueOf(demands, slots, drop)
	if errors.Is(err, ErrOverloaded) {
		c.Load = 1
		return c, nil
	}
	if err != nil {
		return c, err
	}
	c.Load = q.Load()
	for k := range demands {
		last, err := q.Quantile(k, tail)
		if err != nil {
			return c, err
		}
		c.Mean, c.Tail = append(c.Mean, q.Mean(k)), append(c.Tail, last)
	}
	return c, nil
}
