package backend

import "math"

// stacked is a line and, on what it leaves over, a network: with few runs the
// line leaves nothing over that it has seen, and predicts alone; with many the
// network learns what lines cannot say.
type stacked struct {
	shape  Shape
	memory memory
	line   *ridge
	rest   *online
	seen   int
	fitted int
}

func newStacked(shape Shape) *stacked {
	return &stacked{shape: shape, memory: memory{window: shape.Window},
		line: &ridge{shape: shape, memory: memory{window: shape.Window}}, rest: newOnline(shape)}
}

func (s *stacked) Fit(rows []Row) {
	s.memory.fill(rows)
	s.line.Fit(rows)
	s.seen = len(rows)
	s.refit()
}

func (s *stacked) Learn(row Row) {
	s.memory.add(row)
	s.line.Learn(row)
	s.seen++
	if s.seen >= 2*s.fitted {
		s.refit()
		return
	}
	s.rest.Learn(s.left(row))
}

func (s *stacked) refit() {
	s.fitted = s.seen
	rows := make([]Row, len(s.memory.rows))
	for i, row := range s.memory.rows {
		rows[i] = s.left(row)
	}
	s.rest.Fit(rows)
}

// left is a run with what the line leaves over as its targets.
func (s *stacked) left(row Row) Row {
	mean, _ := s.line.Predict(row.Features)
	targets := make([]float64, len(mean))
	for o := range targets {
		targets[o] = row.Targets[o] - mean[o]
	}
	row.Targets = targets
	return row
}

// certain is the least share of the line's variance that is left, whatever the
// network explains of runs that it did not see.
const certain = 0.1

func (s *stacked) Predict(features []float64) (mean, deviation []float64) {
	mean, deviation = s.line.Predict(features)
	if s.rest.members == nil {
		return mean, deviation
	}
	scale := s.rest.scale
	more, variance := s.rest.predict(scale.input(features))
	for o, spread := range scale.targetSD {
		if math.IsNaN(scale.targetMean[o]) {
			continue
		}
		mean[o] += scale.targetMean[o] + spread*more[o]
		unexplained := min(max(s.rest.residual[o], certain), 1)
		deviation[o] = math.Sqrt(deviation[o]*deviation[o]*unexplained + spread*spread*variance[o])
	}
	return mean, deviation
}
