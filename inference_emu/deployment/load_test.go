package deployment_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

// loaded is a search of batches up to 32 under a load.
func loaded(metric tuning.Metric, load *deployment.Load) deployment.Settings {
	return deployment.Settings{BatchLow: 1, BatchHigh: 32, Objective: metric, Load: load}
}

// Of the deployments that keep to the bound, the one with the least latency or energy is
// the answer: none of those with other cores, which are searched alone, is better by
// more than the simulation tells apart.
func TestTheBestUnderALoad(t *testing.T) {
	a := network(t, 64)
	single := deploy(t, a, "raspberry-pi-4", nil, deployment.Settings{BatchLow: 1, BatchHigh: 1, Objective: tuning.Latency}).SamplesPerSecond
	for _, share := range []float64{0.1, 1.5} {
		load := &deployment.Load{Rate: share * single, P99Seconds: 50 / single}
		for _, metric := range []tuning.Metric{tuning.Latency, tuning.Energy} {
			value := func(d deployment.Deployment) float64 {
				if metric == tuning.Energy {
					return d.Batching.JoulesPerSample
				}
				return d.Batching.MeanSeconds
			}
			best := deploy(t, a, "raspberry-pi-4", nil, loaded(metric, load))
			if !best.Feasible || best.Batching.P99Seconds > load.P99Seconds*1.1 || best.Batching.Overloaded || best.Batching.MaxBatch != best.Configuration.BatchSize {
				t.Fatalf("%s at %.2f: %v %+v", metric, share, best.Unmet, best.Batching)
			}
			if batched := best.Batching.MaxBatch > 1; batched != (share > 1) && metric == tuning.Latency {
				t.Errorf("%s at %.2f of what single samples sustain: %s", metric, share, best.Batching)
			}
			for cores := 1; cores <= 4; cores++ {
				settings := loaded(metric, load)
				settings.CoresLow, settings.CoresHigh = cores, cores
				if other := deploy(t, a, "raspberry-pi-4", nil, settings); other.Feasible && value(other) < value(best)*0.985 {
					t.Errorf("%s at %.2f: %d cores come to %v, the answer %s to %v", metric, share, cores, value(other), best.Batching, value(best))
				}
			}
			if again := deploy(t, a, "raspberry-pi-4", nil, loaded(metric, load)); *again.Batching != *best.Batching {
				t.Errorf("the same load gives %s, and then %s", best.Batching, again.Batching)
			}
		}
	}
}

// A load that is too much is an answer that says so; so is a bound that is too short.
func TestALoadThatIsTooMuch(t *testing.T) {
	a := network(t, 64)
	over := deploy(t, a, "raspberry-pi-4", nil, loaded(tuning.Latency, &deployment.Load{Rate: 1e6, P99Seconds: 0.05}))
	if over.Feasible || !over.Batching.Overloaded || over.Batching.P99Seconds != 0 || len(over.Unmet) != 1 || !strings.Contains(over.Unmet[0], "it is overloaded, the most that it sustains is") {
		t.Errorf("%v %+v", over.Unmet, over.Batching)
	}
	short := deploy(t, a, "raspberry-pi-4", nil, loaded(tuning.Energy, &deployment.Load{Rate: 10, P99Seconds: 1e-7}))
	if short.Feasible || short.Batching.Overloaded || !strings.Contains(strings.Join(short.Unmet, ""), "p99_ms <= 0.0001 at 10 requests/s: nothing that was tried keeps to it; the nearest has p99_ms") {
		t.Errorf("%v %+v", short.Unmet, short.Batching)
	}
	a.ActivationBytes = 1 << 40
	if none := deploy(t, a, "raspberry-pi-4", nil, loaded(tuning.Latency, &deployment.Load{Rate: 1, P99Seconds: 1})); none.Runs() || none.Batching != nil {
		t.Errorf("what does not fit serves: %+v", none)
	}
	if plain := deploy(t, network(t, 64), "raspberry-pi-4", nil, fastest); plain.Batching != nil || strings.Contains(plain.Code, "max_batch") {
		t.Errorf("without a load there is a policy: %+v", plain)
	}
}

// What was measured goes before estimates, with how much its times vary: the same medians
// with a longer tail are answered a longer 99th percentile.
func TestALoadIsPlayedOnWhatWasMeasured(t *testing.T) {
	a := network(t, 64)
	settings := loaded(tuning.Latency, &deployment.Load{Rate: 60, P99Seconds: 1})
	settings.CoresLow, settings.CoresHigh = 4, 4
	var tails []float64
	for _, p90 := range []float64{1, 1.8} {
		a.Runs = nil
		for _, batch := range []int{1, 8, 32} {
			seconds := 0.004 + 0.006*float64(batch)
			a.Runs = append(a.Runs, emu.Run{Machine: "odroid-n2-plus", Batch: batch, Threads: 4, Seconds: seconds, Low: seconds, High: seconds, P90: p90 * seconds, P99: 2 * seconds, Repetitions: 100, At: time.Unix(int64(batch), 0)})
		}
		got := deploy(t, a, "odroid-n2-plus", nil, settings)
		if got.Estimated() || !got.Feasible || len(got.Doubtful) > 0 || got.Configuration.Cores != 4 {
			t.Fatalf("%s %+v %v %s", got.Method, got.Configuration, got.Doubtful, got.Batching)
		}
		tails = append(tails, got.Batching.P99Seconds)
	}
	if !(tails[1] > 1.2*tails[0]) {
		t.Errorf("p99 of %v s with times that do not vary, %v s with those that do", tails[0], tails[1])
	}
}

// Requests of several samples are divided into the batches that take the least time.
func TestRequestsOfSeveralSamples(t *testing.T) {
	a := network(t, 64)
	got := deploy(t, a, "raspberry-pi-4", nil, loaded(tuning.Latency, &deployment.Load{Streams: 8}))
	if batches := (8 + got.Batching.MaxBatch - 1) / got.Batching.MaxBatch; !got.Feasible || got.Configuration.BatchSize != got.Batching.MaxBatch || math.Abs(got.Batching.P99Seconds/got.LatencySeconds.Value/float64(batches)-1) > 0.1 {
		t.Errorf("%+v %s", got.Configuration, got.Batching)
	}
	for batch := 1; batch <= 8; batch *= 2 {
		one := deploy(t, a, "raspberry-pi-4", nil, deployment.Settings{BatchLow: batch, BatchHigh: batch, Objective: tuning.Latency})
		if other := float64(8/batch) * one.LatencySeconds.Value; other < got.Batching.P99Seconds*(1-1e-9) {
			t.Errorf("batches of %d take %v s, the answer %s", batch, other, got.Batching)
		}
	}
	settings := loaded(tuning.Latency, &deployment.Load{Streams: 8})
	settings.BatchHigh = 2
	if got := deploy(t, a, "raspberry-pi-4", nil, settings); got.Batching.MaxBatch != 2 || math.Abs(got.Batching.P99Seconds/got.LatencySeconds.Value-4) > 1e-9 {
		t.Errorf("in batches of 2: %+v %s", got.Configuration, got.Batching)
	}
}

// A board is asked first for the batch that would serve the load.
func TestABoardIsAskedForWhatServes(t *testing.T) {
	a := network(t, 64)
	target := deployment.Target{Device: find(t, "raspberry-pi-4"), Machine: "raspberry-pi-4"}
	single := deploy(t, a, "raspberry-pi-4", nil, deployment.Settings{BatchLow: 1, BatchHigh: 1, Objective: tuning.Latency}).SamplesPerSecond
	settings := loaded(tuning.Latency, &deployment.Load{Rate: 1.2 * single, P99Seconds: 1})
	want := deploy(t, a, "raspberry-pi-4", nil, settings)
	cells, err := deployment.Next(a, target, nil, settings, 3)
	if err != nil || len(cells) == 0 || cells[0] != (deployment.Cell{Batch: want.Batching.MaxBatch, Threads: want.Configuration.Cores}) || want.Batching.MaxBatch == 1 {
		t.Errorf("%v, %v, want first %s", cells, err, want.Batching)
	}
	settings.Load = nil
	if plain, err := deployment.Next(a, target, nil, settings, 3); err != nil || plain[0].Batch != 1 {
		t.Errorf("without a load %v, %v", plain, err)
	}
}

// Times that cannot be are told by some worker: they end in no panic, and without an end in
// nothing.
func TestALoadOnTimesThatCannotBe(t *testing.T) {
	a := network(t, 8)
	for _, seconds := range []float64{5e-324, 1e-300, 1e-12, 1e6} {
		a.Runs = []emu.Run{{Machine: "odroid-n2-plus", Batch: 1, Threads: 4, Seconds: seconds, Low: seconds, High: seconds, P90: 1e6, P99: 1e6, Repetitions: 1}}
		for _, metric := range []tuning.Metric{tuning.Latency, tuning.Energy} {
			got := deploy(t, a, "odroid-n2-plus", nil, loaded(metric, &deployment.Load{Rate: 20, P99Seconds: 0.05}))
			if math.IsNaN(got.LatencySeconds.Value) || got.Batching != nil && math.IsNaN(got.Batching.P99Seconds) {
				t.Errorf("%g s: %+v", seconds, got.Batching)
			}
		}
	}
}
