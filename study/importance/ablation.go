package importance

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/space"
)

// maxSteps is how many steps a path has at most. What is left then changes
// together in the last one.
const maxSteps = 32

// Change is one parameter's part of a step. A zero value says that the
// parameter does not exist there.
type Change struct {
	Parameter string
	From, To  space.Value
}

// Step is one step of a path.
type Step struct {
	// Switched are the parameters the step chose: one, unless no single one was
	// allowed. Dependent are those that came, went or changed with them.
	Switched, Dependent []Change
	// Configuration is where the step leads to, Predicted what the forest says of it.
	Configuration space.Configuration
	Predicted     Prediction
	// Gain is by how much the prediction grew.
	Gain float64
}

// Path leads from one configuration to another.
type Path struct {
	From  Prediction
	Steps []Step
}

// Gain is the whole path's gain: the sum of its steps'.
func (p Path) Gain() float64 {
	if len(p.Steps) == 0 {
		return 0
	}
	return p.Steps[len(p.Steps)-1].Predicted.Score - p.From.Score
}

// Ablate walks from one configuration to the other, each time switching the
// parameter that improves the forest's prediction most: an ablation (Fawcett
// and Hoos, 2016) on a surrogate (Biedenkapp et al., AAAI 2017).
//
// What a switch brings into being has the goal's value, and what it ends is
// gone. Configurations that are forbidden, or have a parameter that neither end
// has, are no steps. Where every single switch leads to one, the best allowed
// pair is switched, and without such a pair all that is left.
func (f *Forest) Ablate(from, to space.Configuration) Path {
	w := &walk{forest: f, from: f.cube.Encode(from), to: f.cube.Encode(to), switched: make([]bool, len(f.axes))}
	for d := range f.axes {
		name := f.axes[d].dimension.Name
		first, has := from[name]
		last, had := to[name]
		if has && had && first != last {
			w.left = append(w.left, d)
		}
	}
	path := Path{From: f.predict(w.from)}
	here, score := from, path.From.Score
	for len(w.left) > 0 {
		group, point := w.next(len(path.Steps) == maxSteps-1)
		for _, d := range group {
			w.switched[d] = true
		}
		w.left = slices.DeleteFunc(w.left, func(d int) bool { return w.switched[d] })
		there := w.configuration(point, from, to)
		if len(w.left) == 0 {
			there = to // not decoded: its own bits
		}
		step := Step{Configuration: there, Predicted: f.predict(point)}
		step.Switched, step.Dependent = f.changes(here, there, group)
		step.Gain = step.Predicted.Score - score
		path.Steps = append(path.Steps, step)
		here, score = there, step.Predicted.Score
	}
	return path
}

// walk is a path being walked.
type walk struct {
	forest   *Forest
	from, to []float64
	switched []bool
	left     []int // the parameters that both ends have, with different values
}

// next chooses what to switch, and where that leads.
func (w *walk) next(last bool) ([]int, []float64) {
	if last || len(w.left) == 1 {
		return w.all()
	}
	var groups [][]int
	for _, d := range w.left {
		groups = append(groups, []int{d})
	}
	if group, point := w.best(groups); group != nil {
		return group, point
	}
	groups = groups[:0]
	for i, d := range w.left[:min(len(w.left), maxSteps)] {
		for _, e := range w.left[i+1 : min(len(w.left), maxSteps)] {
			groups = append(groups, []int{d, e})
		}
	}
	if group, point := w.best(groups); group != nil {
		return group, point
	}
	return w.all()
}

func (w *walk) all() ([]int, []float64) { return slices.Clone(w.left), w.to }

// best is the allowed group with the best prediction; of equals the first.
func (w *walk) best(groups [][]int) (best []int, at []float64) {
	score := 0.0
	for _, group := range groups {
		point, ok := w.point(group)
		if !ok {
			continue
		}
		if predicted := w.forest.predict(point).Score; best == nil || predicted > score {
			best, at, score = group, point, predicted
		}
	}
	return best, at
}

// point is where switching the group leads. It answers false for what is
// forbidden, or has a parameter that neither end has.
func (w *walk) point(group []int) ([]float64, bool) {
	point, unknown := make([]float64, len(w.from)), make([]bool, len(w.from))
	for d := range point {
		first, last := w.from[d], w.to[d]
		switch {
		case !math.IsNaN(first) && (math.IsNaN(last) || !w.switched[d] && !slices.Contains(group, d)):
			point[d] = first
		case !math.IsNaN(last):
			point[d] = last
		default:
			point[d], unknown[d] = 0.5, true
		}
	}
	w.forest.cube.Mask(point)
	for d, u := range point {
		if unknown[d] && !math.IsNaN(u) {
			return nil, false
		}
	}
	return point, !w.forest.cube.Forbids(point)
}

// configuration takes the ends' values, bit for bit, for a point of the walk.
func (w *walk) configuration(point []float64, from, to space.Configuration) space.Configuration {
	configuration := make(space.Configuration, len(point))
	for d, u := range point {
		name := w.forest.axes[d].dimension.Name
		value, has := from[name]
		switch {
		case math.IsNaN(u): // it does not exist here
		case !has || w.switched[d]:
			configuration[name] = to[name]
		default:
			configuration[name] = value
		}
	}
	return configuration
}

// changes tells two neighbours of a path apart.
func (f *Forest) changes(here, there space.Configuration, group []int) (switched, dependent []Change) {
	for d := range f.axes {
		name := f.axes[d].dimension.Name
		change := Change{Parameter: name, From: here[name], To: there[name]}
		switch {
		case change.From == change.To:
		case slices.Contains(group, d):
			switched = append(switched, change)
		default:
			dependent = append(dependent, change)
		}
	}
	return switched, dependent
}
