package goptunatandem

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"

	"github.com/c-bata/goptuna"
	tandem "github.com/tandem-tune/tandem/clients/go"
)

// An objective says what it wants while it runs; a study wants its space beforehand. So
// the first trials look: each value of each choice is tried once, and what was asked for
// where tells the parameters and their conditions.
const (
	// mostValues is how many values a choice has at most that decides on which other
	// parameters there are.
	mostValues = 10
	// enoughTrials is after how many trials the space is what they have shown.
	enoughTrials = 10
)

// asked is what a completed trial asked for, and what it got in goptuna's internal form.
type asked struct {
	distributions map[string]any
	values        map[string]float64
}

// place is which of its few values a parameter had.
func (a asked) place(name string) int { return place(a.distributions[name], a.values[name]) }

// few is how many values a parameter has; false if they are one, or too many to try all.
func few(distribution any) (int, bool) {
	count := 0
	switch d := distribution.(type) {
	case goptuna.CategoricalDistribution:
		count = len(d.Choices)
	case goptuna.IntUniformDistribution:
		count = d.High - d.Low + 1
	case goptuna.StepIntUniformDistribution:
		count = (d.High-d.Low)/d.Step + 1
	}
	return count, 1 < count && count <= mostValues
}

func place(distribution any, value float64) int {
	switch d := distribution.(type) {
	case goptuna.IntUniformDistribution:
		return int(math.Round(value)) - d.Low
	case goptuna.StepIntUniformDistribution:
		return int(math.Round((value - float64(d.Low)) / float64(d.Step)))
	}
	return int(value)
}

// at is the internal form of the i-th of few values.
func at(distribution any, i int) float64 {
	switch d := distribution.(type) {
	case goptuna.IntUniformDistribution:
		return float64(d.Low + i)
	case goptuna.StepIntUniformDistribution:
		return float64(d.Low + i*d.Step)
	}
	return float64(i)
}

// condition says that a parameter is there where another one has one of these values.
type condition struct {
	name   string
	places []int
}

// shape is what trials have shown of an objective's space.
type shape struct {
	trials        []asked
	distributions map[string]any
	// order has a parameter behind those that it may depend on: these are in at least as
	// many trials. Those with one value, or whose range changes, cannot be searched.
	order []string
}

func shapeOf(trials []asked) shape {
	s := shape{trials: trials, distributions: map[string]any{}}
	count, changing := map[string]int{}, map[string]bool{}
	for _, trial := range trials {
		for name, distribution := range trial.distributions {
			if before, known := s.distributions[name]; known && !reflect.DeepEqual(before, distribution) {
				changing[name] = true
			}
			s.distributions[name] = distribution
			count[name]++
		}
	}
	for name, distribution := range s.distributions {
		if single, err := goptuna.DistributionIsSingle(distribution); err == nil && !single && !changing[name] {
			s.order = append(s.order, name)
		}
	}
	slices.SortFunc(s.order, func(a, b string) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	return s
}

// explanations are the conditions on one other parameter that agree with all trials.
func (s shape) explanations(name string) []condition {
	var having, lacking []asked
	for _, trial := range s.trials {
		if _, has := trial.values[name]; has {
			having = append(having, trial)
		} else {
			lacking = append(lacking, trial)
		}
	}
	var found []condition
	for _, other := range s.order[:slices.Index(s.order, name)] {
		count, is := few(s.distributions[other])
		without := func(trial asked) bool { _, has := trial.values[other]; return !has }
		if !is || len(lacking) == 0 || slices.ContainsFunc(having, without) {
			continue
		}
		yes, no := make([]bool, count), make([]bool, count)
		for _, trial := range having {
			yes[trial.place(other)] = true
		}
		for _, trial := range lacking {
			if !without(trial) {
				no[trial.place(other)] = true
			}
		}
		one, both := condition{name: other}, false
		for i := range count {
			both = both || yes[i] && no[i]
			if !no[i] {
				one.places = append(one.places, i)
			}
		}
		if len(one.places) < count && !both {
			found = append(found, one)
		}
	}
	return found
}

// settled reports whether every value of every choice was tried, and no condition can be
// read in two ways.
func (s shape) settled() bool {
	if len(s.trials) == 0 || len(s.trials) >= enoughTrials {
		return len(s.trials) > 0
	}
	for _, name := range s.order {
		if count, is := few(s.distributions[name]); is {
			tried := map[int]bool{}
			for _, trial := range s.trials {
				if _, has := trial.values[name]; has {
					tried[trial.place(name)] = true
				}
			}
			if len(tried) < count {
				return false
			}
		}
		if len(s.explanations(name)) > 1 {
			return false
		}
	}
	return true
}

// parameters are the space of the study on the server.
func (s shape) parameters() ([]tandem.Parameter, error) {
	var found []tandem.Parameter
	known := map[string]string{}
	for _, name := range s.order {
		parameter := parameterOf(serverName(name), s.distributions[name])
		if other, taken := known[parameter.Name]; taken {
			return nil, fmt.Errorf("goptunatandem: the parameters %q and %q would both be %s on the server, which takes letters, digits and '_', '.', '-': rename one", other, name, parameter.Name)
		}
		known[parameter.Name] = name
		if conditions := s.explanations(name); len(conditions) == 1 {
			on := conditions[0]
			values := make([]any, len(on.places))
			for i, place := range on.places {
				values[i] = toServer(s.distributions[on.name], at(s.distributions[on.name], place))
			}
			parameter = parameter.When(serverName(on.name), values...)
		}
		found = append(found, parameter)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("goptunatandem: the objective asks for no parameter that can be searched: call trial.SuggestFloat, SuggestInt or SuggestCategorical in it, with more than one value")
	}
	return found, nil
}

func parameterOf(name string, distribution any) tandem.Parameter {
	switch d := distribution.(type) {
	case goptuna.UniformDistribution:
		return tandem.Float(name, d.Low, d.High)
	case goptuna.LogUniformDistribution:
		return tandem.LogFloat(name, d.Low, d.High)
	case goptuna.DiscreteUniformDistribution:
		return tandem.Float(name, d.Low, d.Low+math.Floor((d.High-d.Low)/d.Q+1e-9)*d.Q).Step(d.Q)
	case goptuna.IntUniformDistribution:
		return tandem.Int(name, d.Low, d.High)
	case goptuna.StepIntUniformDistribution:
		return tandem.Int(name, d.Low, d.Low+(d.High-d.Low)/d.Step*d.Step).Step(float64(d.Step))
	case goptuna.CategoricalDistribution:
		return tandem.Categorical(name, d.Choices...)
	}
	return tandem.Parameter{Name: name} // goptuna has no others
}

// toServer is a value in goptuna's internal form as the server has it.
func toServer(distribution any, value float64) any {
	external, err := goptuna.ToExternalRepresentation(distribution, value)
	if err != nil {
		return value
	}
	return external
}

// fromServer is the server's value in goptuna's internal form; false if the objective
// does not ask for it.
func fromServer(distribution, value any) (float64, bool) {
	if d, is := distribution.(goptuna.CategoricalDistribution); is {
		text, ok := value.(string)
		index := slices.Index(d.Choices, text)
		return float64(index), ok && index >= 0
	}
	number := 0.0
	switch v := value.(type) {
	case float64:
		number = v
	case int64:
		number = float64(v)
	default:
		return 0, false
	}
	switch d := distribution.(type) {
	case goptuna.UniformDistribution:
		return number, d.Contains(number)
	case goptuna.LogUniformDistribution:
		return number, d.Contains(number)
	case goptuna.DiscreteUniformDistribution:
		return number, d.Contains(number)
	case goptuna.IntUniformDistribution:
		return number, number == math.Trunc(number) && d.Contains(number)
	case goptuna.StepIntUniformDistribution: // its Contains leaves the upper bound out
		steps := (number - float64(d.Low)) / float64(d.Step)
		return number, number >= float64(d.Low) && number <= float64(d.High) && steps == math.Trunc(steps)
	}
	return 0, false
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// serverName is a name as the server takes it: letters, digits, '_', '.' and '-'.
func serverName(name string) string {
	found := notInNames.ReplaceAllString(name, "_")
	if found == "" || !regexp.MustCompile(`^[A-Za-z_]`).MatchString(found) {
		found = "_" + found
	}
	return found[:min(len(found), 128)]
}

// exploration chooses the values of the first trials, so that few of them show the
// whole space.
type exploration struct {
	given map[string][]int
	// below are the parameters that trials had beside a value, by name and place.
	below map[string]map[int]map[string]bool
	// apart are conditions that explain one parameter alike: the next trial meets the
	// first of them alone, which leaves fewer.
	apart []condition
}

// learn takes note of what a completed trial was asked for.
func (e *exploration) learn(trial asked) {
	for name, distribution := range trial.distributions {
		count, is := few(distribution)
		if !is {
			continue
		}
		given, at := e.counts(name, count), trial.place(name)
		given[at] = max(given[at], 1)
		if e.below[name] == nil {
			e.below[name] = map[int]map[string]bool{}
		}
		if e.below[name][at] == nil {
			e.below[name][at] = map[string]bool{}
		}
		maps.Copy(e.below[name][at], maps.Collect(func(yield func(string, bool) bool) {
			for other := range trial.distributions {
				if other != name && !yield(other, true) {
					return
				}
			}
		}))
	}
}

// doubt takes note of conditions that trials have left open.
func (e *exploration) doubt(s shape) {
	e.apart = nil
	for _, name := range s.order {
		if found := s.explanations(name); len(found) > 1 {
			e.apart = found
			return
		}
	}
}

// choose takes a value that was not tried yet; else one that tells conditions apart;
// else one beside which another parameter has such a value; else any.
func (e *exploration) choose(name string, count int) int {
	given := e.counts(name, count)
	var fresh, open, all []int
	for i := range count {
		all = append(all, i)
		if given[i] == 0 {
			fresh = append(fresh, i)
		}
		for other := range e.below[name][i] {
			if counts := e.given[other]; slices.Contains(counts, 0) {
				open = append(open, i)
				break
			}
		}
	}
	from := all
	if len(open) > 0 {
		from = open
	}
	for i, one := range e.apart {
		if one.name == name {
			from = slices.DeleteFunc(all, func(at int) bool { return slices.Contains(one.places, at) != (i == 0) })
		}
	}
	if len(fresh) > 0 {
		from = fresh
	}
	chosen := from[rand.N(len(from))]
	given[chosen]++
	return chosen
}

func (e *exploration) counts(name string, count int) []int {
	if e.given == nil {
		e.given, e.below = map[string][]int{}, map[string]map[int]map[string]bool{}
	}
	for len(e.given[name]) < count {
		e.given[name] = append(e.given[name], 0)
	}
	return e.given[name]
}
