package backend

import "math"

// Row is a run as the predictor sees it.
type Row struct {
	// Backend is the place of the run's backend.
	Backend int
	// Features has the columns of the run; the first ones say which backend.
	Features []float64
	// Targets are the encoded measures; NaN for what was not measured.
	Targets []float64
}

// Shape is what the predictor is made for.
type Shape struct {
	// Backends is how many there are: the first columns, of which one is 1.
	Backends int
	// Condition is how many of the leading columns describe the backend.
	Condition int
	// Logarithmic says of each target whether it is the logarithm of what counts.
	Logarithmic []bool
	// Window is how many runs of each backend are kept.
	Window int
}

// memory keeps the newest runs of each backend. Older ones are forgotten
// because machines, runtimes and loads change; that is counted for each backend
// alone, so that one that is not chosen for long is not forgotten.
type memory struct {
	window int
	rows   []Row
}

func (m *memory) add(row Row) {
	count, oldest := 0, -1
	for i, one := range m.rows {
		if one.Backend == row.Backend {
			count++
			if oldest < 0 {
				oldest = i
			}
		}
	}
	if m.window > 0 && count >= m.window {
		m.rows = append(m.rows[:oldest], m.rows[oldest+1:]...)
	}
	m.rows = append(m.rows, row)
}

func (m *memory) fill(rows []Row) {
	m.rows = nil
	kept := map[int]int{}
	for i := len(rows) - 1; i >= 0; i-- {
		if kept[rows[i].Backend]++; m.window == 0 || kept[rows[i].Backend] <= m.window {
			m.rows = append(m.rows, rows[i])
		}
	}
	for i, j := 0, len(m.rows)-1; i < j; i, j = i+1, j-1 {
		m.rows[i], m.rows[j] = m.rows[j], m.rows[i]
	}
}

// due says whether a model that takes long to fit is fitted again: with every
// run at first, then each time the runs have grown by a part in eight.
func due(fitted, now int) bool { return now-fitted > fitted/8 }

// nothing is a prediction without any run.
func nothing(outputs int) (mean, deviation []float64) {
	mean, deviation = make([]float64, outputs), make([]float64, outputs)
	for o := range mean {
		mean[o], deviation[o] = math.NaN(), math.NaN()
	}
	return mean, deviation
}
