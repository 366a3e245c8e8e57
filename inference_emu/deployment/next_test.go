package deployment_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
	"github.com/tandem-tune/tandem/internal/effort"
)

// truth is a board that is so many times as fast as is believed, gains less from each
// further core, and is slower where the caches do not hold a batch.
type truth struct {
	faster, serial, spill float64
	from                  int
}

func (b truth) seconds(batch, threads int) float64 {
	one := 1e-3 / b.faster
	seconds := 2e-4 + one*float64(batch)*(b.serial+(1-b.serial)/float64(threads))
	return seconds * (1 + b.spill*float64(max(0, batch-b.from))/32)
}

// measure asks for settings until there is nothing more to ask for.
func measure(t *testing.T, a emu.Architecture, target deployment.Target, settings deployment.Settings, board truth, seed uint64) emu.Architecture {
	t.Helper()
	noise := rand.New(rand.NewPCG(seed, 1))
	for range 20 {
		cells, err := deployment.Next(a, target, nil, settings, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(cells) == 0 {
			return a
		}
		var runs []emu.Run
		for _, cell := range cells {
			s := board.seconds(cell.Batch, cell.Threads) * math.Exp(0.01*noise.NormFloat64())
			runs = append(runs, emu.Run{Machine: target.Machine, Batch: cell.Batch, Threads: cell.Threads, Seconds: s, Low: s * 0.98, High: s * 1.02, P90: s, P99: s, Repetitions: 9})
		}
		before := len(a.Runs)
		if a = a.With(runs); len(a.Runs) != before+len(cells) {
			t.Fatalf("asked again for what is known: %v", cells)
		}
	}
	t.Fatal("it asks without end")
	return a
}

// What a board is recommended was measured on it, with at most twelve measurements, and
// is within 3% of the best of all settings.
func TestABoardIsAskedForLittleAndEndsWithTheBest(t *testing.T) {
	target := deployment.Target{Device: find(t, "raspberry-pi-4"), Machine: "raspberry-pi-4", Board: true}
	worst, measurements := 0.0, 0
	boards := effort.Times(t, 3)
	for i := range boards {
		random := rand.New(rand.NewPCG(uint64(i), 7))
		board := truth{math.Exp(1.2 * random.NormFloat64()), 0.5 * random.Float64(), random.Float64(), 1 + random.IntN(40)}
		settings := deployment.Settings{BatchLow: 1, BatchHigh: 32, Objective: []tuning.Metric{tuning.Latency, tuning.Throughput}[i%2]}
		a := measure(t, network(t, 32), target, settings, board, uint64(i))
		answer, err := deployment.Find(a, target, nil, settings)
		if err != nil || answer.Estimated() || len(a.Runs) > deployment.MostMeasured {
			t.Errorf("board %d: %s after %d measurements, %v", i, answer.Method, len(a.Runs), err)
		}
		value := func(batch, threads int) float64 {
			if settings.Objective == tuning.Throughput {
				return board.seconds(batch, threads) / float64(batch)
			}
			return board.seconds(batch, threads)
		}
		best := math.Inf(1)
		for batch := 1; batch <= settings.BatchHigh; batch++ {
			for threads := 1; threads <= target.Device.Clusters[0].Cores.Value; threads++ {
				best = min(best, value(batch, threads))
			}
		}
		regret := value(answer.Configuration.BatchSize, answer.Configuration.Cores)/best - 1
		worst, measurements = max(worst, regret), measurements+len(a.Runs)
		if regret > 0.03 {
			t.Errorf("board %d (%+v): %+v is %.1f%% worse than the best of all, after %d measurements", i, board, answer.Configuration, 100*regret, len(a.Runs))
		}
	}
	t.Logf("%d boards: at worst %.1f%% behind the best of all settings, %.1f measurements each", boards, 100*worst, float64(measurements)/float64(boards))
}

// A board is not asked for what it cannot do, nor once enough is known; a device without
// a board is answered with estimates as before.
func TestABoardIsNotAskedForMore(t *testing.T) {
	small := find(t, "raspberry-pi-4")
	small.Memory.Bytes.Value = 1 << 10
	if cells, err := deployment.Next(network(t, 32), deployment.Target{Device: small, Machine: "small", Board: true}, nil, fastest, 3); err != nil || len(cells) > 0 {
		t.Errorf("of a model that needs more memory than there is: %v, %v", cells, err)
	}
	a := network(t, 32)
	for batch := 1; batch <= deployment.MostMeasured; batch++ {
		seconds := 0.1 * float64(batch)
		a.Runs = append(a.Runs, emu.Run{Machine: "raspberry-pi-4", Batch: batch, Threads: 1, Seconds: seconds, Low: seconds, High: seconds, P90: seconds, P99: seconds, Repetitions: 9})
	}
	target := deployment.Target{Device: find(t, "raspberry-pi-4"), Machine: "raspberry-pi-4", Board: true}
	if cells, err := deployment.Next(a, target, nil, fastest, 3); err != nil || len(cells) > 0 {
		t.Errorf("after %d measurements: %v, %v", len(a.Runs), cells, err)
	}
	if answer, err := deployment.Find(a, target, nil, fastest); err != nil || answer.Estimated() || answer.Configuration.Cores != 1 {
		t.Errorf("%+v, %v", answer, err)
	}
	target.Board = false
	if answer, err := deployment.Find(a, target, nil, fastest); err != nil || !answer.Estimated() || answer.Configuration.Cores == 1 {
		t.Errorf("without a board: %+v, %v", answer.Configuration, err)
	}
}

// run is a measurement that took so long.
func run(machine string, batch, threads int, seconds float64) emu.Run {
	return emu.Run{Machine: machine, Batch: batch, Threads: threads, Seconds: seconds, Low: seconds, High: seconds, P90: seconds, P99: seconds, Repetitions: 9}
}

// What was measured stays the answer, also when measurements of other models let a setting
// look faster that nobody tried. Where nothing that was measured meets the constraints,
// estimates count.
func TestAMeasuredAnswerIsNoEstimateAgain(t *testing.T) {
	target := deployment.Target{Device: find(t, "raspberry-pi-4"), Machine: "raspberry-pi-4", Board: true}
	a := network(t, 32).With([]emu.Run{run("raspberry-pi-4", 1, 1, 3), run("raspberry-pi-4", 2, 1, 5)})
	known := []emu.Architecture{network(t, 16).With([]emu.Run{run("raspberry-pi-4", 1, 4, 1e-5), run("raspberry-pi-4", 8, 4, 2e-5)})}
	answer, err := deployment.Find(a, target, known, fastest)
	if err != nil || answer.Estimated() || answer.Configuration.BatchSize != 1 || answer.Configuration.Cores != 1 {
		t.Errorf("%+v is %s, %v", answer.Configuration, answer.Method, err)
	}
	limited := fastest
	limited.Constraints = []tuning.Constraint{{Metric: tuning.Latency, Bound: 1, Text: "latency_seconds <= 1"}}
	if answer, err := deployment.Find(a, target, known, limited); err != nil || !answer.Estimated() || !answer.Feasible {
		t.Errorf("under a limit that the measured ones break: %+v is %s, %v", answer.Configuration, answer.Method, err)
	}
}

// Measurements of batches that another study asked for do not count as this one's.
func TestABoardIsAskedForAnotherStudysBatches(t *testing.T) {
	target := deployment.Target{Device: find(t, "raspberry-pi-4"), Machine: "raspberry-pi-4", Board: true}
	var runs []emu.Run
	for batch := 1; batch <= deployment.MostMeasured; batch++ {
		runs = append(runs, run("raspberry-pi-4", batch, 1, 0.1*float64(batch)))
	}
	a, others := network(t, 32).With(runs), deployment.Settings{BatchLow: 40, BatchHigh: 48, Objective: tuning.Latency}
	if answer, err := deployment.Find(a, target, nil, others); err != nil || !answer.Runs() {
		t.Errorf("%+v, %v", answer.Unmet, err)
	}
	if cells, err := deployment.Next(a, target, nil, others, 3); err != nil || len(cells) == 0 {
		t.Errorf("asked for %v, %v", cells, err)
	}
}

// What is remembered of fits changes no answer.
func TestRememberedFitsAnswerTheSame(t *testing.T) {
	var fits deployment.Fits
	known := []emu.Architecture{network(t, 16), network(t, 32)}
	for i := range 6 {
		target := deployment.Target{Device: find(t, []string{"raspberry-pi-4", "jetson-nano"}[i%2]), Machine: "here"}
		plain, err := deployment.Find(known[i/2%2], target, known, fastest)
		target.Fits = &fits
		remembered, err2 := deployment.Find(known[i/2%2], target, known, fastest)
		if err != nil || err2 != nil || !reflect.DeepEqual(plain, remembered) {
			t.Errorf("%d: %+v, %+v, %v, %v", i, plain, remembered, err, err2)
		}
		seconds := 0.001 * float64(i+1)
		known[i%2] = known[i%2].With([]emu.Run{{Machine: "here", Batch: 1 + i, Threads: 1, Seconds: seconds, Low: seconds, High: seconds, P90: seconds, P99: seconds, Repetitions: 9}})
	}
}
