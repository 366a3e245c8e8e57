package deflate

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// try finds out whether a candidate keeps all limits, and its mean.
func (c *chooser) try(one *candidate) error {
	sprints, err := c.sprints(*one)
	if err != nil {
		return err
	}
	one.sprints, one.mean = sprints, math.Inf(1)
	q, _, err := c.queue(one.drop, sprints)
	if errors.Is(err, ErrOverloaded) {
		return nil
	}
	if err != nil {
		return err
	}
	mean, kept := 0.0, true
	for k, demand := range c.Demands {
		response := q.Mean(k)
		mean += c.weights[k] * response
		kept = kept && !(demand.MeanSeconds > 0 && response > demand.MeanSeconds)
	}
	for k, demand := range c.Demands {
		kept = kept && !(demand.TailSeconds > 0 && q.Tail(k, demand.TailSeconds) > 1-tail)
	}
	one.mean, one.kept = mean, kept
	return nil
}

// sprints are those of a candidate.
func (c *chooser) sprints(one candidate) ([]Sprint, error) {
	sprints, rest := make([]Sprint, len(c.Demands)), c.Account
	for k, demand := range c.Demands {
		if !demand.Fixed || demand.Sprint.Speed <= 1 {
			continue
		}
		service, err := c.service(k, one.drop[k])
		if err != nil {
			return nil, err
		}
		_, watts := demand.Sprint.Effective(c.typical(k, service), c.rate(k, service), c.Account)
		sprints[k], rest.Watts = demand.Sprint, max(0, rest.Watts-watts)
	}
	for k, demand := range c.Demands {
		if demand.Fixed || demand.Sprint.Speed <= 1 || one.parts[k] == 0 {
			continue
		}
		key := payment{k, one.parts[k], one.drop[k], rest.Watts}
		paid, known := c.paid[key]
		if !known {
			service, err := c.service(k, one.drop[k])
			if err != nil {
				return nil, err
			}
			account := rest
			account.Watts *= float64(one.parts[k]) / parts
			paid = demand.Sprint.Paid(c.typical(k, service), c.rate(k, service), account)
			c.paid[key] = paid
		}
		sprints[k] = paid
	}
	return sprints, nil
}

// service is what jobs of the class take with the drop ratio.
func (c *chooser) service(k int, drop float64) ([]Phases, error) {
	service, err := c.Demands[k].Service(drop)
	if err != nil {
		return nil, fmt.Errorf("class %d: %w", k, err)
	}
	if phases := len(c.Arrivals.Hidden); len(service) != 1 && len(service) != phases {
		return nil, fmt.Errorf("class %d has %d distributions of what a job takes for %d phases of the arrivals: one for each, or a single one", k, len(service), phases)
	}
	return service, nil
}

// typical is what a job takes, whatever phase it comes in.
func (c *chooser) typical(k int, service []Phases) Phases {
	if len(service) == 1 {
		return service[0]
	}
	return mixed(c.Arrivals.shares(k), service)
}

// rate is how many jobs of a class come a second; of a standing one, as many as
// the slots could do if there were no others.
func (c *chooser) rate(k int, service []Phases) float64 {
	if c.Demands[k].Standing == 0 {
		return c.weights[k]
	}
	mean, _ := c.typical(k, service).Moments()
	return float64(c.Slots) / mean
}

// queue is the queue with these drop ratios and sprints, and the watts that the
// sprints take.
func (c *chooser) queue(drop []float64, sprints []Sprint) (*Queue, float64, error) {
	var classes []Class
	total := 0.0
	for k, demand := range c.Demands {
		service, err := c.service(k, drop[k])
		if err != nil {
			return nil, 0, err
		}
		speed, watts := sprints[k].Effective(c.typical(k, service), c.rate(k, service), c.Account)
		total += watts
		fast := make([]Phases, len(service))
		for i, one := range service {
			fast[i] = one.Sprinted(speed)
		}
		classes = append(classes, Class{Service: fast, Standing: demand.Standing})
	}
	q, err := NewQueue(c.Arrivals, classes, c.Slots)
	if err == nil && c.Seconds > 0 {
		q = q.Within(c.Seconds)
	}
	return q, total, err
}

// deepest is the choice of the largest ratios of the grids.
func (c *chooser) deepest(grids [][]float64) (Choice, error) {
	drop := make([]float64, len(grids))
	for k, grid := range grids {
		drop[k] = grid[len(grid)-1]
	}
	var best candidate
	for i, divided := range c.divisions() {
		one := candidate{drop: drop, parts: divided}
		if err := c.try(&one); err != nil {
			return Choice{}, err
		}
		if i == 0 || one.mean < best.mean {
			best = one
		}
	}
	return c.judge(drop, best.sprints)
}

// Judge is what follows from drop ratios and timeouts of sprints, one for each
// class. Where more work comes than can be done there are no response times, and
// it is no error.
func Judge(setting Setting, drop []float64, sprints []Sprint) (Choice, error) {
	c, err := newChooser(setting, 1)
	if err != nil {
		return Choice{}, err
	}
	if len(drop) != len(setting.Demands) || len(sprints) != len(setting.Demands) {
		return Choice{}, fmt.Errorf("%d drop ratios and %d sprints for %d classes: one of each for each is needed", len(drop), len(sprints), len(setting.Demands))
	}
	return c.judge(drop, sprints)
}

func (c *chooser) judge(drop []float64, sprints []Sprint) (Choice, error) {
	choice := Choice{Drop: slices.Clone(drop), Sprints: slices.Clone(sprints)}
	for k, demand := range c.Demands {
		choice.Loss = append(choice.Loss, demand.lossAt(drop[k]))
	}
	q, watts, err := c.queue(drop, sprints)
	if errors.Is(err, ErrOverloaded) {
		choice.Load = 1
		return choice, nil
	}
	if err != nil {
		return choice, err
	}
	choice.Load, choice.Watts = q.Load(), watts
	for k := range c.Demands {
		last, err := q.Quantile(k, tail)
		if err != nil {
			return choice, err
		}
		choice.Mean, choice.Tail = append(choice.Mean, q.Mean(k)), append(choice.Tail, last)
	}
	return choice, nil
}
