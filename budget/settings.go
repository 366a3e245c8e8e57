package budget

import (
	"cmp"
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/problem"
)

// The bounds of a ladder's settings.
const (
	MaxEpochs   = 1_000_000
	MinFraction = 1e-6 // the smallest share that six decimals can tell from nothing
	MaxEta      = 100
	MaxRungs    = 100
	MinAmount   = 1e-3 // seconds or joules
	MaxAmount   = 1e9
)

// WithDefaults returns the settings with everything filled in that was left at
// zero; filled settings come back unchanged.
//
//   - growth is geometric and eta 3. A rounding is not filled in.
//   - epochs are 1 to 9 (the maximum is never below a given minimum).
//   - data_fraction ends at 1 and begins at 0.1, the smallest share the
//     thesis's multi-budget uses; under the epochs policy it does not grow, so
//     that it is 1 throughout.
//   - policy is the one that grows what was given: seconds or joules if they
//     were, epochs if only epochs were, dataset if only data_fraction was, else
//     multi.
//   - under seconds and joules the data fraction does not grow either, epochs
//     bound nothing unless given, and the minimum is a ninth of the maximum.
func (s Settings) WithDefaults() Settings {
	if s.Policy == "" {
		epochs, data := s.Epochs != (EpochRange{}), s.DataFraction != (FractionRange{})
		switch {
		case s.Seconds != (AmountRange{}):
			s.Policy = Seconds
		case s.Joules != (AmountRange{}):
			s.Policy = Joules
		case epochs && !data:
			s.Policy = Epochs
		case data && !epochs:
			s.Policy = Dataset
		default:
			s.Policy = Multi
		}
	}
	s.Growth = cmp.Or(s.Growth, Geometric)
	if s.Eta == 0 {
		s.Eta = 3
	}
	if s.Policy.Measured() && s.Epochs.Max == 0 {
		s.Epochs.Max = MaxEpochs
	}
	for _, r := range []*AmountRange{&s.Seconds, &s.Joules} {
		r.Min = cmp.Or(r.Min, r.Max/9)
	}
	s.Epochs.Max = cmp.Or(s.Epochs.Max, max(9, s.Epochs.Min))
	if s.Epochs.Min == 0 {
		s.Epochs.Min = min(1, s.Epochs.Max)
	}
	s.DataFraction.Max = cmp.Or(s.DataFraction.Max, 1)
	if s.DataFraction.Min == 0 {
		s.DataFraction.Min = min(0.1, s.DataFraction.Max)
		if s.Policy == Epochs || s.Policy.Measured() {
			s.DataFraction.Min = s.DataFraction.Max
		}
	}
	return s
}

// Validate returns everything that is wrong with complete settings, those that
// WithDefaults returned; path is where they stand in the user's file, such as
// "budget". Settings without a fault have a ladder of at most MaxRungs rungs.
func (s Settings) Validate(path string) []problem.Field {
	v := validation{path: path}
	switch s.Policy {
	case Multi, Epochs, Dataset, Seconds, Joules:
	default:
		v.fault("policy", string(s.Policy), "must be multi, epochs, dataset, seconds or joules")
	}
	switch s.Growth {
	case Geometric, Linear:
	default:
		v.fault("growth", string(s.Growth), "must be geometric or linear")
	}
	switch s.Rounding {
	case "", Nearest, Down:
	default:
		v.fault("rounding", string(s.Rounding), "must be nearest or down")
	}
	if s.Eta < 2 || s.Eta > MaxEta {
		v.fault("eta", s.Eta, "must be a whole number between 2 and %d: about one trial in eta goes up a rung", MaxEta)
	}
	v.epochs(s.Epochs)
	v.fractions(s.DataFraction)
	v.amounts(s, Seconds, s.Seconds)
	v.amounts(s, Joules, s.Joules)
	if len(v.faults) == 0 && s.Growth == Linear {
		if n := s.iterations(); n > MaxRungs {
			v.fault("growth", string(s.Growth),
				"gives %d rungs between these minima and maxima, more than %d: raise the smaller minimum, or use geometric growth", n, MaxRungs)
		}
	}
	return v.faults
}

// validation collects the faults of one Settings.
type validation struct {
	path   string
	faults []problem.Field
}

func (v *validation) fault(name string, value any, format string, args ...any) {
	v.faults = append(v.faults, problem.Field{Path: v.path + "." + name, Message: fmt.Sprintf(format, args...), Value: value})
}

func (v *validation) epochs(r EpochRange) {
	wrong := func(n int) bool { return n < 1 || n > MaxEpochs }
	if wrong(r.Min) {
		v.fault("epochs.min", r.Min, "must be a whole number between 1 and %d", MaxEpochs)
	}
	if wrong(r.Max) {
		v.fault("epochs.max", r.Max, "must be a whole number between 1 and %d", MaxEpochs)
	}
	if !wrong(r.Min) && !wrong(r.Max) && r.Min > r.Max {
		v.fault("epochs.min", r.Min, "must not be above epochs.max, which is %d", r.Max)
	}
}

// amounts checks the range that belongs to a measured policy.
func (v *validation) amounts(s Settings, policy Policy, r AmountRange) {
	name := string(policy)
	if s.Policy != policy {
		if r != (AmountRange{}) {
			v.fault(name, nil, "must be left out with policy: %s; or write policy: %s", s.Policy, policy)
		}
		return
	}
	wrong := func(a float64) bool { return !(a >= MinAmount && a <= MaxAmount) }
	if r == (AmountRange{}) {
		v.fault(name, nil, "is missing, and policy: %s needs it: write %s: {min: 60, max: 540}, counted from a trial's first epoch", name, name)
		return
	}
	if wrong(r.Min) {
		v.fault(name+".min", fmt.Sprint(r.Min), "must be a number between %g and %g", MinAmount, MaxAmount)
	}
	if wrong(r.Max) {
		v.fault(name+".max", fmt.Sprint(r.Max), "must be a number between %g and %g", MinAmount, MaxAmount)
	}
	if !wrong(r.Min) && !wrong(r.Max) && r.Min > r.Max {
		v.fault(name+".min", r.Min, "must not be above %s.max, which is %g", name, r.Max)
	}
}

func (v *validation) fractions(r FractionRange) {
	wrong := func(f float64) bool { return math.IsNaN(f) || f < MinFraction || f > 1 }
	bound := func(name string, f float64) {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			v.fault(name, fmt.Sprint(f), "must be a number above 0, at most 1: the share of the training data")
		} else if wrong(f) {
			v.fault(name, f, "must be at least %g and at most 1: the share of the training data (0.1 for 10%%)", MinFraction)
		}
	}
	bound("data_fraction.min", r.Min)
	bound("data_fraction.max", r.Max)
	if !wrong(r.Min) && !wrong(r.Max) && r.Min > r.Max {
		v.fault("data_fraction.min", r.Min, "must not be above data_fraction.max, which is %g", r.Max)
	}
}
