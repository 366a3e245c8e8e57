package deflate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Demand is what the jobs of a class are and what their users accept.
type Demand struct {
	// Standing is that of [Class].
	Standing int
	// Service is what they take without a sprint when so much of their data is left
	// out: for each phase of the arrivals, or one for all.
	Service func(drop float64) ([]Phases, error)
	// Loss is how much accuracy leaving out so much costs, in the user's unit;
	// nil: the class drops nothing. It must not fall.
	Loss func(drop float64) float64
	// MostLoss bounds it. MostDrop bounds the drop ratio itself; 0: only the loss
	// does.
	MostLoss, MostDrop float64
	// MeanSeconds and TailSeconds bound the mean response and the response that
	// 95% are within; 0: not bounded.
	MeanSeconds, TailSeconds float64
	// Sprint is how its jobs may be sped up; its timeout is chosen, unless it is
	// Fixed. The zero value does not sprint.
	Sprint Sprint
	Fixed  bool
}

// tail is the share of responses that TailSeconds is about.
const tail = 0.95

// Setting is what is to be chosen for: jobs that come to an engine, and what their
// users accept, the lowest class first.
type Setting struct {
	Arrivals Arrivals
	Demands  []Demand
	Slots    int
	// Seconds is for how long, from an idle engine on ([Queue.Within]); 0: in the
	// long run.
	Seconds float64
	// Account pays for the sprints of all classes together.
	Account Account
}

// Choice is a drop ratio for each class and the timeout of its sprint, and what
// follows from them.
type Choice struct {
	Drop []float64
	// Sprints are those of the demands with the timeouts that were chosen. Watts is
	// what they take in the long run.
	Sprints []Sprint
	Watts   float64
	// Mean and Tail are the response times, in seconds; estimates of the model.
	// There are none where more work comes than can be done.
	Mean, Tail []float64
	Loss       []float64
	Load       float64
}

// ErrNoChoice is of limits that nothing that may be chosen keeps.
var ErrNoChoice = errors.New("no drop ratios and timeouts of sprints keep all limits")

const (
	// mostChoices bounds how many combinations of drop ratios are looked at: with
	// many classes the grid gets coarser.
	mostChoices = 500
	// parts is in how many the watts of the account are divided among the classes
	// that sprint.
	parts = 4
)

// Choose finds the drop ratios and the timeouts of sprints with the least loss that
// keep every limit. Ratios are from a grid in steps of 1/steps (coarser where
// many classes may drop something); what is lost is added up over the classes,
// weighted by their rates, where a standing one counts as all others together. With
// each of them all of the account is used, as section 4.2 asks for: it is divided
// in parts among the classes that sprint in every way, and each timeout is the
// least that its share pays for ([Sprint.Paid]). Of equal losses the choice with the
// least mean response over all jobs is taken. This is the search of section 4.4.3
// and of the end of 4.4.4, with limits in place of weights.
//
// The error is ErrNoChoice where there is none; then the choice is what comes
// nearest: the largest drop ratios that are allowed, and of the timeouts those with
// the least mean response.
func Choose(setting Setting, steps int) (Choice, error) {
	c, err := newChooser(setting, steps)
	if err != nil {
		return Choice{}, err
	}
	grids := c.grids(steps)
	candidates := c.candidates(grids)
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.loss, b.loss) })
	var best *candidate
	for i, one := range candidates {
		if best != nil && one.loss > best.loss {
			break
		}
		if err := c.try(&candidates[i]); err != nil {
			return Choice{}, err
		}
		if candidates[i].kept && (best == nil || candidates[i].mean < best.mean) {
			best = &candidates[i]
		}
	}
	if best != nil {
		return c.judge(best.drop, best.sprints)
	}
	choice, err := c.deepest(grids)
	if err != nil {
		return choice, err
	}
	return choice, ErrNoChoice
}

// Deepest is the choice of the largest drop ratios that are allowed, with the
// timeouts that have the least mean response over all jobs.
func Deepest(setting Setting, steps int) (Choice, error) {
	c, err := newChooser(setting, steps)
	if err != nil {
		return Choice{}, err
	}
	return c.deepest(c.grids(steps))
}

// chooser is one search for a choice.
type chooser struct {
	Setting
	weights []float64 // of the classes
	paid    map[payment]Sprint
}

// payment is a share of the account's watts for a class that drops so much.
type payment struct {
	class, part int
	drop, watts float64
}

// candidate is one way to choose.
type candidate struct {
	drop    []float64
	parts   []int // of the account, by class
	loss    float64
	sprints []Sprint
	kept    bool
	mean    float64 // over all jobs
}

func newChooser(setting Setting, steps int) (*chooser, error) {
	if len(setting.Demands) == 0 || setting.Slots < 1 || steps < 1 || steps > 100 {
		return nil, fmt.Errorf("%d classes before %d slots in %d steps: at least one class and one slot, and 1 to 100 steps", len(setting.Demands), setting.Slots, steps)
	}
	if err := setting.Arrivals.Check(); err != nil {
		return nil, err
	}
	if len(setting.Arrivals.Marked) != len(setting.Demands) {
		return nil, fmt.Errorf("jobs of %d classes come and %d have a demand", len(setting.Arrivals.Marked), len(setting.Demands))
	}
	c := &chooser{Setting: setting, weights: setting.Arrivals.Rates(), paid: map[payment]Sprint{}}
	if setting.Demands[0].Standing > 0 {
		for _, rate := range c.weights[1:] {
			c.weights[0] += rate
		}
	}
	return c, nil
}

// grids are the drop ratios that each class may have, rising from 0.
func (c *chooser) grids(steps int) [][]float64 {
	for ; ; steps = (steps + 1) / 2 {
		grids, all := make([][]float64, len(c.Demands)), 1
		for k, demand := range c.Demands {
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

// candidates are all combinations of ratios from the grids with all ways to divide
// the account.
func (c *chooser) candidates(grids [][]float64) []candidate {
	list := []candidate{{}}
	for k, grid := range grids {
		var longer []candidate
		for _, one := range list {
			for _, drop := range grid {
				loss := one.loss + c.weights[k]*c.Demands[k].lossAt(drop)
				longer = append(longer, candidate{drop: append(slices.Clone(one.drop), drop), loss: loss})
			}
		}
		list = longer
	}
	var all []candidate
	for _, one := range list {
		for _, divided := range c.divisions() {
			one.parts = divided
			all = append(all, one)
		}
	}
	return all
}

// divisions are the ways to divide the account among the classes that sprint: one
// way where none or one does, or where the account is without a limit.
func (c *chooser) divisions() [][]int {
	var sprinters []int
	for k, demand := range c.Demands {
		if demand.Sprint.Speed > 1 && !demand.Fixed {
			sprinters = append(sprinters, k)
		}
	}
	list := [][]int{make([]int, len(c.Demands))}
	if len(sprinters) == 0 {
		return list
	}
	if math.IsInf(c.Account.Joules, 1) {
		for _, k := range sprinters {
			list[0][k] = parts
		}
		return list
	}
	for _, k := range sprinters[:len(sprinters)-1] {
		var longer [][]int
		for _, one := range list {
			for part := range parts - sum(one) + 1 {
				next := slices.Clone(one)
				next[k] = part
				longer = append(longer, next)
			}
		}
		list = longer
	}
	for _, one := range list {
		one[sprinters[len(sprinters)-1]] = parts - sum(one)
	}
	return list
}

func sum(list []int) int {
	sum := 0
	for _, one := range list {
		sum += one
	}
	return sum
}

func (d Demand) lossAt(drop float64) float64 {
	if d.Loss == nil {
		return 0
	}
	return d.Loss(drop)
}
