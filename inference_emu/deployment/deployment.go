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
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
	"github.com/tandem-tune/tandem/internal/problem"
)

// Settings say what is searched, and for what.
type Settings struct {
	// BatchLow and BatchHigh bound the batch size.
	BatchLow, BatchHigh int
	// A model that fixes its batch has that one ([graph.Graph.FixedBatch]).
	// CoresLow and CoresHigh bound the cores, and MemoryBytes what weights and
	// activations take; 0 if the device alone does.
	CoresLow, CoresHigh int
	MemoryBytes         int64
	// ClocksHertz are those to search; none: all. Unpinned leaves clocks as they are.
	ClocksHertz []float64
	Unpinned    bool
	Objective   tuning.Metric
	Constraints []tuning.Constraint
	// Load is how requests come; nil: one after the other.
	Load *Load
	// Providers are the execution providers to compare, [emu.CPU] first; none: that one.
	Providers []string
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
	// MemoryBytes are weights and activations; what a process took beyond the library
	// where the model ran, on whatever machine.
	MemoryBytes int64 `json:"memory_bytes"`
	// Method says what the numbers are: "measured", or "estimate: ..." with what
	// it stands on. EnergyMethod is the same of the joules.
	Method       string `json:"method"`
	EnergyMethod string `json:"energy_method"`
	// MeasuredAt is when the configuration ran, where the latency was measured.
	MeasuredAt *time.Time `json:"measured_at,omitempty"`
	// Drift is that it took something else before.
	Drift *emu.Drift `json:"drift,omitempty" doc:"it took something else until it was measured again; absent: it did not, or was measured once"`
	// Batching is how samples are put together under a load.
	Batching *Batching `json:"batching,omitempty"`
	// Code is a program that runs the model so; see program.go.
	Code string `json:"program"`
	// Front are the configurations between latency, energy and throughput.
	Front []tuning.Evaluation `json:"front,omitempty"`
	// Evaluations is how many configurations were looked at.
	Evaluations int `json:"evaluations"`
	// Precisions are those in which the model was compared.
	Precisions []ComparedPrecision `json:"precisions,omitempty" doc:"the precisions and execution providers with which the model was compared; absent where there is one"`
}

// measured is the method of what really ran, none of what does not run.
const (
	measured = "measured"
	none     = "no configuration"
)

// Estimated reports whether the latency is an estimate.
func (d Deployment) Estimated() bool { return d.Method != measured }

// EnergyEstimated reports whether the joules are an estimate: without a meter they
// are, also where the latency was measured.
func (d Deployment) EnergyEstimated() bool { return strings.HasPrefix(d.EnergyMethod, "estimate") }

// Runs reports whether any configuration can run the model; if none can, Unmet says
// why, and there are no numbers.
func (d Deployment) Runs() bool { return d.SamplesPerSecond > 0 }

// maxFront bounds the front that is shown.
const maxFront = 24

// Target is where a model is to run.
type Target struct {
	Device device.Device
	// Machine is what runs on the device are stored under.
	Machine string
	// Fits remembers what was fitted to the device's measurements; nil: nothing does.
	Fits *Fits
	// Fit is the one to use; nil: that of Fits, which is made where it is not there.
	Fit *Fit
	// Fresh does not use a fit that is older than a measurement.
	Fresh bool
	// Judged leaves measurements out that make estimates of other models worse. Targets
	// with the same Fits are judged, or none is.
	Judged bool
	// Board says that a board measures what it is asked to: the answer is the best
	// setting that it has measured, if one meets the constraints.
	Board bool
	// Ran says that estimates are no answer.
	Ran bool
	// Provider is the execution provider that the answer is about; empty: [emu.CPU], which
	// alone is estimated. Providers are the others that the device can use.
	Provider  string
	Providers []string
}

// Find searches the device for the architecture. Known are architectures of which
// some may have really run there: runs of this one count as well as its own, which
// go before them. That nothing can run it there is an answer ([Deployment.Runs]).
func Find(a emu.Architecture, target Target, known []emu.Architecture, settings Settings) (Deployment, error) {
	s, result, err := search(a, target, known, settings)
	if err != nil {
		return Deployment{}, err
	}
	result, load, err := s.underLoad(result)
	if err != nil {
		return Deployment{}, err
	}
	if target.Board && s.known() > 0 {
		s.settled = true
		if only, err := s.tried(); err == nil {
			if only, measured, err := s.underLoad(only); err == nil && only.Best != nil {
				result, load = only, measured
			}
		}
	}
	best := cmp.Or(result.Best, result.Nearest)
	if best == nil {
		return Deployment{
			Configuration: tuning.Configuration{Provider: s.shown()}, Device: s.device.Name, Title: s.device.Title, Architecture: a.Key, Method: none, EnergyMethod: none, Evaluations: result.Evaluations,
			Unmet: []string{"no configuration can run the model: " + firstFailure(result)},
		}, nil
	}
	return s.answer(*best, result, load), nil
}

// search looks at a target and tries all settings.
func search(a emu.Architecture, target Target, known []emu.Architecture, settings Settings) (site, tuning.Result, error) {
	on := target.Device
	a = withRuns(a, known)
	s := site{
		architecture: a, device: on, workload: estimate.Summarize(a.Graph), settings: settings,
		runs: target.runsOf(a), peaks: peaksOf(a.Runs, target.Provider), provider: target.Provider,
	}
	s.settled = target.Ran || target.Board && s.known() >= MostMeasured
	if target.Fit != nil {
		s.fit = *target.Fit
	} else {
		var err error
		if s.fit, err = target.Fits.of(target, target.calibrating(a, known)); err != nil {
			return site{}, tuning.Result{}, problem.New(problem.Internal, "the knowledge of devices cannot be read: %w", err)
		}
	}
	result, err := s.tried()
	return s, result, err
}

// tried are all settings, of a site that is settled those that were measured.
func (s site) tried() (tuning.Result, error) { return tuning.Search(s.tuning(), s.evaluate) }

func (s site) tuning() tuning.Settings {
	return tuning.Settings{
		Space: s.space(), Objective: s.settings.Objective, Constraints: s.settings.Constraints,
		Front: []tuning.Metric{tuning.Latency, tuning.Energy, tuning.Throughput},
	}
}

// known is how many of the settings that can be chosen were measured.
func (s site) known() (n int) {
	space := s.space()
	for _, run := range s.runs {
		if s.holds(space, run) {
			n++
		}
	}
	return n
}

// holds reports whether the run's setting can be chosen of the space.
func (s site) holds(space tuning.Space, run emu.Run) bool {
	return slices.Contains(space.Cores, run.Threads) && slices.ContainsFunc(space.BatchSizes, func(batch int) bool { return s.batches(batch) == run.Batch })
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
	architecture emu.Architecture
	device       device.Device
	workload     estimate.Workload
	settings     Settings
	runs         []emu.Run
	peaks        []emu.Run // those of any machine that tell the memory of a batch
	fit          Fit
	provider     string
	// settled says that what was not measured does not count any more.
	settled bool
}

// evaluate is what a configuration takes: measured where it was, else estimated.
func (s site) evaluate(c tuning.Configuration) (tuning.Outcome, error) {
	run, ok := s.ran(c)
	memory, what := s.memory(c.BatchSize, run)
	if own := s.device.Memory.Bytes.Value; memory > own {
		return tuning.Outcome{}, problem.New(problem.Exhausted, "a batch of %d needs %s %s, more than the %s that the device has",
			c.BatchSize, mebibytes(memory), what, mebibytes(own))
	}
	if most := s.settings.MemoryBytes; most > 0 && memory > most {
		return tuning.Outcome{}, problem.New(problem.Exhausted, "a batch of %d needs %s %s, more than the %s that it may take (inference.memory_mib)",
			c.BatchSize, mebibytes(memory), what, mebibytes(most))
	}
	if s.settled && !ok {
		return tuning.Outcome{}, problem.New(problem.NotFound, "it was not measured")
	}
	p := s.predict(c)
	if ok {
		joules := s.joules(c, p, estimate.Estimate{Value: run.Seconds, Low: run.Low, High: run.High})
		if run.Joules > 0 {
			joules = estimate.Estimate{Value: run.Joules, Low: run.Joules, High: run.Joules}
		}
		return tuning.Outcome{LatencySeconds: run.Seconds, LatencySecondsLow: run.Low, LatencySecondsHigh: run.High,
			Joules: joules.Value, JoulesLow: joules.Low, JoulesHigh: joules.High, MemoryBytes: max(run.MemoryBytes, 1), Measured: true}, nil
	}
	if !(p.Seconds.Value > 0) || math.IsInf(p.Seconds.Value, 0) {
		return tuning.Outcome{}, problem.New(problem.Internal, "there is no estimate for a batch of %d", c.BatchSize)
	}
	joules := s.joules(c, p, p.Seconds)
	return tuning.Outcome{
		LatencySeconds: p.Seconds.Value, LatencySecondsLow: p.Seconds.Low, LatencySecondsHigh: p.Seconds.High,
		Joules: joules.Value, JoulesLow: joules.Low, JoulesHigh: joules.High, MemoryBytes: memory,
	}, nil
}

func (s site) predict(c tuning.Configuration) estimate.Prediction {
	return s.fit.model.Predict(s.workload, s.settingOf(c))
}

func (s site) settingOf(c tuning.Configuration) estimate.Configuration {
	return estimate.Configuration{Batch: s.batches(c.BatchSize), Cores: c.Cores, CPUHertz: c.CPUHertz}
}

// batches is a batch in units of what the graph computes at once: a sample, or all
// samples that a file with a fixed batch takes.
func (s site) batches(samples int) int {
	if fixed := s.architecture.Graph.FixedBatch; fixed > 0 {
		return samples / int(fixed)
	}
	return samples
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%.4g MiB", float64(bytes)/(1<<20)) }

// ran finds a real inference with the configuration at the highest clock.
func (s site) ran(c tuning.Configuration) (emu.Run, bool) {
	for _, run := range s.runs {
		if run.Batch == s.batches(c.BatchSize) && run.Threads == c.Cores && s.highest(c) {
			return run, true
		}
	}
	return emu.Run{}, false
}

// highest reports whether the cores run at their highest clock, as they are left.
func (s site) highest(c tuning.Configuration) bool {
	return c.CPUHertz == 0 || c.CPUHertz >= s.device.Clusters[0].HighestHertz.Value
}

func (s site) answer(best tuning.Evaluation, result tuning.Result, load *Batching) Deployment {
	o, batch := best.Outcome, float64(best.Configuration.BatchSize)
	d := Deployment{
		Device: s.device.Name, Title: s.device.Title, Architecture: s.architecture.Key,
		Configuration: best.Configuration, Feasible: result.Best != nil, Unmet: result.Unmet, Doubtful: result.Doubtful,
		LatencySeconds:   Band{o.LatencySeconds, o.LatencySecondsLow, o.LatencySecondsHigh},
		SamplesPerSecond: batch / o.LatencySeconds,
		JoulesPerSample:  Band{o.Joules / batch, o.JoulesLow / batch, o.JoulesHigh / batch},
		MemoryBytes:      o.MemoryBytes, Evaluations: result.Evaluations, Batching: load,
	}
	d.Front = result.Front[:min(len(result.Front), maxFront)]
	d.with(func(c *tuning.Configuration) { c.Provider = s.shown() })
	p := s.predict(best.Configuration)
	d.Method, d.EnergyMethod = s.basis(p.Measurements), s.basis(p.EnergyMeasurements)
	if s.fit.plain != nil {
		d.EnergyMethod = fmt.Sprintf("estimate: the latency times %.3g to %.3g W, which the device draws at rest and under load", s.device.Power.IdleWatts.Value, s.device.Power.LoadWatts.Value)
	}
	if run, ok := s.ran(best.Configuration); ok {
		d.Method = measured
		if !run.At.IsZero() {
			d.MeasuredAt = &run.At
		}
		d.Drift = run.Drift
		if run.Joules > 0 {
			d.EnergyMethod = run.EnergyMethod
		}
	}
	d.Code = d.program(s.architecture.Graph.Inputs)
	return d
}

// maxKinds bounds the kinds of operators that are named, maxWord their letters.
const (
	maxKinds = 3
	maxWord  = 40
)

// word is a kind of operator as it can stand in a sentence and in a program: what is
// no letter, digit, dot or underscore is a question mark.
func word(kind string) string {
	plain := strings.Map(func(r rune) rune {
		if r < 128 && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '.' || r == '_') {
			return r
		}
		return '?'
	}, kind)
	return plain[:min(len(plain), maxWord)]
}

// basis says what an estimate stands on, and what is not in it.
func (s site) basis(measurements int) string {
	text := "estimate: from what the device is made of"
	switch {
	case measurements == 1:
		text += " and 1 measurement on it"
	case measurements > 1:
		text += fmt.Sprintf(" and %d measurements on it", measurements)
	case s.fit.unused > 0:
		text += fmt.Sprintf(", not from %d measurements on it, which make estimates of other models worse", s.fit.unused)
	}
	for _, one := range s.device.Accelerators {
		text += "; on its cores, its " + strings.ToUpper(one.Kind) + " does not compute"
	}
	if s.architecture.Graph.Quantized() {
		text += "; that tells nothing of whether it is faster than in fp32"
	}
	if kinds := s.architecture.Graph.UncountedKinds(); len(kinds) > 0 {
		var shown []string
		for _, kind := range kinds[:min(len(kinds), maxKinds)] {
			shown = append(shown, word(kind))
		}
		text += "; without the operations of " + strings.Join(shown, ", ")
		if left := len(kinds) - len(shown); left > 0 {
			text += fmt.Sprintf(" and %d more", left)
		}
		text += ", which are not known: it takes longer"
	}
	return text
}
