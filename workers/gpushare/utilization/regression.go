package utilization

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Model is two regressions, and is written and read as JSON.
type Model struct {
	// Version is of the features: a model of another one is refused.
	Version  int      `json:"version"`
	Settings Settings `json:"settings"`
	// Samples is how many profiles it was learned from.
	Samples     int        `json:"samples"`
	Utilization Regression `json:"utilization"`
	Memory      Regression `json:"memory"`
}

// version is raised when the columns change.
const version = 1

// Read is a model that was written as JSON.
func Read(document []byte) (*Model, error) {
	var m Model
	if err := json.Unmarshal(document, &m); err != nil {
		return nil, fmt.Errorf("the model of utilization cannot be read: %w", err)
	}
	if m.Version != version {
		return nil, fmt.Errorf("the model of utilization has version %d, this program version %d: train it again", m.Version, version)
	}
	for _, one := range []*Regression{&m.Utilization, &m.Memory} {
		if err := one.check(); err != nil {
			return nil, fmt.Errorf("the model of utilization is damaged: %w", err)
		}
	}
	return &m, nil
}

// Regression predicts one logarithm by trees.
type Regression struct {
	// Start is what there is before any tree; Scale what a tree counts.
	Start float64 `json:"start"`
	Scale float64 `json:"scale,omitempty"`
	Trees []Tree  `json:"trees,omitempty"`
	// Residual is how far predictions of what was not seen were off, the root of
	// the mean square; with Spread in units of how far the trees were apart there,
	// so that a prediction is less sure where they disagree.
	Spread   bool    `json:"spread,omitempty"`
	Residual float64 `json:"residual"`
	// Gains are by how much each column lowered the error.
	Gains []float64 `json:"gains"`
}

// predict is the mean and the deviation of the logarithm.
func (r *Regression) predict(x []float64) (mean, deviation float64) {
	mean, unit := r.say(x)
	return mean, unit * r.Residual
}

// leastSpread is added to how far trees are apart: where all agree, the
// prediction is not certain.
const leastSpread = 0.02

// say is the mean, and what a residual is counted in there: 1, or how far the
// trees are apart.
func (r *Regression) say(x []float64) (mean, unit float64) {
	mean = r.Start
	squares := 0.0
	for _, tree := range r.Trees {
		said := tree.predict(x)
		mean += r.Scale * said
		squares += r.Scale * said * said
	}
	if !r.Spread {
		return mean, 1
	}
	return mean, leastSpread + math.Sqrt(max(0, squares-mean*mean))
}

// fit learns with the method of the settings.
func fit(inputs [][]float64, targets []float64, settings Settings) Regression {
	random := rand.New(rand.NewPCG(settings.Seed, 11)) //nolint:gosec // what is drawn has to repeat
	mean := 0.0
	for _, value := range targets {
		mean += value / float64(len(targets))
	}
	r := Regression{Start: mean, Gains: make([]float64, width)}
	if settings.Method == Forest {
		r.forest(inputs, targets, settings, random)
	}
	return r
}

// forest averages trees, each of a sample drawn with replacement, with a third
// of the columns tried at each split (Breiman, 2001).
func (r *Regression) forest(inputs [][]float64, targets []float64, settings Settings, random *rand.Rand) {
	r.Start, r.Scale, r.Spread = 0, 1/float64(settings.Trees), true
	g := grower{inputs: inputs, targets: targets, settings: settings, random: random, tried: max(1, (width+2)/3), gains: r.Gains}
	for range settings.Trees {
		sample := make([]int, len(inputs))
		for i := range sample {
			sample[i] = random.IntN(len(inputs))
		}
		r.Trees = append(r.Trees, g.tree(sample))
	}
}

func (r *Regression) finite() bool {
	bad := func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }
	return !bad(r.Start) && !bad(r.Residual)
}

// check refuses what a prediction would stumble over.
func (r *Regression) check() error {
	if len(r.Gains) != width {
		return fmt.Errorf("%d gains for %d columns", len(r.Gains), width)
	}
	for i, tree := range r.Trees {
		if err := tree.check(); err != nil {
			return fmt.Errorf("tree %d: %w", i, err)
		}
	}
	return nil
}

// Importance is how much a column decides.
type Importance struct {
	Name  string
	Share float64 // of all columns together
}

// Importances are those of the columns for the utilization, the largest first: by
// how much of the squared error their splits took away.
func (m *Model) Importances() []Importance {
	total := 0.0
	for _, gain := range m.Utilization.Gains {
		total += gain
	}
	var list []Importance
	for j, column := range columns() {
		one := Importance{Name: column}
		if total > 0 {
			one.Share = m.Utilization.Gains[j] / total
		}
		list = append(list, one)
	}
	slices.SortStableFunc(list, func(a, b Importance) int { return cmp.Compare(b.Share, a.Share) })
	return list
}
