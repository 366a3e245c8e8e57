package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/inference_emu/batching"
)

// sleeper takes 4 ms and 1 ms a sample.
type sleeper struct{}

func (sleeper) infer(batch int) error {
	time.Sleep(time.Duration(4+batch) * time.Millisecond)
	return nil
}

func TestComparisonMeasuresWhatItSimulates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := plan{sizes: []int{1, 4, 16}, shares: []float64{0.2, 0.9}, repetitions: 2, length: 2 * time.Second, seed: 3}
		if err := compare(&out, sleeper{}, p); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"batch  16    20.000 ms ± 0.000", "Capacity: 800.0 samples/s; single samples sustain 200.0/s", "overloaded, not run", "the choice"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is missing in\n%s", want, out.String())
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		curve, err := measured(&bytes.Buffer{}, sleeper{}, []int{1, 16})
		if err != nil {
			t.Fatal(err)
		}
		times := batching.Poisson{Rate: 300}.Times(600, 2)
		for _, policy := range []batching.Policy{batching.Greedy(16), batching.Fixed(8), {MaxBatch: 4, WaitSeconds: 0.003}} {
			got, err := trial(sleeper{}, policy, times)
			if err != nil {
				t.Fatal(err)
			}
			want := batching.Simulate(batching.Server{Curve: curve}, policy, batching.Run{Arrivals: recorded(times)})
			if math.Abs(got-want.Mean) > 0.002*got {
				t.Errorf("%s: mean response %g s, simulated %g s", named(policy), got, want.Mean)
			}
		}
	})
}

func TestBatchesOfMatricesAreTheSamplesOneByOne(t *testing.T) {
	const width = 16
	m := newMatrices(width, 1)
	if err := m.infer(7); err != nil {
		t.Fatal(err)
	}
	together := append([]float32(nil), m.buffer[2][:7*width]...)
	for sample := range 7 {
		m.one(m.layers[0], m.buffer[0], m.buffer[1], sample)
		m.one(m.layers[1], m.buffer[1], m.buffer[2], sample)
	}
	for i, value := range together {
		if math.Abs(float64(value-m.buffer[2][i])) > 1e-6 {
			t.Fatalf("value %d is %g in a batch and %g alone", i, value, m.buffer[2][i])
		}
	}
}

func TestIntervalsOfPairs(t *testing.T) {
	center, half := relative([]float64{1.1, 1.2, 1.3}, []float64{1, 1, 1})
	if math.Abs(center-0.2) > 1e-12 || math.Abs(half-4.303*0.1/math.Sqrt(3)) > 1e-9 {
		t.Errorf("center %g, half of the interval %g", center, half)
	}
	if got := studentT(19); math.Abs(got-2.093) > 0.001 {
		t.Errorf("the quantile with 19 degrees of freedom is %g, want 2.093", got)
	}
}

func TestSimulatedTables(t *testing.T) {
	var out bytes.Buffer
	if err := simulated(&out, 10_000, 1); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a small CNN", "single", "overloaded", "greedy, at most"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}
