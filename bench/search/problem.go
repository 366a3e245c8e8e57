package main

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/bench/simulator"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
)

// table is a recorded problem: a study, and what came of each configuration
// that somebody really trained. A configuration that a search asks for is
// answered by the row nearest to it: least Euclidean distance in the unit cube
// of the space, where logarithmic parameters are logarithmic and the values of
// an ordinal are evenly spread. Of equally near rows the first answers.
type table struct {
	name       string
	definition definition.Definition
	cube       *space.Cube
	points     [][]float64
	// drawn are the points of the first rows, where something else answers than points.
	drawn [][]float64
	// row answers for a configuration where something else than the nearest
	// point does.
	row func(space.Configuration) int
	// at is one epoch of a row's training on a share of the data.
	at func(row, epoch int, fraction float64) simulator.Measurement
	// best and median are of the rows' values at the full budget; a row that
	// diverged is worse than any other.
	best, median float64
}

// newTable parses the study file and ranks the rows.
func newTable(name, file string, rows []space.Configuration, at func(row, epoch int, fraction float64) simulator.Measurement) (*table, error) {
	def, err := studyfile.Parse([]byte(file), studyfile.YAML)
	if err != nil {
		return nil, err
	}
	t := &table{name: name, definition: def, cube: def.Space.Cube(), at: at}
	losses := make([]float64, len(rows))
	for i, row := range rows {
		t.points = append(t.points, t.cube.Encode(row))
		losses[i] = t.loss(t.full(i))
	}
	t.rank(losses)
	return t, nil
}

// rank takes the best and the median of the losses.
func (t *table) rank(losses []float64) {
	slices.SortFunc(losses, worseLast)
	t.best, t.median = losses[0], losses[len(losses)/2]
}

// worseLast orders losses, NaN behind every number.
func worseLast(a, b float64) int {
	switch {
	case math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a) || a > b:
		return 1
	case math.IsNaN(b) || a < b:
		return -1
	}
	return 0
}

// maxEpochs is the full budget of one training, on all of the data.
func (t *table) maxEpochs() int { return t.definition.Budget.Epochs.Max }

// loss is a value of the objective, the sign turned so that less is better.
func (t *table) loss(value float64) float64 {
	if t.definition.Objectives[0].Direction == definition.Maximize {
		return -value
	}
	return value
}

func (t *table) full(row int) float64 { return t.at(row, t.maxEpochs(), 1).Value }

// nearest is the row that answers for the configuration.
func (t *table) nearest(c space.Configuration) int {
	if t.row != nil {
		return t.row(c)
	}
	point := t.cube.Encode(c)
	row, closest := 0, math.Inf(1)
	for i, other := range t.points {
		distance := 0.0
		for d := range point {
			distance += (point[d] - other[d]) * (point[d] - other[d])
		}
		if distance < closest {
			row, closest = i, distance
		}
	}
	return row
}

// Measure makes the table a benchmark of the simulator.
func (t *table) Measure(c space.Configuration, epoch int, fraction float64) simulator.Measurement {
	return t.at(t.nearest(c), epoch, fraction)
}

// missing is the share of the best row's value, both at the full budget and above 0,
// that a value lacks: 0.1 for 90% of an accuracy, and for 1/0.9 of a loss.
func (t *table) missing(value float64) float64 {
	if t.loss(1) < 0 {
		return 1 - t.loss(value)/t.best
	}
	return 1 - t.best/value
}

// regret is normalized: 0 for the best row's value at the full budget, 1 for
// the median row's and for everything worse, for a diverged training, and for
// a search that has no answer yet.
func (t *table) regret(value float64) float64 {
	regret := (t.loss(value) - t.best) / (t.median - t.best)
	if math.IsNaN(regret) {
		return 1
	}
	return min(max(regret, 0), 1)
}
