package deployment_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/graph/graphtest"
)

// perceptron has two layers.
func perceptron(t testing.TB, width int64) emu.Architecture {
	b := graphtest.NewBuilder("mlp")
	x := b.Relu(b.Linear(b.Input("x", graph.Float32, 1, 12), width))
	b.Output(b.Linear(b.Relu(b.Linear(x, width)), 2))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return emu.Architecture{Key: fmt.Sprintf("perceptron-%d", width), Graph: g, ActivationBytes: 1 << 12, StoredBytes: g.StoredBytes()}
}

func measuredOn(t testing.TB, machine string) (deployment.Target, []emu.Architecture) {
	on, err := device.Machine{Processor: "x", Cores: 2, LowestHertz: 2e9, HighestHertz: 3e9, MemoryBytes: 8 << 30, MemoryBytesPerSecond: 1e10, Features: []string{"avx2", "fma"}}.Device()
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var all []emu.Architecture
	for i := range 16 {
		a := perceptron(t, int64(8+8*i))
		for threads := 1; threads <= 2; threads++ {
			for _, batch := range []int{1, 2, 4, 8, 16, 32} {
				s := (6e-6 + 2e-8*float64(batch)*float64(8+8*i)) * (1 + 0.1*random.ExpFloat64())
				if random.IntN(20) == 0 {
					s *= 4
				}
				a.Runs = append(a.Runs, emu.Run{Machine: machine, Batch: batch, Threads: threads, Seconds: s, Low: s, High: s, Joules: 10 * s * float64(threads) * (1 + 0.1*random.Float64()), EnergyMethod: "estimate: 10 W", At: time.Unix(int64(i), 0)})
			}
		}
		all = append(all, a)
	}
	return deployment.Target{Device: on, Machine: machine, Judged: true}, all
}

// One fit serves all architectures, and a while longer when there are few new
// measurements; a board's next settings come from all of them.
func TestArchitecturesShareAFit(t *testing.T) {
	target, all := measuredOn(t, "here")
	now := time.Unix(1000, 0)
	target.Fits = &deployment.Fits{Now: func() time.Time { return now }}
	findAll := func(fits int) {
		t.Helper()
		for _, a := range all {
			if _, err := deployment.Find(a, target, all, fastest); err != nil {
				t.Fatal(err)
			}
		}
		if target.Fits.Made != fits {
			t.Fatalf("%d fits for %d architectures, not %d", target.Fits.Made, len(all), fits)
		}
	}
	findAll(1)
	all[0].Runs = append([]emu.Run(nil), all[0].Runs...)
	all[0].Runs[0].At, all[0].Runs[0].Seconds = now, 1e-5
	findAll(1)
	now = now.Add(time.Hour)
	findAll(2)
	all[0].Runs[1].At, all[0].Runs[1].Seconds = now, 1e-5
	target.Fresh = true
	findAll(3)
	for i := range all[1].Runs {
		all[0].Runs[i].At, all[1].Runs[i].At = now.Add(time.Second), now.Add(time.Second)
	}
	target.Fresh = false
	findAll(4)
}

// Joules go with the time: the watts between are those of the catalogue or of a meter,
// also where the latency alone was measured.
func TestEnergyGoesWithTheTime(t *testing.T) {
	target, all := measuredOn(t, "here")
	own := all[3]
	own.Runs = append([]emu.Run(nil), own.Runs...)
	for i := range own.Runs {
		own.Runs[i].Seconds, own.Runs[i].Joules = own.Runs[i].Seconds/5, 0
	}
	all[3] = own
	got, err := deployment.Find(own, target, all, fastest)
	if err != nil {
		t.Fatal(err)
	}
	if watts := got.JoulesPerSample.Value * got.SamplesPerSecond; watts < 4 || watts > 23 {
		t.Errorf("%.3g W, but 10 to 22 W were measured: %+v", watts, got.JoulesPerSample)
	}
	for i := range all { // times alone, on a board that estimates say draws more
		all[i].Runs = append([]emu.Run(nil), all[i].Runs...)
		for j := range all[i].Runs {
			all[i].Runs[j].Joules = 0
		}
	}
	for _, load := range []float64{4.001, 5, 9, 1000} {
		target.Device.Power.LoadWatts.Value = load
		got, err := deployment.Find(own, target, all[3:5], fastest)
		if band := got.JoulesPerSample; err != nil || !(band.Low < band.Value && band.Value < band.High) {
			t.Errorf("load %g W: %v, %+v", load, err, band)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	target, all := measuredOn(b, "here")
	settings := fastest
	settings.BatchHigh = 32
	for b.Loop() {
		if _, err := deployment.Find(all[3], target, all, settings); err != nil {
			b.Fatal(err)
		}
	}
}
