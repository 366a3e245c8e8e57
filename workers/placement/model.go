package placement

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/regression"
)

// Observation is what a task took on a machine of a type.
type Observation struct {
	Type     string
	Features []float64
	Took     Prediction
	// Probe says that it is of a probing task, which stays for ever: a type of
	// which no tasks are known is predicted from its probes.
	Probe bool
}

// ModelSettings bound what [Models] remember.
type ModelSettings struct {
	// Window is how many observations of each type are remembered beside the
	// probes, the newest ones; 512 when 0.
	Window int
	// LeastError is from which relative error of the seconds or joules on an
	// observation is learned from: what is predicted well already teaches
	// nothing (section 3.3.3). 0.05 when 0; negative to learn from all.
	LeastError float64
}

const (
	defaultWindow     = 512
	defaultLeastError = 0.05
	// ridge keeps the regression of few observations near the mean: the weight
	// of the prior belief that a feature changes nothing, in observations.
	ridge = 0.1
)

// Models predict from the features of a task what it takes, with two
// regressions for each type of machine (section 3.3.1). They are of the
// logarithms of seconds and joules, so that no prediction is negative and errors
// count by their ratio; the thesis leaves the scale open. Not safe for
// concurrent use.
type Models struct {
	settings ModelSettings
	kinds    map[string]*model
}

// NewModels returns models that know nothing.
func NewModels(settings ModelSettings) *Models {
	if settings.Window <= 0 {
		settings.Window = defaultWindow
	}
	if settings.LeastError == 0 {
		settings.LeastError = defaultLeastError
	}
	return &Models{settings: settings, kinds: map[string]*model{}}
}

type model struct {
	probes, window []Observation
	fitted         bool
	seconds        linearModel
	// metered says that there are joules to predict.
	metered bool
	joules  linearModel
	// past is how good predictions were.
	past accuracy
}

// Observe learns from what a task took; of one without joules, only the time. It
// reports whether that taught anything, and is an error for what cannot have been:
// seconds that are not positive, negative joules, and another number of features
// than other observations of the type have.
func (m *Models) Observe(one Observation) (learned bool, err error) {
	if !one.Took.usable() {
		return false, fmt.Errorf("a task took %g s and %g J: the seconds must be positive, and the joules too, or 0 where they are not known", one.Took.Seconds, one.Took.Joules)
	}
	if slices.ContainsFunc(one.Features, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
		return false, fmt.Errorf("the features %v must be finite", one.Features)
	}
	kind, known := m.kinds[one.Type]
	if !known {
		kind = &model{}
		m.kinds[one.Type] = kind
	}
	if width, some := kind.width(); some && width != len(one.Features) {
		return false, fmt.Errorf("a task of %d features on %s, where tasks have %d", len(one.Features), one.Type, width)
	}
	one.Features = slices.Clone(one.Features)
	if one.Probe {
		kind.probes = append(kind.probes, one)
		kind.fitted = false
		return true, nil
	}
	kind.past.seen++
	if p, said := m.Predict(one.Type, Task{Features: one.Features}); said {
		kind.past.judge(p, one.Took)
		if relativeError(p, one.Took) < m.settings.LeastError {
			return false, nil
		}
	}
	kind.past.learned++
	kind.window = append(kind.window, one)
	if over := len(kind.window) - m.settings.Window; over > 0 {
		kind.window = slices.Delete(kind.window, 0, over)
	}
	kind.fitted = false
	return true, nil
}

// relativeError is the larger of those of seconds and joules. Joules that were not
// measured are no error, and those that could not be predicted a whole one.
func relativeError(predicted, took Prediction) float64 {
	off := math.Abs(predicted.Seconds/took.Seconds - 1)
	if took.Joules > 0 {
		off = max(off, math.Abs(predicted.Joules/took.Joules-1))
	}
	return off
}

// Predict is what the task should take on a machine of the type; false where
// nothing of the type was observed.
func (m *Models) Predict(kind string, task Task) (Prediction, bool) {
	one, known := m.kinds[kind]
	if !known {
		return Prediction{}, false
	}
	if width, some := one.width(); !some || width != len(task.Features) {
		return Prediction{}, false
	}
	if !one.fitted {
		one.fit()
	}
	p := Prediction{Seconds: math.Exp(one.seconds.at(task.Features))}
	if one.metered {
		p.Joules = math.Exp(one.joules.at(task.Features))
	}
	return p, true
}

func (k *model) width() (features int, some bool) {
	for _, list := range [][]Observation{k.probes, k.window} {
		if len(list) > 0 {
			return len(list[0].Features), true
		}
	}
	return 0, false
}

func (k *model) fit() {
	all := slices.Concat(k.probes, k.window)
	k.seconds = regressionOf(all, func(p Prediction) float64 { return p.Seconds })
	metered := slices.DeleteFunc(all, func(one Observation) bool { return one.Took.Joules == 0 })
	if k.metered = len(metered) > 0; k.metered {
		k.joules = regressionOf(metered, func(p Prediction) float64 { return p.Joules })
	}
	k.fitted = true
}

// regressionOf is the one of the logarithm of what was observed.
func regressionOf(observations []Observation, of func(Prediction) float64) linearModel {
	features, values := make([][]float64, len(observations)), make([]float64, len(observations))
	mean := 0.0
	for i, one := range observations {
		features[i], values[i] = one.Features, math.Log(of(one.Took))
		mean += values[i] / float64(len(observations))
	}
	scale := regression.Standardize(features)
	for i := range values {
		features[i], values[i] = scale.Apply(features[i]), values[i]-mean
	}
	return linearModel{scale: scale, mean: mean, weights: regression.FitRidge(features, values, ridge)}
}

// linearModel is a linear one of standardized features.
type linearModel struct {
	scale   regression.Scale
	mean    float64
	weights []float64
}

func (r linearModel) at(features []float64) float64 {
	return r.mean + regression.Dot(r.weights, r.scale.Apply(features))
}
