package main

import (
	"math"

	"github.com/tandem-tune/tandem/bench/edgetune/dopeml"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

// player chooses backends of real, and learns from what they took.
type player interface {
	choose(at setting, wishes dopeml.Wishes) (backend int, explored bool, err error)
	learn(at setting, explored bool) error
	// predict are the measures of a model on each backend; NaN for what it does not predict.
	predict(model string, batch int) []dopeml.Values
}

// ridgePlayer is DOPE-ML's chooser.
type ridgePlayer struct {
	*real
	chooser *dopeml.Chooser
}

func (r *real) ridge() (player, error) {
	chooser, err := dopeml.New(r.profiles, dopeml.Settings{Exploration: dopeml.Optimism, Share: 0.1})
	return ridgePlayer{r, chooser}, err
}

func (p ridgePlayer) choose(at setting, wishes dopeml.Wishes) (int, bool, error) {
	choice, err := p.chooser.Choose(p.models[at.model], dopeml.Request{Batch: float64(at.batch)}, wishes)
	return max(choice.Chosen, 0), choice.Explored, err
}

func (p ridgePlayer) learn(at setting, explored bool) error {
	run := p.run(at)
	run.Explored = explored
	return p.chooser.Learn(run)
}

func (p ridgePlayer) predict(model string, batch int) []dopeml.Values {
	return predicted(p.chooser, p.models[model], dopeml.Request{Batch: float64(batch)})
}

// estimatePlayer takes what was measured, else the estimate that measurements calibrate, as the
// server does. It never explores, and fits again after each ten measurements, since that
// takes long.
type estimatePlayer struct {
	*real
	knowledge    estimate.Knowledge
	measurements []estimate.Measurement
	known        map[setting]float64
	model        *estimate.Model
	every        int // measurements before it is fitted again
}

func (r *real) estimates() (player, error) {
	knowledge, err := estimate.Known()
	return &estimatePlayer{real: r, knowledge: knowledge, known: map[setting]float64{}, model: estimate.Fit(r.device, nil, knowledge), every: 10}, err
}

func (p *estimatePlayer) configuration(at setting) estimate.Configuration {
	return estimate.Configuration{Batch: at.batch, Cores: int(p.profiles[at.backend].Cores)}
}

func (p *estimatePlayer) choose(at setting, wishes dopeml.Wishes) (int, bool, error) {
	best, least := 0, math.Inf(1)
	for b, values := range p.predict(at.model, at.batch) {
		if loss := wishes.Loss(dopeml.Judge(p.profiles[b], p.models[at.model], dopeml.Request{Batch: float64(at.batch)}, values)); loss < least {
			best, least = b, loss
		}
	}
	return best, false, nil
}

func (p *estimatePlayer) learn(at setting, _ bool) error {
	if _, known := p.known[at]; known {
		return nil
	}
	p.known[at] = *p.measured[at].LatencySeconds
	p.measurements = append(p.measurements, estimate.Measurement{Workload: p.workloads[at.model], Configuration: p.configuration(at), Seconds: p.known[at]})
	if len(p.measurements)%p.every == 0 {
		p.model = estimate.Fit(p.device, p.measurements, p.knowledge)
	}
	return nil
}

func (p *estimatePlayer) predict(model string, batch int) (list []dopeml.Values) {
	for b := range p.profiles {
		at := setting{model, batch, b}
		values := dopeml.Measured{}.Values()
		values[dopeml.LatencySeconds] = p.known[at]
		if _, known := p.known[at]; !known {
			values[dopeml.LatencySeconds] = p.model.Predict(p.workloads[model], p.configuration(at)).Seconds.Value
		}
		list = append(list, values)
	}
	return list
}
