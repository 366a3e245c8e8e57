package backend

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Priority are the weights of criteria: with latency 2 and energy 1, being 1% faster is worth
// 2% more energy.
type Priority map[string]float64

// The criteria: seconds of waiting and inference, joules of a sample and the price of a sample.
const (
	ByLatency = "latency"
	ByEnergy  = "energy"
	ByCost    = "cost"
)

func criteria() []string { return []string{ByLatency, ByEnergy, ByCost} }

// ParsePriority reads "latency=2,energy=1"; a weight that is left out is 1.
func ParsePriority(text string) (Priority, error) {
	priority := Priority{}
	for one := range strings.SplitSeq(text, ",") {
		name, value, given := strings.Cut(strings.TrimSpace(one), "=")
		weight, err := 1.0, error(nil)
		if given {
			weight, err = strconv.ParseFloat(value, 64)
		}
		if _, twice := priority[name]; err != nil || !(weight > 0 && weight <= 1e6) || twice || !slices.Contains(criteria(), name) {
			return nil, problem.WithFields("the priority cannot be used", []problem.Field{{Path: "priority", Value: text,
				Message: "must be weights above 0 of " + strings.Join(criteria(), ", ") + ", each once, such as cost or latency=2,energy=1"}})
		}
		priority[name] = weight
	}
	return priority, nil
}

// Heaviest is the criterion with the most weight.
func (p Priority) Heaviest() string {
	return slices.MaxFunc(criteria(), func(a, b string) int { return cmp.Compare(p[a], p[b]) })
}

// String is what ParsePriority reads.
func (p Priority) String() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		list = append(list, fmt.Sprintf("%s=%g", name, p[name]))
	}
	return strings.Join(list, ",")
}

// BackendChoice is the answer for a model, and why.
type BackendChoice struct {
	Study        string `json:"study"`
	Trial        int    `json:"trial"`
	Architecture string `json:"architecture"`
	Priority     string `json:"priority" doc:"the weights by which it was chosen"`
	// Chosen is the best that was measured to keep to the bounds, Likely one that is estimated
	// to be better than that, or where there is no such the best by estimates; empty if there
	// is none.
	Chosen string `json:"chosen,omitempty" doc:"the best backend that was measured to keep to the bounds; absent: none was"`
	Likely string `json:"likely,omitempty" doc:"a backend that is estimated to be better than the chosen one or, where none is, to be the best of those that may keep the bounds; an estimate promises nothing"`
	// Why is the reason, for people.
	Why     string          `json:"why"`
	Options []BackendOption `json:"options"`
}

// Choose chooses of the options, and says which are to be measured next: those not measured
// that would be better than the chosen one at the good end of their bands.
func Choose(options []BackendOption, priority Priority) BackendChoice {
	chosen := first(options, priority, func(o BackendOption) bool { return o.Measured && o.State == Keeps })
	least := math.Inf(1)
	if chosen >= 0 {
		least = loss(options[chosen], priority, 1, 1)
	}
	better := func(o BackendOption, state State) bool {
		return !o.Measured && o.State == state && loss(o, priority, 1, 1) < least
	}
	likely := first(options, priority, func(o BackendOption) bool { return better(o, Keeps) })
	if likely < 0 && chosen < 0 {
		likely = first(options, priority, func(o BackendOption) bool { return better(o, Doubtful) })
	}
	answer := BackendChoice{Priority: priority.String(), Options: options}
	for i := range options {
		o := &options[i]
		if could := o.Deployment != nil && o.Deployment.Runs() && !o.Measured && !o.refused(); could {
			lowest := loss(*o, priority, good(o.Deployment.LatencySeconds.Low, o.Deployment.LatencySeconds.Value), good(o.Deployment.JoulesPerSample.Low, o.Deployment.JoulesPerSample.Value))
			o.Wanted = math.IsNaN(lowest) || lowest < least
		}
		if worse := math.Expm1(loss(*o, priority, 1, 1) - least); chosen >= 0 && (o.State == Keeps || o.State == Doubtful) && !math.IsNaN(worse) && !math.IsInf(worse, 0) {
			o.Worse = &worse
		}
	}
	if chosen >= 0 {
		answer.Chosen = options[chosen].Backend.Name
	}
	if likely >= 0 {
		answer.Likely = options[likely].Backend.Name
	}
	answer.Why = answer.reason()
	return answer
}

// good is which part of a value the good end of its band is.
func good(low, value float64) float64 {
	if low > 0 && low < value {
		return low / value
	}
	return 1
}

// refused reports whether no measurement could make the backend take the load.
func (o BackendOption) refused() bool {
	return slices.ContainsFunc(o.Reasons, func(one string) bool { return strings.HasPrefix(one, limitWords) })
}

// first is the place of the best option that is wanted; -1 if there is none.
func first(options []BackendOption, priority Priority, wanted func(BackendOption) bool) int {
	best := -1
	for i, o := range options {
		if !wanted(o) || math.IsNaN(loss(o, priority, 1, 1)) {
			continue
		}
		if best < 0 || o.compare(options[best], priority) < 0 {
			best = i
		}
	}
	return best
}

// compare is below 0 where the option is better; of equals the faster one is.
func (o BackendOption) compare(other BackendOption, priority Priority) int {
	return cmp.Or(cmp.Compare(loss(o, priority, 1, 1), loss(other, priority, 1, 1)), cmp.Compare(o.seconds(), other.seconds()), strings.Compare(o.Backend.Name, other.Backend.Name))
}

// seconds are of waiting and inference under a load, else of a batch.
func (o BackendOption) seconds() float64 {
	if b := o.Deployment.Batching; b != nil && b.MeanSeconds > 0 {
		return b.MeanSeconds
	}
	return o.Deployment.LatencySeconds.Value
}

func (o BackendOption) joules() float64 {
	if b := o.Deployment.Batching; b != nil && b.JoulesPerSample > 0 {
		return b.JoulesPerSample
	}
	return o.Deployment.JoulesPerSample.Value
}

// nothing is a price that is less than any.
const nothing = 1e-30

// loss is how bad an option is if it took these parts of its time and energy: the weighted
// mean of the logarithms. 0.1 more is about 10% worse all in all. It is NaN where something
// with a weight is not known.
func loss(o BackendOption, priority Priority, time, energy float64) float64 {
	if o.Deployment == nil || !o.Deployment.Runs() {
		return math.NaN()
	}
	sum, weights := 0.0, 0.0
	for _, criterion := range criteria() {
		weight, value := priority[criterion], 0.0
		if weight == 0 {
			continue
		}
		switch criterion {
		case ByLatency:
			value = o.seconds() * time
		case ByEnergy:
			if value = o.joules() * energy; value == 0 {
				return math.NaN()
			}
		case ByCost:
			if value = o.Cost; o.Deployment.Batching == nil || o.Deployment.Batching.RatePerSecond == 0 {
				value *= time
			}
		}
		sum += weight * math.Log(max(value, nothing))
		weights += weight
	}
	return sum / weights
}

const limitWords = "it takes at most "

func limit(most, rate float64) string {
	return fmt.Sprintf("%s%g requests/s, and %g come", limitWords, most, rate)
}

// reason says why, for people.
func (c BackendChoice) reason() string {
	var says []string
	switch {
	case len(c.Options) == 0:
		return "There are no backends: add one with \"tandem backend add\"."
	case c.Chosen != "":
		says = append(says, fmt.Sprintf("%s is the best by %s of those that were measured to keep the bounds.", c.Chosen, c.Priority))
	default:
		says = append(says, "No backend was measured to keep the bounds.")
	}
	for _, o := range c.Options {
		if o.Backend.Name == c.Chosen && strings.Contains(c.Priority, ByEnergy) && o.Deployment.EnergyEstimated() {
			says = append(says, "Its joules are an estimate: no meter measured them.")
		}
		if o.Backend.Name == c.Likely {
			says = append(says, fmt.Sprintf("%s is estimated to %s: that promises nothing until it is measured.", c.Likely, c.hope(o)))
		}
	}
	var asked, away []string
	for _, o := range c.Options {
		if o.Wanted && o.Backend.Seen != nil {
			asked = append(asked, o.Backend.Name)
		} else if o.Wanted {
			away = append(away, o.Backend.Name)
		}
	}
	if len(asked) > 0 {
		says = append(says, "Boards are asked to measure "+strings.Join(asked, ", ")+".")
	}
	if len(away) > 0 {
		says = append(says, "Nobody measures "+strings.Join(away, ", ")+": run \"tandem edge agent\" on the device.")
	}
	return strings.Join(says, " ")
}

// hope is what the likely option is estimated to do.
func (c BackendChoice) hope(likely BackendOption) string {
	switch {
	case c.Chosen != "":
		return "be better"
	case likely.State == Doubtful:
		return "keep them, but not at the bad end of its band"
	}
	return "keep them"
}
