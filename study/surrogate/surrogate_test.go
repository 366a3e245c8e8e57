package surrogate_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/surrogate"
)

// mixed is a space of everything: the second and third dimensions may be missing.
func mixed() []space.Dimension {
	return []space.Dimension{
		{Name: "x"}, {Name: "y"},
		{Name: "choice", Kind: space.Unordered, Choices: 3},
		{Name: "size", Kind: space.Ordered, Choices: 5},
	}
}

func anyPoint(r *rand.Rand) []float64 {
	d := mixed()
	point := []float64{r.Float64(), r.Float64(), d[2].Coordinate(r.IntN(3)), d[3].Coordinate(r.IntN(5))}
	if r.IntN(2) == 0 {
		point[1] = math.NaN()
	}
	if r.IntN(4) == 0 {
		point[2] = math.NaN()
	}
	return point
}

func anyPoints(r *rand.Rand, n int) (points [][]float64, values []float64) {
	for range n {
		points, values = append(points, anyPoint(r)), append(values, r.NormFloat64())
	}
	return points, values
}

// solve solves a linear system by elimination with pivots: another way than
// the package's.
func solve(a [][]float64, b []float64) []float64 {
	n := len(b)
	for i := range n {
		pivot := i
		for k := i; k < n; k++ {
			if math.Abs(a[k][i]) > math.Abs(a[pivot][i]) {
				pivot = k
			}
		}
		a[i], a[pivot], b[i], b[pivot] = a[pivot], a[i], b[pivot], b[i]
		for k := i + 1; k < n; k++ {
			factor := a[k][i] / a[i][i]
			for j := i; j < n; j++ {
				a[k][j] -= factor * a[i][j]
			}
			b[k] -= factor * b[i]
		}
	}
	for i := n - 1; i >= 0; i-- {
		for j := i + 1; j < n; j++ {
			b[i] -= a[i][j] * b[j]
		}
		b[i] /= a[i][i]
	}
	return b
}

// covariance of the prior, from what one observation does to a prediction:
// with the value 1 the mean is covariance / (scale + noise).
func covariance(p surrogate.Parameters, a, b []float64) float64 {
	mean, _ := surrogate.New(mixed(), p, [][]float64{a}, []float64{1}).Predict(b)
	return mean * (p.Scale + p.Noise)
}

func TestPredictIsTheConditionalDistribution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		points, values := anyPoints(r, rapid.IntRange(1, 12).Draw(t, "n"))
		p := surrogate.Parameters{Lengths: []float64{0.3, 0.8, 1.5, 0.5}, Scale: 1.7, Noise: 0.05}
		at := anyPoint(r)
		with, between := make([]float64, len(points)), func() [][]float64 {
			rows := make([][]float64, len(points))
			for i, a := range points {
				for j, b := range points {
					c := covariance(p, a, b)
					if i == j {
						c += p.Noise
					}
					rows[i] = append(rows[i], c)
				}
			}
			return rows
		}
		for i, point := range points {
			with[i] = covariance(p, at, point)
		}
		weights := solve(between(), append([]float64(nil), values...))
		reduced := solve(between(), append([]float64(nil), with...))
		mean, variance := 0.0, p.Scale
		for i := range points {
			mean += with[i] * weights[i]
			variance -= with[i] * reduced[i]
		}
		gotMean, gotVariance := surrogate.New(mixed(), p, points, values).Predict(at)
		if math.Abs(gotMean-mean) > 1e-8 || math.Abs(gotVariance-variance) > 1e-8 {
			t.Fatalf("predicts %v, %v; want %v, %v", gotMean, gotVariance, mean, variance)
		}
	})
}

func TestKernel(t *testing.T) {
	nan := math.NaN()
	p := surrogate.Parameters{Lengths: []float64{0.5, 0.5, 0.5, 0.5}, Scale: 2, Noise: 0.1}
	matern := func(square float64) float64 {
		s := math.Sqrt(5*square) / 0.5
		return 2 * (1 + s + s*s/3) * math.Exp(-s)
	}
	base := []float64{0.2, 0.4, 0.5, 0.1}
	for name, c := range map[string]struct {
		other  []float64
		square float64
	}{
		"the same":                       {[]float64{0.2, 0.4, 0.5, 0.1}, 0},
		"another number":                 {[]float64{0.6, 0.4, 0.5, 0.1}, 0.16},
		"another choice":                 {[]float64{0.2, 0.4, 1. / 6, 0.1}, 1},
		"a choice further on is no more": {[]float64{0.2, 0.4, 5. / 6, 0.1}, 1},
		"an ordinal two steps on":        {[]float64{0.2, 0.4, 0.5, 0.5}, 0.16},
		"a number that is missing":       {[]float64{0.2, nan, 0.5, 0.1}, 0.01 + 0.25},
		"a choice that is missing":       {[]float64{0.2, 0.4, nan, 0.1}, 1},
	} {
		if got := covariance(p, base, c.other); math.Abs(got-matern(c.square)) > 1e-12 {
			t.Errorf("%s: covariance %v, want %v", name, got, matern(c.square))
		}
	}
	missing := []float64{0.2, nan, nan, 0.1}
	if got := covariance(p, missing, missing); math.Abs(got-2) > 1e-12 {
		t.Errorf("missing on both sides: covariance %v, want the scale", got)
	}
}

func TestBelievedPointsChangeNoMeanAndAreForgotten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	points, values := anyPoints(r, 20)
	upper, uppers := anyPoints(r, 5)
	ladder := surrogate.NewLadder(mixed(), surrogate.Prior(4), []surrogate.Level{{Points: points, Values: values}, {Points: upper, Values: uppers}})
	type prediction struct{ mean, variance float64 }
	predict := func(point []float64) prediction {
		mean, variance := ladder.Predict(point)
		return prediction{mean, variance}
	}
	places, _ := anyPoints(r, 30)
	var before []prediction
	for _, place := range places {
		before = append(before, predict(place))
	}
	mark := ladder.Believed()
	for _, place := range places[:10] {
		ladder.Believe(place)
	}
	for i, place := range places {
		now := predict(place)
		if math.Abs(now.mean-before[i].mean) > 1e-9 || now.variance > before[i].variance+1e-9 {
			t.Errorf("place %d: %v became %v", i, before[i], now)
		}
		if i < 10 && now.variance > before[i].variance/2 {
			t.Errorf("the variance at a believed place is %v, was %v", now.variance, before[i].variance)
		}
	}
	ladder.Forget(mark)
	for i, place := range places {
		if now := predict(place); now != before[i] {
			t.Errorf("place %d: %v came back as %v", i, before[i], now)
		}
	}
}

// plane returns points of two numbers with values of a function of them.
func plane(r *rand.Rand, n int, value func(x, y float64) float64) surrogate.Level {
	var level surrogate.Level
	for range n {
		x, y := r.Float64(), r.Float64()
		level.Points, level.Values = append(level.Points, []float64{x, y}), append(level.Values, value(x, y))
	}
	return level
}

func TestFitTellsWhatMatters(t *testing.T) {
	dimensions := []space.Dimension{{Name: "matters"}, {Name: "does not"}}
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 3))
		level := plane(r, 40, func(x, y float64) float64 { return 1.4*math.Sin(6*x) + 0.05*r.NormFloat64() })
		p := surrogate.Fit(dimensions, level.Points, level.Values)
		if p.Lengths[1] < 3*p.Lengths[0] {
			t.Errorf("seed %d: lengths %v, want the second much longer", seed, p.Lengths)
		}
		if p.Noise > 0.05 || p.Noise < 0.0002 {
			t.Errorf("seed %d: noise %v, want about 0.0025", seed, p.Noise)
		}
		noisy := plane(r, 40, func(x, y float64) float64 { return 1.4*math.Sin(6*x) + 0.5*r.NormFloat64() })
		if p := surrogate.Fit(dimensions, noisy.Points, noisy.Values); p.Noise < 0.1 || p.Noise > 0.5 {
			t.Errorf("seed %d: noise %v, want about 0.25", seed, p.Noise)
		}
	}
}

// A few values of the expensive rung, all of them where the cheap one is good,
// and what is known everywhere below: together they predict the expensive one
// everywhere.
func TestLadderCarriesKnowledgeUp(t *testing.T) {
	dimensions := []space.Dimension{{Name: "x"}, {Name: "y"}}
	cheap := func(x, y float64) float64 { return math.Sin(12*x) + math.Sin(7*y) }
	expensive := func(x, y float64) float64 { return 1.2*cheap(x, y) + 0.7 }
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 4))
		below := plane(r, 60, cheap)
		var above surrogate.Level
		for i, point := range below.Points {
			if below.Values[i] > 0.7 && len(above.Points) < 8 {
				above.Points = append(above.Points, point)
				above.Values = append(above.Values, expensive(point[0], point[1]))
			}
		}
		p := surrogate.Fit(dimensions, below.Points, below.Values)
		joined := surrogate.NewLadder(dimensions, p, []surrogate.Level{below, above})
		alone := surrogate.NewLadder(dimensions, p, []surrogate.Level{above})
		error := func(l *surrogate.Ladder) float64 {
			sum := 0.0
			for range 200 {
				x, y := r.Float64(), r.Float64()
				mean, _ := l.Predict([]float64{x, y})
				sum += (mean - expensive(x, y)) * (mean - expensive(x, y)) / 200
			}
			return math.Sqrt(sum)
		}
		if with, without := error(joined), error(alone); with > 0.6 || with > without/2 {
			t.Errorf("seed %d: root mean square error %.3f with the rung below, %.3f without", seed, with, without)
		}
	}
}
