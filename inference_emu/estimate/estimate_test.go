package estimate_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/inference_emu/estimate"
	"github.com/tandem-tune/tandem/inference_emu/graph"
)

func board() estimate.Device {
	return estimate.Device{
		Name: "board", Engine: "tflite", Cores: 4, ClockHertz: 1.5e9, Float32PerCycle: 8, Int8PerCycle: 16,
		MemoryBytesPerSecond: 4e9, MemoryHertz: 1.6e9, IdleWatts: 3, LoadWatts: 6,
	}
}

func known(t *testing.T) estimate.Knowledge {
	t.Helper()
	k, err := estimate.Known()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// network is some network: convolutions of all sorts, wider or narrower.
func network(size float64) estimate.Workload {
	return estimate.Workload{Name: "network", Float: estimate.Work{
		Spatial: 2e7 * size, Pointwise: 5e8 * size, Depthwise: 4e7 * size, Linear: 2e6,
		DenseBytes: 2e7 * math.Sqrt(size), DepthwiseBytes: 1e7 * math.Sqrt(size), LightBytes: 2e6 * math.Sqrt(size), WeightBytes: 1.5e7 * size, Heavy: 50, Light: 14,
	}}
}

// measure makes up what a device would measure: every sort of work at its own
// efficiency, and watts that depend on the work.
func measure(w estimate.Workload, noise float64) estimate.Measurement {
	seconds := w.Float.Spatial/2e10 + w.Float.Pointwise/3e10 + w.Float.Depthwise/6e9 + (w.Float.DenseBytes+w.Float.DepthwiseBytes)/3e9 + 2e-5*w.Float.Heavy
	return estimate.Measurement{Workload: w, Seconds: seconds * math.Exp(noise), Joules: seconds * 5 * math.Exp(noise)}
}

func drawn(random *rand.Rand) estimate.Workload {
	w := network(math.Exp(random.NormFloat64()))
	w.Float.Depthwise *= math.Exp(random.NormFloat64() / 2)
	w.Float.Spatial *= math.Exp(random.NormFloat64())
	return w
}

func TestMeasurementsMakeEstimatesExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var calibration []estimate.Measurement
	for range 20 {
		calibration = append(calibration, measure(drawn(random), 0.02*random.NormFloat64()))
	}
	errors := map[int]float64{}
	for _, n := range []int{0, 20} {
		model := estimate.Fit(board(), calibration[:n], known(t))
		again := rand.New(rand.NewPCG(3, 4))
		inside := 0
		for range 100 {
			truth := measure(drawn(again), 0)
			p := model.Predict(truth.Workload, estimate.Configuration{})
			errors[n] += math.Abs(p.Seconds.Value/truth.Seconds - 1)
			if n > 0 {
				errors[-n] += math.Abs(p.Joules.Value/truth.Joules - 1)
			}
			if p.Seconds.Low <= truth.Seconds && truth.Seconds <= p.Seconds.High {
				inside++
			}
			if p.Measurements != n || p.EnergyMeasurements != n {
				t.Fatalf("stands on %d and %d measurements, not %d", p.Measurements, p.EnergyMeasurements, n)
			}
		}
		if n > 0 && inside < 80 {
			t.Errorf("%d of 100 are in a band that should hold 90", inside)
		}
	}
	if errors[20] > 6 || errors[-20] > 6 || errors[20] > errors[0]/2 {
		t.Errorf("mean errors: %.1f %% without measurements, with 20 %.1f %% of time and %.1f %% of energy", errors[0], errors[20], errors[-20])
	}
}

func TestAnOutlierDoesNotMislead(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	var calibration []estimate.Measurement
	for range 15 {
		calibration = append(calibration, measure(drawn(random), 0))
	}
	calibration[7].Seconds *= 5
	model := estimate.Fit(board(), calibration, known(t))
	sum := 0.0
	for range 50 {
		truth := measure(drawn(random), 0)
		sum += math.Abs(model.Predict(truth.Workload, estimate.Configuration{}).Seconds.Value/truth.Seconds-1) / 50
	}
	if sum > 0.08 {
		t.Errorf("mean error %.1f %% with one measurement five times too long among 15", 100*sum)
	}
}

func TestWithoutMeasurementsTheBandIsWide(t *testing.T) {
	p := estimate.Fit(board(), nil, known(t)).Predict(network(1), estimate.Configuration{})
	if p.Seconds.High < 1.5*p.Seconds.Low || p.Joules.High < 1.5*p.Joules.Low {
		t.Errorf("bands %v and %v: the catalogue alone is not that exact", p.Seconds, p.Joules)
	}
	if p.Seconds.Value < 1e-3 || p.Seconds.Value > 10 {
		t.Errorf("%g s for half a gigaoperation on a board", p.Seconds.Value)
	}
}

func TestMeasurementsThatAreNoneAreLeftOut(t *testing.T) {
	good := measure(network(1), 0)
	var calibration []estimate.Measurement
	for _, seconds := range []float64{0, -1, math.NaN(), math.Inf(1), good.Seconds} {
		m := good
		m.Seconds, m.Joules = seconds, 0
		calibration = append(calibration, m)
	}
	p := estimate.Fit(board(), calibration, known(t)).Predict(network(1), estimate.Configuration{})
	if p.Measurements != 1 || p.EnergyMeasurements != 0 {
		t.Errorf("%d and %d measurements counted, one can be used", p.Measurements, p.EnergyMeasurements)
	}
	if math.Abs(p.Seconds.Value/good.Seconds-1) > 0.3 {
		t.Errorf("%g s, measured were %g", p.Seconds.Value, good.Seconds)
	}
}

func TestEnergyIsAbsentWhereNothingSaysWatts(t *testing.T) {
	device := board()
	device.LoadWatts, device.IdleWatts = 0, 0
	if p := estimate.Fit(device, nil, known(t)).Predict(network(1), estimate.Configuration{}); p.Joules.Value != 0 {
		t.Errorf("%g J of a device of unknown power", p.Joules.Value)
	}
	m := measure(network(1), 0)
	if p := estimate.Fit(device, []estimate.Measurement{m}, known(t)).Predict(network(1), estimate.Configuration{}); math.Abs(p.Joules.Value/m.Joules-1) > 0.5 {
		t.Errorf("%g J, measured were %g", p.Joules.Value, m.Joules)
	}
}

// More work takes longer, and faster clocks and more cores do not.
func TestWhatPhysicsSays(t *testing.T) {
	knowledge := known(t)
	rapid.Check(t, func(t *rapid.T) {
		device := board()
		if rapid.Bool().Draw(t, "accelerated") {
			device.Accelerator = &estimate.Accelerator{ClockHertz: 1e9, Float32PerSecond: 5e11, Int8PerSecond: 1e12}
		}
		model := estimate.Fit(device, nil, knowledge)
		size := rapid.Float64Range(0.01, 100).Draw(t, "size")
		c := estimate.Configuration{
			Batch: rapid.IntRange(1, 100).Draw(t, "batch"), Cores: rapid.IntRange(1, 4).Draw(t, "cores"),
			CPUHertz: rapid.Float64Range(2e8, 1.5e9).Draw(t, "cpu"), MemoryHertz: rapid.Float64Range(1e8, 1.6e9).Draw(t, "memory"),
			GPUHertz: rapid.Float64Range(1e8, 1e9).Draw(t, "gpu"),
		}
		base := model.Predict(network(size), c)
		for name, e := range map[string]estimate.Estimate{"time": base.Seconds, "energy": base.Joules} {
			if !(0 < e.Low && e.Low < e.Value && e.Value < e.High && !math.IsInf(e.High, 1)) {
				t.Fatalf("%s: %v is no band", name, e)
			}
		}
		more, bigger := c, model.Predict(network(2*size), c).Seconds.Value
		more.Batch++
		if bigger <= base.Seconds.Value || model.Predict(network(size), more).Seconds.Value <= base.Seconds.Value {
			t.Fatal("more work took no longer")
		}
		for name, change := range map[string]func(*estimate.Configuration){
			"cores": func(c *estimate.Configuration) { c.Cores = 4 }, "cpu": func(c *estimate.Configuration) { c.CPUHertz *= 1.1 },
			"gpu": func(c *estimate.Configuration) { c.GPUHertz *= 1.1 }, "memory": func(c *estimate.Configuration) { c.MemoryHertz *= 1.1 },
		} {
			faster := c
			change(&faster)
			if s := model.Predict(network(size), faster).Seconds.Value; s > base.Seconds.Value*(1+1e-9) {
				t.Fatalf("%s: %g s with more of it, %g with less", name, s, base.Seconds.Value)
			}
		}
	})
}

func TestSummaryCountsWhatAnEngineRuns(t *testing.T) {
	g := graph.Graph{Name: "g", Operators: []graph.Operator{
		{Kind: "Conv", Class: graph.Convolution, Type: graph.Float32, Operations: 100, ReadBytes: 10, WrittenBytes: 20, WeightBytes: 7, Kernel: []int64{3, 3}},
		{Kind: "Relu", Class: graph.Activation, Type: graph.Float32, Operations: 5, ReadBytes: 20, WrittenBytes: 20},
		{Kind: "Conv", Class: graph.Convolution, Type: graph.Int8, Operations: 50, ReadBytes: 1, WrittenBytes: 2, Kernel: []int64{1, 1}},
		{Kind: "Conv", Class: graph.Depthwise, Type: graph.Float32, Operations: 30},
		{Kind: "Gemm", Class: graph.Linear, Type: graph.Float32, Operations: 4},
		{Kind: "MaxPool", Class: graph.Pooling, Type: graph.Float32, Operations: 9, ReadBytes: 3},
		{Kind: "HardSwish", Class: graph.Activation, Type: graph.Float32, ReadBytes: 2, WrittenBytes: 2},
		{Kind: "Reshape", Class: graph.Movement, Type: graph.Float32, ReadBytes: 1000},
	}}
	w := estimate.Summarize(g)
	if want := (estimate.Work{Spatial: 100, Depthwise: 30, Linear: 4, Window: 9, DenseBytes: 30, LightBytes: 3, CurvedBytes: 4, WeightBytes: 7, Heavy: 3, Light: 2}); w.Float != want {
		t.Errorf("floating point: %+v, not %+v", w.Float, want)
	}
	if want := (estimate.Work{Pointwise: 50, DenseBytes: 3, Heavy: 1}); w.Integer != want {
		t.Errorf("integers: %+v, not %+v", w.Integer, want)
	}
}
