// Package deployment answers: how is a model of this architecture best run on
// this device, and what does an inference then take?
//
// It is the inference tuning server's answer (Rocha, section 7.3.4): inference
// hyperparameters (the batch) and system parameters (cores, clocks) are searched
// together ([tuning]) on what is known of the device: the estimate from its
// catalogue and from architectures of which inferences really ran there
// ([estimate]), and what really ran of this architecture, which goes before any
// estimate.
//
// The package is pure.
package deployment

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/edge"
	"github.com/tandem-tune/tandem/edge/device"
	"github.com/tandem-tune/tandem/edge/estimate"
	"github.com/tandem-tune/tandem/edge/tuning"
	"github.com/tandem-tune/tandem/problem"
)

// Settings say what is searched, and for what.
type Settings struct {
	// BatchLow and BatchHigh bound the batch size.
	BatchLow, BatchHigh int
	Objective           tuning.Metric
	Constraints         []tuning.Constraint
}

// MaxBatch is the largest batch that is searched (section 7.5.2).
const MaxBatch = 100

// Band is a quantity with a band around it: between Low and High with a
// probability of [estimate.Within], for an estimate; the 95% confidence interval
// of the median for what was measured.
type Band struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Deployment is the answer for one device.
type Deployment struct {
	Device string `json:"device"`
	Title  string `json:"title"`
	// Architecture is the key of what is deployed.
	Architecture string `json:"architecture"`
	// Configuration is the best; of a device on which nothing keeps to the
	// constraints, the one that misses them least, and Unmet says which.
	Configuration tuning.Configuration `json:"configuration"`
	Feasible      bool                 `json:"feasible"`
	Unmet         []string             `json:"unmet,omitempty"`
	// Doubtful are constraints that hold, but not at the bad end of the band.
	Doubtful []string `json:"doubtful,omitempty"`
	// LatencySeconds are of one batch, the rest of one sample or of the process.
	LatencySeconds   Band    `json:"latency_seconds"`
	SamplesPerSecond float64 `json:"samples_per_second"`
	// JoulesPerSample is zero where nothing is known of the device's power.
	JoulesPerSample Band `json:"joules_per_sample"`
	// MemoryBytes are weights and activations, without the program.
	MemoryBytes int64 `json:"memory_bytes"`
	// Method says what the numbers are: "measured", or "estimate: ..." with what
	// it stands on. EnergyMethod is the same of the joules.
	Method       string `json:"method"`
	EnergyMethod string `json:"energy_method"`
	// Code is a program that runs the model so; see [Deployment.Program].
	Code string `json:"program"`
	// Front are the configurations between latency, energy and throughput.
	Front []tuning.Evaluation `json:"front,omitempty"`
	// Evaluations is how many configurations were looked at.
	Evaluations int `json:"evaluations"`
}

// measured is the method of what really ran.
const measured = "measured"

// Estimated reports whether the latency is an estimate.
func (d Deployment) Estimated() bool { return d.Method != measured }

// maxFront bounds the front that is shown.
const maxFront = 24

// Target is where a model is to run.
type Target struct {
	Device device.Device
	// Machine is what runs on the device are stored under.
	Machine string
}

// Find searches the device for the architecture. Known are other architectures,
// of which some may have really run there.
func Find(a edge.Architecture, target Target, known []edge.Architecture, settings Settings) (Deployment, error) {
	on := target.Device
	prior, err := estimate.Known()
	if err != nil {
		return Deployment{}, problem.New(problem.Internal, "the knowledge of devices cannot be read: %w", err)
	}
	s := site{
		architecture: a, device: on, workload: estimate.Summarize(a.Graph), settings: settings,
		runs: runsOn(a, target.Machine),
	}
	calibration := measurements(append([]edge.Architecture{a}, known...), target.Machine)
	s.model = estimate.Fit(Rates(on), calibration, prior)
	result, err := tuning.Search(tuning.Settings{
		Space: s.space(), Objective: tuning.Only(settings.Objective), Constraints: settings.Constraints,
		Front: []tuning.Metric{tuning.Latency, tuning.Energy, tuning.Throughput}, Method: tuning.Auto, MaxEvaluations: 4000,
	}, s.evaluate)
	if err != nil {
		return Deployment{}, err
	}
	best := result.Best
	if best == nil {
		best = result.Nearest
	}
	if best == nil {
		return Deployment{}, problem.New(problem.Exhausted, "no configuration of %s can run the model: %s", on.Name, firstFailure(result))
	}
	return s.answer(*best, result, len(calibration)), nil
}

func firstFailure(result tuning.Result) string {
	for _, one := range result.Tried {
		if one.Failure != "" {
			return one.Failure
		}
	}
	return "nothing was tried"
}

// site is an architecture on a device.
type site struct {
	architecture edge.Architecture
	device       device.Device
	workload     estimate.Workload
	settings     Settings
	runs         []edge.Run
	model        *estimate.Model
}

// space is what can be chosen: of clocks those of the fastest cluster, if it has
// steps.
func (s site) space() tuning.Space {
	space := tuning.Space{BatchSizes: tuning.Range(s.settings.BatchLow, s.settings.BatchHigh), Cores: tuning.Range(1, s.device.Clusters[0].Cores.Value)}
	if steps := s.device.Clusters[0].StepsHertz; steps != nil {
		space.CPUHertz = steps.Value
	}
	return space
}

// evaluate is what a configuration takes: measured where it was, else estimated.
func (s site) evaluate(c tuning.Configuration) (tuning.Outcome, error) {
	memory := s.memory(c.BatchSize)
	if memory > s.device.Memory.Bytes.Value {
		return tuning.Outcome{}, problem.New(problem.Exhausted, "a batch of %d needs %d bytes, more than the device has", c.BatchSize, memory)
	}
	if run, ok := s.ran(c); ok {
		joules := run.Joules
		return tuning.Outcome{LatencySeconds: run.Seconds, LatencySecondsLow: run.Low, LatencySecondsHigh: run.High,
			Joules: joules, JoulesLow: joules, JoulesHigh: joules, MemoryBytes: max(run.MemoryBytes, 1), Measured: true}, nil
	}
	p := s.model.Predict(s.workload, estimate.Configuration{Batch: c.BatchSize, Cores: c.Cores, CPUHertz: c.CPUHertz})
	if !(p.Seconds.Value > 0) || math.IsInf(p.Seconds.Value, 0) {
		return tuning.Outcome{}, problem.New(problem.Internal, "there is no estimate for a batch of %d", c.BatchSize)
	}
	return tuning.Outcome{
		LatencySeconds: p.Seconds.Value, LatencySecondsLow: p.Seconds.Low, LatencySecondsHigh: p.Seconds.High,
		Joules: p.Joules.Value, JoulesLow: p.Joules.Low, JoulesHigh: p.Joules.High, MemoryBytes: memory,
	}, nil
}

// ran finds a real inference with the configuration at the highest clock.
func (s site) ran(c tuning.Configuration) (edge.Run, bool) {
	for _, run := range s.runs {
		highest := c.CPUHertz == 0 || c.CPUHertz >= s.device.Clusters[0].HighestHertz.Value
		if run.Batch == c.BatchSize && run.Threads == c.Cores && highest {
			return run, true
		}
	}
	return edge.Run{}, false
}

func (s site) memory(batch int) int64 {
	return max(1, s.architecture.StoredBytes+s.architecture.ActivationBytes*int64(batch))
}

func (s site) answer(best tuning.Evaluation, result tuning.Result, calibration int) Deployment {
	o, batch := best.Outcome, float64(best.Configuration.BatchSize)
	d := Deployment{
		Device: s.device.Name, Title: s.device.Title, Architecture: s.architecture.Key,
		Configuration: best.Configuration, Feasible: result.Best != nil, Unmet: result.Unmet, Doubtful: result.Doubtful,
		LatencySeconds:   Band{o.LatencySeconds, o.LatencySecondsLow, o.LatencySecondsHigh},
		SamplesPerSecond: batch / o.LatencySeconds,
		JoulesPerSample:  Band{o.Joules / batch, o.JoulesLow / batch, o.JoulesHigh / batch},
		MemoryBytes:      o.MemoryBytes, Evaluations: result.Evaluations,
	}
	d.Front = result.Front[:min(len(result.Front), maxFront)]
	if run, ok := s.ran(best.Configuration); ok {
		d.Method, d.EnergyMethod = measured, run.EnergyMethod
	} else {
		d.Method = basis(calibration)
		d.EnergyMethod = d.Method
	}
	d.Code = d.Program()
	return d
}

// basis says what an estimate stands on.
func basis(calibration int) string {
	if calibration == 0 {
		return "estimate: from what the device is made of"
	}
	return fmt.Sprintf("estimate: from what the device is made of and %d measurements on it", calibration)
}
