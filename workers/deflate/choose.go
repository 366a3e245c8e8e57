package deflate

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Demand is what the jobs of a class are and what their users accept.
type Demand struct {
	// Rate is how many come a second.
	Rate float64
	// Service is what they take when so much of their data is left out, and
	// everything is so many times as fast.
	Service func(drop, speed float64) (Phases, error)
	// Loss is how much accuracy leaving out so much costs, in the user's unit;
	// nil: the class drops nothing. It must not fall.
	Loss func(drop float64) float64
	// MostLoss bounds it.
	MostLoss float64
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
	Mean, Tail []float64
	Loss       []float64
	Load       float64
}

// ErrNoChoice is of limits that no drop ratios keep.
var ErrNoChoice = errors.New("no drop ratios keep all limits")

// Choose finds the drop ratios with the least loss that keep every limit, from
// a grid in steps of 1/steps: what is lost is added up over the classes, weighted
// by their rates; of equal losses the one with the least mean response over all
// jobs is taken. The error is ErrNoChoice where there is none.
func Choose(demands []Demand, steps int) (Choice, error) {
	if len(demands) == 0 || steps < 1 || steps > 100 {
		return Choice{}, fmt.Errorf("%d classes in %d steps: at least one class, and 1 to 100 steps", len(demands), steps)
	}
	best, bestLoss, bestMean, found := Choice{}, math.Inf(1), math.Inf(1), false
	drop := make([]float64, len(demands))
	var try func(k int) error
	try = func(k int) error {
		if k < len(demands) {
			for step := range steps {
				drop[k] = float64(step) / float64(steps)
				if step > 0 && (demands[k].Loss == nil || demands[k].Loss(drop[k]) > demands[k].MostLoss) {
					break
				}
				if err := try(k + 1); err != nil {
					return err
				}
			}
			return nil
		}
		loss, rates := 0.0, 0.0
		for i, demand := range demands {
			if demand.Loss != nil {
				loss += demand.Rate * demand.Loss(drop[i])
			}
			rates += demand.Rate
		}
		loss /= rates
		if found && loss > bestLoss {
			return nil
		}
		choice, kept, err := judge(demands, drop)
		if err != nil || !kept {
			return err
		}
		mean := 0.0
		for i, demand := range demands {
			mean += demand.Rate * choice.Mean[i] / rates
		}
		if !found || loss < bestLoss || mean < bestMean {
			best, bestLoss, bestMean, found = choice, loss, mean, true
		}
		return nil
	}
	if err := try(0); err != nil {
		return Choice{}, err
	}
	if !found {
		return Choice{}, ErrNoChoice
	}
	return best, nil
}

// judge asks the model of the queue, and whether every limit is kept.
func judge(demands []Demand, drop []float64) (Choice, bool, error) {
	c := Choice{Drop: slices.Clone(drop)}
	var classes []Class
	for i, demand := range demands {
		speed := demand.Speed
		if speed == 0 {
			speed = 1
		}
		service, err := demand.Service(drop[i], speed)
		if err != nil {
			return c, false, fmt.Errorf("class %d: %w", i, err)
		}
		classes = append(classes, Class{demand.Rate, service})
		loss := 0.0
		if demand.Loss != nil {
			loss = demand.Loss(drop[i])
		}
		c.Loss = append(c.Loss, loss)
	}
	q, err := NewQueue(classes)
	if errors.Is(err, ErrOverloaded) {
		return c, false, nil
	}
	if err != nil {
		return c, false, err
	}
	c.Load = q.Load()
	for k, demand := range demands {
		mean := q.Mean(k)
		if demand.MeanSeconds > 0 && mean > demand.MeanSeconds {
			return c, false, nil
		}
		last, err := q.Quantile(k, tail)
		if err != nil {
			return c, false, err
		}
		if demand.TailSeconds > 0 && last > demand.TailSeconds {
			return c, false, nil
		}
		c.Mean, c.Tail = append(c.Mean, mean), append(c.Tail, last)
	}
	return c, true, nil
}
