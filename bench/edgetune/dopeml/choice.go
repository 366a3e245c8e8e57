package dopeml

import (
	"fmt"
	"math"
	"strings"
)

// Choice is an answer, and why.
type Choice struct {
	// Chosen is the place of the backend, -1 when none can be chosen.
	Chosen int `json:"-"`
	// Greedy is the place of what is predicted best; Chosen differs from it when
	// the choice explores.
	Greedy int `json:"-"`
	// Backend is the name of the chosen one, empty when none can be chosen.
	Backend string `json:"backend"`
	// Explored says that it was chosen to learn about it.
	Explored bool `json:"explored"`
	// Why is the reason, for people.
	Why string `json:"why"`
	// Options are all backends, in the order of the profiles.
	Options []Option `json:"options"`
}

// Option is one backend with what is predicted of it. All numbers are estimates.
type Option struct {
	Backend string `json:"backend"`
	// Runs is how many runs of it were learned.
	Runs int `json:"runs"`
	// Predicted has a band for each measure that runs have.
	Predicted map[string]Band `json:"predicted"`
	// Outcome has what follows for each criterion that is known.
	Outcome map[Criterion]Band `json:"outcome"`
	// Busy is the share of the time it would work; 0 when the rate is not known.
	Busy float64 `json:"busy"`
	// Worse is by which part the option is worse than the best one, all
	// priorities together; of options that can be compared.
	Worse *float64 `json:"worse,omitempty"`
	// RuledOut has the reasons why it cannot be chosen.
	RuledOut []string `json:"ruled_out,omitempty"`

	outcome Outcome
	loss    float64
}

func newOption(profile Profile, model Model, request Request, p prediction) Option {
	option := Option{Backend: profile.Name, Predicted: map[string]Band{}, Outcome: map[Criterion]Band{}}
	for m := range measures {
		gpu := m == GPUUtilization || m == GPUMemoryBytes
		switch {
		case gpu && profile.GPUs == 0:
			option.Predicted[m.String()] = Band{}
		case !math.IsNaN(p.mean[m]):
			option.Predicted[m.String()] = m.band(p.mean[m], p.deviation[m])
		}
	}
	at := func(step float64) Outcome {
		return Judge(profile, model, request, p.values(profile, func(Measure) float64 { return step }))
	}
	option.outcome = at(0)
	low, high := at(-1), at(1)
	for _, criterion := range Criteria() {
		mean := option.outcome.Of(criterion)
		if !finite(mean) {
			continue
		}
		band := Band{Mean: mean, Deviation: math.Abs(high.Of(criterion)-low.Of(criterion)) / 2}
		if !finite(band.Deviation) { // it may not keep up: only the side that is known
			band.Deviation = math.Abs(mean - low.Of(criterion))
		}
		option.Outcome[criterion] = band
	}
	option.Busy = option.outcome.Busy
	if math.IsNaN(option.Busy) {
		option.Busy = 0
	}
	return option
}

// rule finds what rules the option out. Before anything was learned only what
// the profile and the model say can.
func (o *Option) rule(profile Profile, model Model, wishes Wishes, learned bool) {
	o.loss = wishes.Loss(o.outcome)
	memory, known := o.Predicted[MemoryBytes.String()]
	if !known {
		memory.Mean = model.WeightBytes + model.PeakBytes
	}
	if memory.Mean > profile.MemoryBytes {
		o.RuledOut = append(o.RuledOut, fmt.Sprintf("it needs %s of memory and has %s", size(memory.Mean), size(profile.MemoryBytes)))
	}
	if gpu := o.Predicted[GPUMemoryBytes.String()]; profile.GPUs > 0 && gpu.Mean > profile.GPUMemoryBytes {
		o.RuledOut = append(o.RuledOut, fmt.Sprintf("it needs %s of GPU memory and has %s", size(gpu.Mean), size(profile.GPUMemoryBytes)))
	}
	if learned {
		o.RuledOut = append(o.RuledOut, wishes.Broken(o.outcome)...)
	}
}

// explain names the chosen option and says why.
func (c *Choice) explain(wishes Wishes) {
	if c.Greedy >= 0 {
		for b := range c.Options {
			if worse := math.Expm1(c.Options[b].loss - c.Options[c.Greedy].loss); len(c.Options[b].RuledOut) == 0 && finite(worse) {
				c.Options[b].Worse = &worse
			}
		}
	}
	var says []string
	if c.Chosen < 0 {
		says = append(says, "no backend can be chosen")
	} else {
		chosen := c.Options[c.Chosen]
		c.Backend = chosen.Backend
		switch {
		case c.Explored && chosen.Runs == 0:
			says = append(says, fmt.Sprintf("%s is tried to learn about it, since it never ran", chosen.Backend))
		case c.Explored:
			says = append(says, fmt.Sprintf("%s is tried to learn about it: its prediction (%s) is uncertain enough to be the best", chosen.Backend, chosen.amounts(wishes)))
		default:
			says = append(says, fmt.Sprintf("%s is predicted best by the priorities: %s", chosen.Backend, chosen.amounts(wishes)))
		}
	}
	for b, option := range c.Options {
		if b == c.Chosen {
			continue
		}
		switch {
		case len(option.RuledOut) > 0:
			says = append(says, fmt.Sprintf("%s is ruled out, as %s", option.Backend, strings.Join(option.RuledOut, " and ")))
		case b == c.Greedy:
			says = append(says, fmt.Sprintf("%s is predicted best (%s)", option.Backend, option.amounts(wishes)))
		case option.Runs == 0:
			says = append(says, fmt.Sprintf("%s never ran, so its prediction is not relied on", option.Backend))
		case option.Worse != nil && c.Greedy >= 0:
			says = append(says, fmt.Sprintf("%s is predicted %.0f%% worse (%s)", option.Backend, 100**option.Worse, option.amounts(wishes)))
		}
	}
	c.Why = strings.Join(says, "; ") + "."
}

// amounts are the bands of what has a weight.
func (o Option) amounts(wishes Wishes) string {
	var list []string
	for _, criterion := range Criteria() {
		if band, known := o.Outcome[criterion]; known && wishes.Weights[criterion] > 0 {
			amount := fmt.Sprintf("%s ± %s", Amount(criterion, band.Mean), Amount(criterion, band.Deviation))
			switch criterion {
			case ByEnergy:
				amount += " an inference"
			case ByAccuracy, ByCost:
				amount = string(criterion) + " " + amount
			}
			list = append(list, amount)
		}
	}
	return strings.Join(list, ", ")
}

func size(bytes float64) string {
	if bytes >= gibibyte {
		return fmt.Sprintf("%.3g GiB", bytes/gibibyte)
	}
	return fmt.Sprintf("%.3g MiB", bytes/mebibyte)
}
