package cmaes

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	peers "github.com/c-bata/goptuna/cmaes"
)

// peer reads the state of goptuna's optimizer.
type peer struct{ reflect.Value }

func (p peer) number(name string) float64 { return p.FieldByName(name).Float() }

// numbers are those of a vector, or of a matrix by rows.
func (p peer) numbers(name string) []float64 {
	data := p.FieldByName(name).Elem().FieldByName("mat").FieldByName("Data")
	out := make([]float64, data.Len())
	for i := range out {
		out[i] = data.Index(i).Float()
	}
	return out
}

func within(t *testing.T, name string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
		t.Errorf("%s is %v, by goptuna %v", name, got, want)
	}
}

// goptuna's optimizer gets the draws that ours gets, for 60 generations of an
// ellipsoid whose axes differ by a factor of 1,000. The two differ in four places,
// where the test follows goptuna: its rate of the rank-μ update is that of the
// tutorial before 2016, without the quarter; it counts generations from 1 when it
// looks whether σ is too small; it moves each mean by 1e-8 more; and it does not
// pull long steps in, so that the test leaves them out.
func TestTheDistributionMovesAsGoptunasDoes(t *testing.T) {
	for _, axes := range []int{2, 3, 5, 8} {
		t.Run(fmt.Sprint(axes, " axes"), func(t *testing.T) {
			start := make([]float64, axes)
			for i := range start {
				start[i] = 0.4 + 0.02*float64(i)
			}
			const sigma, generations = 0.05, 60
			theirs, err := peers.NewOptimizer(append([]float64(nil), start...), sigma, peers.OptimizerOptionSeed(int64(axes)))
			if err != nil {
				t.Fatal(err)
			}
			state := peer{reflect.ValueOf(theirs).Elem()}
			ours, s := newGaussian(start, sigma), strategyOf(t, state, theirs.PopulationSize(), axes)
			ours.updates = 1
			for generation := range generations {
				points, solutions := drawPopulation(t, theirs, ours)
				ours.learn(points, s)
				for k := range ours.mean {
					ours.mean[k] += 1e-8
				}
				if err := theirs.Tell(solutions); err != nil {
					t.Fatal(err)
				}
				within(t, "σ", ours.sigma, state.number("sigma"))
				covariance := state.numbers("c")
				for a, mean := range state.numbers("mean") {
					within(t, fmt.Sprint("mean ", a), ours.mean[a], mean)
					for b := a; b < axes; b++ {
						within(t, fmt.Sprint("C ", a, ", ", b), ours.covariance.At(a, b), covariance[a*axes+b])
					}
				}
				if t.Failed() {
					t.Fatalf("in generation %d", generation+1)
				}
			}
			if ours.sigma > sigma/2 {
				t.Errorf("σ is still %v: the search did not converge", ours.sigma)
			}
		})
	}
}

// drawPopulation draws from goptuna's distribution, and sorts as it will: the best first.
func drawPopulation(t *testing.T, theirs *peers.Optimizer, ours *gaussian) (points [][]float64, solutions []*peers.Solution) {
	t.Helper()
	axes := len(ours.mean)
	longest := math.Sqrt(float64(axes)) + 2*float64(axes)/float64(axes+2)
	for len(points) < theirs.PopulationSize() {
		point, err := theirs.Ask()
		if err != nil {
			t.Fatal(err)
		}
		if _, length := ours.step(point, math.Inf(1)); length >= longest {
			continue
		}
		value := 0.0
		for k, x := range point {
			value += math.Pow(1000, float64(k)/float64(axes-1)) * (x - 0.5) * (x - 0.5)
		}
		at := len(points)
		for at > 0 && solutions[at-1].Value > value {
			at--
		}
		points = append(points[:at], append([][]float64{point}, points[at:]...)...)
		solutions = append(solutions[:at], append([]*peers.Solution{{Params: point, Value: value}}, solutions[at:]...)...)
	}
	return points, solutions
}

// strategyOf holds our numbers of the strategy against goptuna's, and returns them
// with its rate of the rank-μ update.
func strategyOf(t *testing.T, state peer, size, axes int) strategy {
	t.Helper()
	s, n := newStrategy(size, axes), float64(axes)
	within(t, "μ_eff", s.mass, state.number("muEff"))
	within(t, "c_σ", s.cSigma, state.number("cSigma"))
	within(t, "d_σ", s.dampSigma, state.number("dSigma"))
	within(t, "c_c", s.cPath, state.number("cc"))
	within(t, "c_1", s.cOne, state.number("c1"))
	within(t, "the length of a normal vector", expectedNorm(axes), state.number("chiN"))
	within(t, "c_μ", s.cMu-0.5/((n+2)*(n+2)+s.mass), state.number("cmu"))
	s.cMu = state.number("cmu")
	for i, weight := range state.numbers("weights") {
		if weight >= 0 {
			within(t, fmt.Sprint("weight ", i), s.weights[i], weight)
		} else if !(s.weights[i] < 0) {
			t.Errorf("weight %d is %v, by goptuna %v", i, s.weights[i], weight)
		}
		s.weights[i] = weight
	}
	return s
}
