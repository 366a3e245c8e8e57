package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/bench/edgetune/dopeml"
	"github.com/tandem-tune/tandem/bench/edgetune/runs"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// real are runs of ONNX Runtime on one machine that have CPU time and memory. Its
// backends are numbers of cores, of which each costs the same.
type real struct {
	profiles []dopeml.Profile
	models   map[string]dopeml.Model
	names    []string
	batches  []int
	measured map[setting]dopeml.Measured

	device    estimate.Device
	workloads map[string]estimate.Workload
}

// setting is a model with a batch on a backend.
type setting struct {
	model          string
	batch, backend int
}

// realMemoryBytes of a backend are enough for every model here, so that no choice is
// decided by it.
const realMemoryBytes = 8 << 30

func readReal(paths []string) (*real, error) {
	r := &real{models: map[string]dopeml.Model{}, measured: map[setting]dopeml.Measured{}, workloads: map[string]estimate.Workload{}}
	for _, path := range paths {
		all, err := runs.Read(path)
		if err != nil {
			return nil, err
		}
		for name, workload := range all.Workloads {
			r.models[name], r.workloads[name] = realFeatures(name, workload), workload
		}
		r.device = all.Device
		for _, one := range all.Runs {
			b := slices.IndexFunc(r.profiles, func(p dopeml.Profile) bool { return p.Cores == float64(one.Threads) })
			if b < 0 {
				b = len(r.profiles)
				r.profiles = append(r.profiles, dopeml.Profile{Name: fmt.Sprintf("cores-%d", one.Threads), Cores: float64(one.Threads),
					MemoryBytes: realMemoryBytes, CostPerHour: float64(one.Threads)})
			}
			busy := min(1, one.CPUSeconds/(one.Seconds*float64(one.Threads)))
			memory := float64(one.MemoryBytes)
			r.measured[setting{one.Model, one.Batch, b}] = dopeml.Measured{CPUUtilization: &busy, MemoryBytes: &memory, LatencySeconds: &one.Seconds}
			if !slices.Contains(r.names, one.Model) {
				r.names = append(r.names, one.Model)
			}
			if !slices.Contains(r.batches, one.Batch) {
				r.batches = append(r.batches, one.Batch)
			}
		}
	}
	for _, name := range r.names {
		for _, batch := range r.batches {
			for b := range r.profiles {
				if _, there := r.measured[setting{name, batch, b}]; !there {
					return nil, fmt.Errorf("%v: %s was not run with a batch of %d on %s", paths, name, batch, r.profiles[b].Name)
				}
			}
		}
	}
	return r, nil
}

// realFeatures are what a workload says of a model.
func realFeatures(name string, w estimate.Workload) dopeml.Model {
	f := w.Float
	return dopeml.Model{Name: name, Operations: f.Operations(), Parameters: f.WeightBytes / 4, WeightBytes: f.WeightBytes,
		ActivationBytes: f.DenseBytes + f.DepthwiseBytes + f.CurvedBytes + f.LightBytes,
		Layers:          map[graph.Class]float64{graph.Convolution: f.Heavy, graph.Elementwise: f.Light}}
}

func (r *real) run(at setting) dopeml.Run {
	return dopeml.Run{Model: r.models[at.model], Request: dopeml.Request{Batch: float64(at.batch)}, Backend: r.profiles[at.backend].Name, Measured: r.measured[at]}
}

// realMeasures are what the runs have.
func realMeasures() []dopeml.Measure {
	return []dopeml.Measure{dopeml.LatencySeconds, dopeml.MemoryBytes, dopeml.CPUUtilization}
}

// realScore is what a stream gave: percentage errors of each measure for models
// that were in no request, after ten runs and at the end, and regret.
type realScore struct {
	early, late [3]float64
	regret      [2]float64 // of the two halves of the stream
	fixed       [2]float64 // of always taking the backend that is best in hindsight
}

// play asks for each model and batch twice in random order, with drawn priorities
// of latency against cost, and learns from the chosen backend alone. A quarter of
// the models is held out.
func (r *real) play(chooser player, seed uint64) (s realScore, err error) {
	random := rand.New(rand.NewPCG(seed, 78))
	names := slices.Clone(r.names)
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	heldOut, asked := names[:len(names)/4], names[len(names)/4:]
	var requests []setting
	for range 2 {
		first := len(requests)
		for _, name := range asked {
			for _, batch := range r.batches {
				requests = append(requests, setting{model: name, batch: batch})
			}
		}
		pass := requests[first:]
		random.Shuffle(len(pass), func(i, j int) { pass[i], pass[j] = pass[j], pass[i] })
	}
	half := len(requests) / 2
	always := make([][2]float64, len(r.profiles))
	for i, at := range requests {
		if i == 10 {
			s.early = r.percent(chooser, heldOut)
		}
		weight := random.Float64()
		wishes := dopeml.Wishes{Weights: map[dopeml.Criterion]float64{dopeml.ByLatency: weight, dopeml.ByCost: 1 - weight}}
		losses := r.losses(at, wishes)
		least := slices.Min(losses)
		explored := false
		if at.backend, explored, err = chooser.choose(at, wishes); err != nil {
			return s, err
		}
		s.regret[i/half] += (losses[at.backend] - least) / float64(half)
		for b, loss := range losses {
			always[b][i/half] += (loss - least) / float64(half)
		}
		if err := chooser.learn(at, explored); err != nil {
			return s, err
		}
	}
	s.fixed = slices.MinFunc(always, func(a, b [2]float64) int { return cmp.Compare(a[0]+a[1], b[0]+b[1]) })
	s.late = r.percent(chooser, heldOut)
	return s, nil
}

func (r *real) losses(at setting, wishes dopeml.Wishes) []float64 {
	var losses []float64
	for b, profile := range r.profiles {
		at.backend = b
		values := r.measured[at].Values()
		losses = append(losses, wishes.Loss(dopeml.Judge(profile, r.models[at.model], dopeml.Request{Batch: float64(at.batch)}, values)))
	}
	return losses
}

// percent is the mean absolute percentage error of each measure.
func (r *real) percent(chooser player, models []string) (errors [3]float64) {
	count := float64(len(models) * len(r.batches) * len(r.profiles))
	for _, name := range models {
		for _, batch := range r.batches {
			for b, values := range chooser.predict(name, batch) {
				really := r.measured[setting{name, batch, b}].Values()
				for i, measure := range realMeasures() {
					errors[i] += math.Abs(values[measure]-really[measure]) / really[measure] / count
				}
			}
		}
	}
	return errors
}

// reportReal prints what is learned of the runs.
func reportReal(out io.Writer, paths []string, seeds int) error {
	r, err := readReal(paths)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d models, %d batch sizes, %d backends\n\n", len(r.names), len(r.batches), len(r.profiles))
	fmt.Fprintln(out, "| method | MAPE of latency: after 10 runs > at the end | of memory | of CPU use | regret %: first half > second half |")
	fmt.Fprintln(out, "|---|---|---|---|---|")
	scores := make([]realScore, seeds)
	for _, one := range []struct {
		name string
		make func() (player, error)
	}{{"DOPE-ML's, ridge", r.ridge}, {"estimates of the device, as the server's", r.estimates}} {
		for seed := range seeds {
			chooser, err := one.make()
			if err != nil {
				return err
			}
			if scores[seed], err = r.play(chooser, uint64(seed)); err != nil {
				return err
			}
		}
		fmt.Fprintf(out, "| %s |", one.name)
		for i := range realMeasures() {
			if math.IsNaN(scores[0].late[i]) {
				fmt.Fprint(out, " |") // it predicts no such thing
				continue
			}
			fmt.Fprintf(out, " %s > %s |", spread(scores, func(s realScore) float64 { return s.early[i] }), spread(scores, func(s realScore) float64 { return s.late[i] }))
		}
		fmt.Fprintf(out, " %s > %s |\n", spread(scores, func(s realScore) float64 { return s.regret[0] }), spread(scores, func(s realScore) float64 { return s.regret[1] }))
	}
	fmt.Fprintf(out, "| one backend, the best in hindsight | | | | %s > %s |\n", spread(scores, func(s realScore) float64 { return s.fixed[0] }), spread(scores, func(s realScore) float64 { return s.fixed[1] }))
	return nil
}
