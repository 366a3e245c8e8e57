package deployment_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/graph/graphtest"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

// network is a convolution and two matrix products of a width.
func network(t *testing.T, width int64) emu.Architecture {
	t.Helper()
	b := graphtest.NewBuilder("network")
	x := b.Input("x", graph.Float32, 1, 1, 28, 28)
	x = b.Relu(b.Convolution(x, graphtest.Filter{Window: graph.Window{Kernel: []int64{5, 5}}, Out: width}))
	x = b.MaxPool(x, graph.Window{Kernel: []int64{2, 2}, Stride: []int64{2, 2}})
	x = b.Relu(b.Linear(b.Flatten(x), 10*width))
	b.Output(b.Linear(x, 10))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return emu.Architecture{Key: fmt.Sprintf("network-%d", width), Graph: g, ActivationBytes: 1 << 20, StoredBytes: g.StoredBytes()}
}

func find(t *testing.T, name string) device.Device {
	t.Helper()
	devices, err := device.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	found, err := device.Find(devices, name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var fastest = deployment.Settings{BatchLow: 1, BatchHigh: 16, Objective: tuning.Latency}

func deploy(t *testing.T, a emu.Architecture, on string, known []emu.Architecture, s deployment.Settings) deployment.Deployment {
	t.Helper()
	answer, err := deployment.Find(a, deployment.Target{Device: find(t, on), Machine: on}, known, s)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// What a file takes at a time is one batch, however many samples that are.
func TestAFixedBatchIsTheOnlyOne(t *testing.T) {
	a := network(t, 32)
	one := deploy(t, a, "raspberry-pi-4", nil, deployment.Settings{BatchLow: 1, BatchHigh: 1, Objective: tuning.Latency})
	a.Graph.FixedBatch = 8
	got := deploy(t, a, "raspberry-pi-4", nil, fastest)
	if got.Configuration.BatchSize != 8 || got.LatencySeconds != one.LatencySeconds || math.Abs(got.SamplesPerSecond/one.SamplesPerSecond-8) > 1e-9 || math.Abs(8*got.JoulesPerSample.Value/one.JoulesPerSample.Value-1) > 1e-9 {
		t.Errorf("8 samples at a time: %+v, one: %+v", got, one)
	}
}

// Measurements of other models that contradict each other are not used by a study;
// those that agree are.
func TestMeasurementsThatMakeItWorseAreNotUsed(t *testing.T) {
	a := network(t, 32)
	plain := deploy(t, a, "raspberry-pi-4", nil, fastest)
	for agree, want := range map[bool]string{true: " and 8 measurements on it", false: ", not from 8 measurements on it, which make estimates of other models worse"} {
		var known []emu.Architecture
		for i, width := range []int64{4, 16, 64, 128} {
			other := network(t, width)
			factor := 5.0
			if !agree {
				factor = []float64{1, 0.02, 1, 1}[i]
			}
			for threads := 1; threads <= 4; threads += 3 {
				on := deployment.Target{Device: find(t, "raspberry-pi-4"), Machine: "nowhere"}
				on.Device.Clusters = slices.Clone(on.Device.Clusters)
				on.Device.Clusters[0].Cores.Value = threads
				one, err := deployment.Find(other, on, nil, deployment.Settings{BatchLow: 1, BatchHigh: 1, Objective: tuning.Latency})
				if err != nil {
					t.Fatal(err)
				}
				seconds := factor * one.LatencySeconds.Value
				other.Runs = append(other.Runs, emu.Run{Machine: "raspberry-pi-4", Batch: 1, Threads: threads, Seconds: seconds, Low: seconds, High: seconds})
			}
			known = append(known, other)
		}
		target := deployment.Target{Device: find(t, "raspberry-pi-4"), Machine: "raspberry-pi-4", Judged: true}
		got, err := deployment.Find(a, target, known, fastest)
		if err != nil || got.Method != "estimate: from what the device is made of"+want || (got.LatencySeconds == plain.LatencySeconds) == agree {
			t.Errorf("agree %v: %v (%s), %v; without them %v", agree, got.LatencySeconds, got.Method, err, plain.LatencySeconds)
		}
	}
}

func TestEveryDeviceOfTheCatalogueAnswers(t *testing.T) {
	devices, err := device.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	a := network(t, 32)
	for _, one := range devices {
		answer, err := deployment.Find(a, deployment.Target{Device: one, Machine: one.Name}, nil, fastest)
		if err != nil {
			t.Errorf("%s: %v", one.Name, err)
			continue
		}
		latency := answer.LatencySeconds
		if !answer.Feasible || !(0 < latency.Low && latency.Low < latency.Value && latency.Value < latency.High) || latency.Value > 1 || answer.JoulesPerSample.Value <= 0 {
			t.Errorf("%s: %+v", one.Name, answer)
		}
		if !answer.Estimated() || !strings.HasPrefix(answer.Method, "estimate: ") || answer.Configuration.BatchSize != 1 || len(answer.Front) == 0 {
			t.Errorf("%s: %+v", one.Name, answer)
		}
		t.Logf("%s: %.3f ms (%.3f to %.3f), %.3g J, %+v", one.Name, 1e3*latency.Value, 1e3*latency.Low, 1e3*latency.High, answer.JoulesPerSample.Value, answer.Configuration)
	}
}

func TestThroughputWantsBatchesAndALimitBoundsThem(t *testing.T) {
	settings := deployment.Settings{BatchLow: 1, BatchHigh: 64, Objective: tuning.Throughput}
	free := deploy(t, network(t, 32), "raspberry-pi-4", nil, settings)
	limit, err := tuning.ParseConstraint(fmt.Sprintf("latency_ms <= %g", 1e3*free.LatencySeconds.Value/2))
	if err != nil {
		t.Fatal(err)
	}
	settings.Constraints = []tuning.Constraint{limit}
	bound := deploy(t, network(t, 32), "raspberry-pi-4", nil, settings)
	if free.Configuration.BatchSize < 2 || bound.Configuration.BatchSize >= free.Configuration.BatchSize || bound.LatencySeconds.Value > limit.Bound {
		t.Errorf("without a limit %+v, with %s %+v", free.Configuration, limit, bound.Configuration)
	}
	settings.Constraints[0].Bound = 1e-9
	none := deploy(t, network(t, 32), "raspberry-pi-4", nil, settings)
	if none.Feasible || len(none.Unmet) != 1 {
		t.Errorf("nothing takes a nanosecond: %+v", none)
	}
}

func TestWhatReallyRanGoesBeforeEstimates(t *testing.T) {
	a := network(t, 8)
	for cores := 1; cores <= 4; cores++ {
		a.Runs = append(a.Runs, emu.Run{Machine: "raspberry-pi-4", Batch: 1, Threads: cores, Seconds: 0.5 / float64(cores), Low: 0.4 / float64(cores),
			High: 0.6 / float64(cores), Joules: 2, EnergyMethod: "meter", Repetitions: 10, At: time.Unix(int64(cores), 0)})
	}
	answer := deploy(t, a, "raspberry-pi-4", nil, deployment.Settings{BatchLow: 1, BatchHigh: 1, Objective: tuning.Latency})
	if answer.Estimated() || answer.EnergyMethod != "meter" || answer.LatencySeconds != (deployment.Band{Value: 0.125, Low: 0.1, High: 0.15}) || answer.Configuration.Cores != 4 {
		t.Errorf("%+v", answer)
	}
	// Another architecture's estimate follows them.
	other := network(t, 9)
	before := deploy(t, other, "raspberry-pi-4", nil, fastest)
	after := deploy(t, other, "raspberry-pi-4", []emu.Architecture{a}, fastest)
	if !(after.LatencySeconds.Value > 3*before.LatencySeconds.Value) || !strings.Contains(after.Method, "4 measurements") {
		t.Errorf("%.4f s before, %.4f s after measurements of %.3f s on nearly the same (%s)", before.LatencySeconds.Value, after.LatencySeconds.Value, 0.125, after.Method)
	}
}

// That a model does not fit is an answer, with its reason, no numbers and no program.
func TestWhatDoesNotFitSaysSo(t *testing.T) {
	a := network(t, 8)
	a.ActivationBytes = 1 << 40
	answer := deploy(t, a, "raspberry-pi-4", nil, fastest)
	if answer.Runs() || answer.Feasible || answer.Device != "raspberry-pi-4" || answer.Code != "" || len(answer.Unmet) != 1 {
		t.Fatalf("a terabyte fits: %+v", answer)
	}
	if want := "a batch of 1 needs 1.049e+06 MiB for weights and activations, more than the 4096 MiB that the device has"; !strings.Contains(answer.Unmet[0], want) {
		t.Errorf("%q, want %q", answer.Unmet[0], want)
	}
}

// ran are runs of one core of a Raspberry Pi 4, ten times as slow as estimated.
func ran(t *testing.T, a emu.Architecture, joules float64, method string) emu.Architecture {
	t.Helper()
	estimated := deploy(t, a, "raspberry-pi-4", nil, deployment.Settings{BatchLow: 1, BatchHigh: 1, Objective: tuning.Latency}).LatencySeconds.Value
	measured := emu.Architecture{Key: a.Key, Graph: a.Graph, ActivationBytes: a.ActivationBytes, StoredBytes: a.StoredBytes}
	for cores := 1; cores <= 4; cores++ {
		seconds := 10 * estimated / float64(cores)
		measured.Runs = append(measured.Runs, emu.Run{Machine: "raspberry-pi-4", Batch: 1, Threads: cores, Seconds: seconds, Low: seconds, High: seconds, P90: seconds, P99: seconds,
			Repetitions: 9, Joules: joules, EnergyMethod: method, At: time.Unix(int64(cores), 0)})
	}
	return measured
}

// What was measured of the model itself counts also where it is only among what is
// known, as in a file of calibration; the model's own runs go before that.
func TestRunsOfTheModelItselfAreFoundAmongTheKnown(t *testing.T) {
	a := network(t, 8)
	one := deployment.Settings{BatchLow: 1, BatchHigh: 1, Objective: tuning.Latency}
	known := ran(t, a, 2, "meter")
	answer := deploy(t, a, "raspberry-pi-4", []emu.Architecture{network(t, 9), known}, one)
	if answer.Estimated() || answer.LatencySeconds.Value != known.Runs[3].Seconds || answer.EnergyMethod != "meter" {
		t.Errorf("%+v", answer)
	}
	a.Runs = append(a.Runs, known.Runs[3])
	a.Runs[0].Seconds /= 2
	if answer := deploy(t, a, "raspberry-pi-4", []emu.Architecture{known}, one); answer.LatencySeconds.Value != a.Runs[0].Seconds {
		t.Errorf("an older run of the same goes before its own: %+v", answer)
	}
}

// Joules that were computed from an assumed power of a core are no measurement of a
// board whose watts the catalogue knows.
func TestAssumedJoulesAreNoMeasurement(t *testing.T) {
	const assumed = "estimate: 10 W per busy core, 1 W per core at rest"
	one := deployment.Settings{BatchLow: 1, BatchHigh: 1, Objective: tuning.Latency}
	a := network(t, 8)
	plain := deploy(t, a, "raspberry-pi-4", []emu.Architecture{ran(t, a, 0, "")}, one)
	answer := deploy(t, a, "raspberry-pi-4", []emu.Architecture{ran(t, a, 1000, assumed)}, one)
	if answer.JoulesPerSample != plain.JoulesPerSample || answer.Estimated() || !answer.EnergyEstimated() || answer.EnergyMethod != "estimate: the latency times 2.7 to 5.2 W, which the device draws at rest and under load" {
		t.Errorf("%+v, want the joules of %+v", answer, plain)
	}
	if !(answer.JoulesPerSample.Low < answer.JoulesPerSample.Value && answer.JoulesPerSample.Value < answer.JoulesPerSample.High) {
		t.Errorf("an estimate without a band: %+v", answer.JoulesPerSample)
	}
	for _, one := range []deployment.Deployment{answer, deploy(t, network(t, 9), "raspberry-pi-4", []emu.Architecture{ran(t, a, 0, "")}, one)} {
		if watts := one.JoulesPerSample.Value / one.LatencySeconds.Value; watts < 2.7 || watts > 5.2 {
			t.Errorf("the board is said to draw %.3g W for %.3g s: %+v", watts, one.LatencySeconds.Value, one)
		}
	}
	other := network(t, 9)
	before := deploy(t, other, "raspberry-pi-4", []emu.Architecture{ran(t, a, 0, "")}, one)
	if after := deploy(t, other, "raspberry-pi-4", []emu.Architecture{ran(t, a, 1000, assumed)}, one); after.JoulesPerSample != before.JoulesPerSample {
		t.Errorf("assumed joules calibrate: %+v, before %+v", after.JoulesPerSample, before.JoulesPerSample)
	}
	if metered := deploy(t, other, "raspberry-pi-4", []emu.Architecture{ran(t, a, 1000, "meter")}, one); !(metered.JoulesPerSample.Value > 10*before.JoulesPerSample.Value) || !strings.Contains(metered.EnergyMethod, "4 measurements") {
		t.Errorf("a meter's do not: %+v", metered)
	}
	// By energy, what was measured is not passed over.
	one.Objective = tuning.Energy
	if cheapest := deploy(t, a, "raspberry-pi-4", []emu.Architecture{ran(t, a, 0, "")}, one); cheapest.Evaluations == 0 || !cheapest.Runs() {
		t.Errorf("%+v", cheapest)
	}
}

// An estimate names the operators whose operations are not in it, in words that can
// stand in a program.
func TestEstimatesNameWhatIsNotInThem(t *testing.T) {
	a := network(t, 8)
	a.Graph.Operators = append(slices.Clone(a.Graph.Operators), graph.Operator{Kind: "Frobnicate", Class: graph.Rest, Type: graph.Float32, ReadBytes: 4, WrittenBytes: 4},
		graph.Operator{Kind: "Bad\nimport os", Class: graph.Rest, Type: graph.Float32, ReadBytes: 4, WrittenBytes: 4})
	answer := deploy(t, a, "raspberry-pi-4", nil, fastest)
	want := "estimate: from what the device is made of; without the operations of Frobnicate, Bad?import?os, which are not known: it takes longer"
	if answer.Method != want || answer.EnergyMethod != want {
		t.Errorf("%q and %q, want %q", answer.Method, answer.EnergyMethod, want)
	}
	if strings.Contains(answer.Code, "\nimport os\"") || strings.Count(answer.Code, "import os") != 1 {
		t.Errorf("the program has what a model wrote:\n%s", answer.Code)
	}
}
