package backend

import "math"

// means predicts the mean of what the backend took so far, whatever the model:
// what a predictor has to beat.
type means struct {
	memory  memory
	outputs int
}

func (m *means) Fit(rows []Row) { m.memory.fill(rows) }
func (m *means) Learn(row Row)  { m.memory.add(row) }

func (m *means) Predict(features []float64) (mean, deviation []float64) {
	mean, deviation = nothing(m.outputs)
	for o := range mean {
		var all, own []Row
		for _, row := range m.memory.rows {
			if math.IsNaN(row.Targets[o]) {
				continue
			}
			all = append(all, row)
			if features[row.Backend] == 1 {
				own = append(own, row)
			}
		}
		value := func(row Row) float64 { return row.Targets[o] }
		if len(all) == 0 {
			continue
		}
		mean[o], deviation[o] = moments(all, value)
		if len(own) > 0 {
			var spread float64
			mean[o], spread = moments(own, value)
			// With few runs of its own a backend's spread is mostly that of all.
			n := float64(len(own))
			deviation[o] = math.Sqrt((n*spread*spread + deviation[o]*deviation[o]) / (n + 1) * (1 + 1/n))
		}
	}
	return mean, deviation
}
