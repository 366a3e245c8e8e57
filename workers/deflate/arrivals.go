package deflate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Arrivals is a marked Markovian arrival process, MMAP[K] (section 4.3): a
// hidden chain moves between phases, and with some of its moves a job of a class
// comes. Rates are per second.
type Arrivals struct {
	// Hidden are the rates of moves without a job (D₀); its diagonal is not used.
	Hidden [][]float64
	// Marked are, for each class, the rates of moves with a job of it (D_k). A move
	// may lead to the phase it comes from.
	Marked [][][]float64
}

// Poisson is the simplest such process: one phase, and jobs of each class come
// at a rate of their own.
func Poisson(rates ...float64) Arrivals {
	a := Arrivals{Hidden: [][]float64{{0}}}
	for _, rate := range rates {
		a.Marked = append(a.Marked, [][]float64{{rate}})
	}
	return a
}

// Check says what is wrong with the process.
func (a Arrivals) Check() error {
	n := len(a.Hidden)
	if n == 0 || len(a.Marked) == 0 {
		return fmt.Errorf("arrivals have %d phases and %d classes: at least one of each is needed", n, len(a.Marked))
	}
	for k, matrix := range append([][][]float64{a.Hidden}, a.Marked...) {
		if len(matrix) != n {
			return fmt.Errorf("matrix %d of the arrivals has %d rows, and there are %d phases", k, len(matrix), n)
		}
		for i, row := range matrix {
			if len(row) != n {
				return fmt.Errorf("row %d of matrix %d of the arrivals has %d rates, and there are %d phases", i, k, len(row), n)
			}
			for j, rate := range row {
				if (k > 0 || i != j) && (!(rate >= 0) || math.IsInf(rate, 0)) {
					return fmt.Errorf("the rate from phase %d to %d of matrix %d is %g: it must be finite and not negative", i, j, k, rate)
				}
			}
		}
	}
	for i := range n {
		if n > 1 && a.out(i) == 0 {
			return fmt.Errorf("phase %d of the arrivals is never left, and no job comes in it", i)
		}
	}
	return nil
}

// out is the rate of all moves from a phase.
func (a Arrivals) out(i int) float64 {
	sum := 0.0
	for j, rate := range a.Hidden[i] {
		if j != i {
			sum += rate
		}
	}
	for _, matrix := range a.Marked {
		for _, rate := range matrix[i] {
			sum += rate
		}
	}
	return sum
}

// Rates are how many jobs of each class come a second, in the long run.
func (a Arrivals) Rates() []float64 {
	share := a.stationary()
	rates := make([]float64, len(a.Marked))
	for k, matrix := range a.Marked {
		for i, row := range matrix {
			for _, rate := range row {
				rates[k] += share[i] * rate
			}
		}
	}
	return rates
}

// stationary is the share of the time that the chain spends in each phase.
func (a Arrivals) stationary() []float64 {
	n, fastest := len(a.Hidden), 0.0
	for i := range n {
		fastest = max(fastest, a.out(i))
	}
	generator := newMatrix(n)
	for i := range n {
		for _, matrix := range append([][][]float64{a.Hidden}, a.Marked...) {
			for j, rate := range matrix[i] {
				if i != j && rate > 0 {
					generator.at[i*n+j] += complex(rate/fastest, 0)
					generator.at[i*n+i] -= complex(rate/fastest, 0)
				}
			}
		}
	}
	share := make([]float64, n)
	for i, value := range generator.stationary() {
		share[i] = real(value)
	}
	return share
}

// Draw is the first jobs that come, with what they take drawn from the
// distribution of their class and phase.
func (a Arrivals) Draw(classes []Class, jobs int, random *rand.Rand) ([]Job, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	if len(classes) != len(a.Marked) {
		return nil, fmt.Errorf("%d classes come and %d have a distribution of what they take", len(a.Marked), len(classes))
	}
	if jobs > 0 && !slices.ContainsFunc(a.Rates(), func(rate float64) bool { return rate > 0 }) {
		return nil, fmt.Errorf("no job ever comes, and %d are to be drawn", jobs)
	}
	for k, class := range classes {
		if len(class.Service) != 1 && len(class.Service) != len(a.Hidden) {
			return nil, fmt.Errorf("class %d has %d distributions of what a job takes for %d phases of the arrivals: one for each, or a single one", k, len(class.Service), len(a.Hidden))
		}
	}
	list, at, phase := make([]Job, 0, jobs), 0.0, 0
	for len(list) < jobs {
		at += random.ExpFloat64() / a.out(phase)
		class, next := a.move(phase, random)
		if class >= 0 {
			service := classes[class].Service
			list = append(list, Job{Class: class, At: at, Seconds: service[min(phase, len(service)-1)].sample(random)})
		}
		phase = next
	}
	return list, nil
}

// move draws the next move from a phase: the class of the job that comes with
// it, -1 for none, and where it leads.
func (a Arrivals) move(phase int, random *rand.Rand) (class, next int) {
	draw := random.Float64() * a.out(phase)
	class, next = -1, phase // where rounding leaves something over
	for j, rate := range a.Hidden[phase] {
		if j == phase || rate == 0 {
			continue
		}
		if class, next = -1, j; draw < rate {
			return class, next
		}
		draw -= rate
	}
	for k, matrix := range a.Marked {
		for j, rate := range matrix[phase] {
			if rate == 0 {
				continue
			}
			if class, next = k, j; draw < rate {
				return class, next
			}
			draw -= rate
		}
	}
	return class, next
}

// shares are which part of a class's jobs comes in each phase.
func (a Arrivals) shares(k int) []float64 {
	shares, sum := a.stationary(), 0.0
	for i, row := range a.Marked[k] {
		rate := 0.0
		for _, one := range row {
			rate += one
		}
		shares[i] *= rate
		sum += shares[i]
	}
	for i := range shares {
		shares[i] /= sum
	}
	return shares
}
