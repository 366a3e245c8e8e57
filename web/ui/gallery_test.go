package ui_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

const lenetFile = `
name: lenet-fashion-mnist
description: LeNet-5 on Fashion-MNIST, in PyTorch
command: [python3, train.py]
objective: {metric: accuracy, direction: maximize, target: 0.91}
space:
  learning_rate: {kind: training, type: float, low: 3e-4, high: 3e-2, log: true}
  batch_size:    {kind: training, type: ordinal, values: [16, 32, 64, 128]}
  dropout:       {kind: training, type: float, low: 0, high: 0.5}
  conv_channels: {kind: model, type: int, low: 4, high: 24, log: true}
system: {cpu_threads: {values: [1, 2, 4]}}
budget: {policy: multi, epochs: {min: 1, max: 27}, data_fraction: {min: 0.037, max: 1.0}, eta: 3}
search: {method: bohb, seed: 7, brackets: 0}
stop: {trials: 81, seconds: 5400}
`

// boostFile has 300 trials, conditions, categories, and values that are none.
const boostFile = `
name: boosted-or-linear
description: Gradient boosting against a linear model on clicks; the booster has parameters of its own
command: [python3, fit.py, --folds, "5"]
system: off
objective: {metric: log_loss, direction: minimize}
space:
  model:       {kind: model, type: categorical, values: [boosting, linear]}
  depth:       {kind: model, type: int, low: 2, high: 12, when: {model: boosting}}
  shrinkage:   {kind: training, type: float, low: 1e-3, high: 0.5, log: true, when: {model: boosting}}
  penalty:     {kind: training, type: float, low: 1e-6, high: 10, log: true, when: {model: linear}}
  scale:       {kind: training, type: categorical, values: [true, false]}
budget: {policy: epochs, epochs: {min: 2, max: 18}, eta: 3}
search: {method: bohb, seed: 3}
stop: {trials: 300}
`

// brokenFile fails whatever it tries.
const brokenFile = `
name: broken-script
command: [python3, train.py]
objective: {metric: accuracy, direction: maximize}
space: {learning_rate: {type: float, low: 1e-4, high: 1e-1, log: true}}
budget: {epochs: {min: 1, max: 3}, eta: 3}
stop: {trials: 50, failures: 5}
`

const freshFile = `
name: digits
description: scikit-learn's digits
command: [python3, digits.py]
objective: {metric: accuracy, direction: maximize}
space: {alpha: {type: float, low: 1e-6, high: 1, log: true}}
budget: {epochs: {min: 1, max: 9}, eta: 3}
stop: {trials: 27}
priority: -5
`

func number(lease protocol.Lease, name string) float64 {
	value, _ := lease.Params[name].Number()
	return value
}

// threadsOf is how many threads a trial was told to train with.
func threadsOf(lease protocol.Lease) int {
	threads, _ := lease.System["cpu_threads"].Integer()
	return int(threads)
}

// lenet learns plausibly: fast with a good learning rate, not at all with a
// large one. Trial 9 crashes; a worker vanishes under the first on rung 3.
func lenet() script {
	vanished := false
	return func(lease protocol.Lease, epochNumber int, passes float64, random *rand.Rand) epoch {
		seconds := 0.9 + 20*lease.Budget.DataFraction*(0.9+0.2*random.Float64())
		if lease.Number == 9 {
			return epoch{seconds: seconds, crash: "exit status 1: RuntimeError: mat1 and mat2 shapes cannot be multiplied",
				printed: "Traceback (most recent call last):\n  File \"train.py\", line 61, in forward\nRuntimeError: mat1 and mat2 shapes cannot be multiplied (64x256 and 400x120)"}
		}
		if lease.Rung == 3 && epochNumber == 17 && !vanished {
			vanished = true
			return epoch{seconds: seconds, vanish: true}
		}
		seconds *= map[int]float64{1: 1, 2: 1.25, 4: 1.6}[threadsOf(lease)]
		away := math.Log10(number(lease, "learning_rate")) - math.Log10(4e-3)
		ceiling := 0.921 - 0.06*away*away - 0.6/(number(lease, "conv_channels")+6) + 0.02*number(lease, "dropout")
		speed := 2.6 * math.Exp(-1.4*away*away)
		accuracy := ceiling - (ceiling-0.42)*math.Exp(-speed*math.Sqrt(passes)) + 0.004*random.NormFloat64()
		loss := -1.7 * math.Log(accuracy)
		if away > 0.82 {
			accuracy, loss = 0.1, math.NaN()
		}
		return epoch{
			metrics: map[string]trial.Float{"accuracy": trial.Float(accuracy), "loss": trial.Float(loss)}, seconds: seconds,
			printed: fmt.Sprintf("epoch %d: accuracy %.4f, loss %.4f, %.1f s", epochNumber, accuracy, loss, seconds),
		}
	}
}

// boost is quick, fails now and then, and sometimes measures nothing.
func boost(lease protocol.Lease, _ int, passes float64, random *rand.Rand) epoch {
	seconds := 0.8 + 1.5*random.Float64()
	if lease.Number%37 == 5 {
		return epoch{seconds: seconds, crash: "exit status 137: killed, probably out of memory"}
	}
	floor := 0.46 + 0.02*math.Abs(math.Log10(number(lease, "penalty")+1e-9)+2)
	if lease.Params["model"].String() == "boosting" {
		away := math.Log10(number(lease, "shrinkage")) + 1.2
		floor = 0.371 + 0.02*away*away + 0.003*math.Abs(number(lease, "depth")-6)
	}
	value := floor + 0.3*math.Exp(-0.45*passes) + 0.003*random.NormFloat64()
	if lease.Number%41 == 17 {
		value = math.NaN()
	}
	return epoch{seconds: seconds, metrics: map[string]trial.Float{"log_loss": trial.Float(value), "auc": trial.Float(1 - value/2)}}
}

func broken(protocol.Lease, int, float64, *rand.Rand) epoch {
	return epoch{seconds: 1, crash: "exit status 1: ModuleNotFoundError: No module named 'torch'\nstandard error ended with:\nTraceback (most recent call last):"}
}

// crewMembers are two machines; only one of them meters its energy.
func crewMembers() []protocol.WorkerRegistration {
	return []protocol.WorkerRegistration{
		{ID: "worker-desk", Name: "desk", Slots: 2, Sandbox: &protocol.Sandbox{Mode: "auto", Layers: []string{"limits"}, Missing: []string{"namespaces: the kernel refuses them"}}, Measures: []protocol.Measure{
			{Name: "perf counters", Available: true, Detail: "6 at once", Reason: "user mode only", Remedy: "sysctl kernel.perf_event_paranoid=1"},
			{Name: "rapl", Reason: "there is no /sys/class/powercap", Remedy: "energy is then an estimate"}, {Name: "gpu", Reason: "libnvidia-ml.so.1 is not there"},
		}, Machine: protocol.Machine{
			Host: "desk.example", CPUModel: "AMD Ryzen 7 5800X", Cores: 8, MemoryBytes: 33 << 30, EnergyMethod: modelled}},
		{ID: "worker-lab-03", Name: "lab-03", Slots: 4, Sandbox: &protocol.Sandbox{Mode: "strict", Layers: []string{"limits", "files", "system calls", "namespaces"}}, Measures: []protocol.Measure{
			{Name: "perf counters", Available: true, Detail: "12 at once"}, {Name: "rapl", Available: true, Detail: "package-0, dram"}, {Name: "gpu", Available: true, Detail: "NVIDIA A30 (NVML)"},
			{Name: "cgroups", Available: true, Detail: "version 2, with the memory controller"}, {Name: "cpu frequency", Reason: "only root may change it"},
		}, Machine: protocol.Machine{
			Host: "lab-03.example", CPUModel: "AMD EPYC 7543", Cores: 32, MemoryBytes: 64 << 30, MemoryLimitBytes: 64 << 30, Governor: "performance", GPUs: []string{"NVIDIA A30"}, GPUPowerCapWatts: 130, EnergyMethod: "rapl"},
			Probes: []protocol.Probe{
				{Workload: "k-means-compute", Seconds: 0.004123, Joules: 0.871, Method: "rapl"}, {Workload: "k-means-memory", Seconds: 0.006871, Joules: 1.204, Method: "rapl"},
				{Workload: "matrix-multiplication-compute", Setting: "cpu_governor=powersave", Seconds: 0.01151, Joules: 0.744, Method: "rapl"},
			}},
	}
}

// gallery plays an afternoon: a study that failed, one with 300 trials that is
// over, one in the middle of its work and one that has just begun. It returns
// the number of the second one's trial that a worker vanished under.
func gallery(s *stage) (survivor int) {
	s.t.Helper()
	now := time.Now()
	c := newCrew(s, map[string]script{"lenet-fashion-mnist": lenet(), "boosted-or-linear": boost, "broken-script": broken})
	s.clock.pin(now.Add(-80 * time.Minute))
	s.create(brokenFile)
	s.create(boostFile)
	for _, worker := range crewMembers() {
		c.join(worker)
	}
	c.play(now.Add(-15 * time.Minute))
	s.clock.pin(now.Add(-15 * time.Minute))
	s.create(lenetFile)
	c.play(now.Add(-4 * time.Second))
	s.create(freshFile)
	page, err := s.studies.Trials(s.t.Context(), "lenet-fashion-mnist", protocol.TrialQuery{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, one := range page.Trials {
		if one.Losses > 0 {
			return one.Number
		}
	}
	s.t.Fatal("no trial was lost")
	return 0
}

// beat says that the workers are alive now.
func beat(s *stage) {
	s.t.Helper()
	loads := map[string]*protocol.Load{
		"worker-desk": {CPUUtilization: 0.62, MemoryUtilization: 0.31, Watts: 43.2, Method: modelled}, "worker-lab-03": {CPUUtilization: 0.87, MemoryUtilization: 0.12, Watts: 388, Method: "rapl+nvml"},
	}
	for _, worker := range crewMembers() {
		if _, err := s.studies.Heartbeat(s.t.Context(), worker.ID, protocol.Heartbeat{Load: loads[worker.ID]}); err != nil {
			s.t.Fatal(err)
		}
	}
}

const edgeFile = `
name: digits-at-the-edge
description: A perceptron on digits, for boards
objective: [{metric: accuracy, direction: maximize}, {metric: edge.latency_ms, direction: minimize}]
space: {width: {kind: model, type: int, low: 16, high: 2048, log: true}}
inference: {devices: [raspberry-pi-4, jetson-nano, this-machine], batch_size: {low: 1, high: 32}, objective: {metric: energy, constraint: "latency_ms <= 50"}}
budget: {epochs: 1}
search: {method: random, seed: 5}
stop: {trials: 14}
`

// edgeGallery plays a study of models for boards: the wider the better and the
// slower.
func edgeGallery(s *stage) {
	s.t.Helper()
	s.create(edgeFile)
	h := s.hand()
	for range 14 {
		lease := h.lease("digits-at-the-edge")
		width := number(lease, "width")
		h.savesWide(lease, int64(width))
		h.report(lease, 1, 0.97-1.2/math.Pow(width, 0.6))
		h.finish(lease, protocol.BudgetReached, "")
	}
}
