package dopeml_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/bench/edgetune/dopeml"
)

// world is made of backends whose latency is operations over speed, and a
// memory that one never measured and a target that nobody has.
func world(random *rand.Rand, n int) []dopeml.Row {
	speeds := []float64{1, 3, 8}
	var rows []dopeml.Row
	for range n {
		b := random.IntN(3)
		row := dopeml.Row{Backend: b, Features: make([]float64, 5)}
		row.Features[b] = 1
		row.Features[3], row.Features[4] = 4*random.Float64(), random.Float64()
		latency := row.Features[3] - math.Log(speeds[b]) + 0.5*row.Features[4]*float64(b) + 0.02*random.NormFloat64()
		row.Targets = []float64{latency, 0.2 + 0.2*row.Features[4], math.NaN()}
		if b == 1 {
			row.Targets[1] = math.NaN()
		}
		rows = append(rows, row)
	}
	return rows
}

func shape() dopeml.Shape {
	return dopeml.Shape{Backends: 3, Condition: 3, Logarithmic: []bool{true, false, true}}
}

func predictor() dopeml.Predictor { return dopeml.NewPredictor(shape()) }

// absolute is the mean error of the first target.
func absolute(p dopeml.Predictor, rows []dopeml.Row) float64 {
	sum := 0.0
	for _, row := range rows {
		mean, _ := p.Predict(row.Features)
		sum += math.Abs(mean[0] - row.Targets[0])
	}
	return sum / float64(len(rows))
}

func TestLearningReducesTheError(t *testing.T) {
	const most = 0.05
	random := rand.New(rand.NewPCG(3, 4))
	rows, test := world(random, 200), world(random, 100)
	p := predictor()
	p.Fit(rows[:10])
	early := absolute(p, test)
	p.Fit(rows)
	if late := absolute(p, test); late > most || late > 0.7*early {
		t.Errorf("the error is %.3f after 10 runs and %.3f after 200, want at most %v", early, late, most)
	}
}

func TestDeviationsAreOfTheSizeOfTheErrors(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	rows, test := world(random, 200), world(random, 200)
	p := predictor()
	p.Fit(rows)
	within := 0
	for _, row := range test {
		mean, deviation := p.Predict(row.Features)
		if math.Abs(mean[0]-row.Targets[0]) < 2*deviation[0] {
			within++
		}
	}
	if within < 170 {
		t.Errorf("only %d of 200 runs are within two deviations", within)
	}
}

func TestWhatNobodyMeasuredIsNotPredicted(t *testing.T) {
	rows := world(rand.New(rand.NewPCG(1, 2)), 30)
	p := predictor()
	if mean, _ := p.Predict(rows[0].Features); !math.IsNaN(mean[0]) {
		t.Errorf("without any run %v is predicted", mean[0])
	}
	p.Fit(rows)
	mean, deviation := p.Predict(rows[0].Features)
	if !math.IsNaN(mean[2]) || !math.IsNaN(deviation[2]) {
		t.Errorf("%v ± %v is predicted for a target without values", mean[2], deviation[2])
	}
	for o := range 2 {
		if math.IsNaN(mean[o]) || !(deviation[o] > 0) {
			t.Errorf("target %d: %v ± %v", o, mean[o], deviation[o])
		}
	}
}

// A runtime was updated: every backend is twice as slow from now on.
func TestTheWindowForgetsWhatIsNoLongerTrue(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 9))
	old, now, test := world(random, 3000), world(random, 3600), world(random, 60)
	for _, rows := range [][]dopeml.Row{now, test} {
		for i := range rows {
			rows[i].Targets[0] += math.Log(2)
		}
	}
	p := predictor()
	p.Fit(append(old, now...))
	if got := absolute(p, test); got > 0.05 {
		t.Errorf("the error is %.3f: old runs count", got)
	}
}

func TestTheWindowIsOfEachBackend(t *testing.T) {
	rows := []dopeml.Row{{Backend: 1, Features: []float64{0, 1, 0, 0, 0}, Targets: []float64{100, 0, 0}}}
	for i := range 1200 {
		rows = append(rows, dopeml.Row{Backend: 0, Features: []float64{1, 0, 0, 0, 0}, Targets: []float64{float64(i % 2), 0, 0}})
	}
	p := predictor()
	p.Fit(rows)
	if mean, _ := p.Predict(rows[0].Features); mean[0] < 80 {
		t.Errorf("the run of the other backend was forgotten: %v", mean[0])
	}
}
