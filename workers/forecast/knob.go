package forecast

import (
	"errors"
	"fmt"
	"math"
)

// Power is what a GPU draws, and how it is put to sleep.
type Power struct {
	// AwakeWatts is drawn by a GPU that is awake and idle, AsleepWatts by one
	// that sleeps.
	AwakeWatts, AsleepWatts float64
	// DelayMinutes is how long one takes to wake up. It draws AwakeWatts
	// meanwhile, and serves nobody.
	DelayMinutes int
}

// Check says which of the values cannot be meant.
func (p Power) Check() error {
	if !(p.AsleepWatts >= 0 && p.AwakeWatts > p.AsleepWatts) || math.IsInf(p.AwakeWatts, 0) || p.DelayMinutes < 0 || p.DelayMinutes >= Horizon {
		return fmt.Errorf("%g W awake, %g W asleep, %d minutes to wake up: awake must be more than asleep, and the delay less than the %d minutes that are forecast", p.AwakeWatts, p.AsleepWatts, p.DelayMinutes, Horizon)
	}
	return nil
}

// Play is how a number of GPUs awake did over a series.
type Play struct {
	// Served is the share of the demand, in GPU-minutes, that found a GPU awake:
	// the performance of section 3.3. Met is the share of minutes in which all
	// of it did.
	Served, Met float64
	// Saved is the share of the energy of GPUs that are all always awake.
	Saved float64
}

// Setting is one of the knob: the quantile that it keeps GPUs awake for, and how
// that did on the series that the knob learned from.
type Setting struct {
	Quantile float64
	Play
}

// Knob decides how many GPUs are awake, for a performance that is asked for.
type Knob struct {
	power    Power
	total    int
	mean     float64
	settings []Setting
}

// NewKnob learns what each quantile would have served and saved, from forecasts
// that are Horizon minutes apart, of a series that the forecaster has not
// learned from. Total is how many GPUs there are.
func NewKnob(all []Judged, total int, power Power) (*Knob, error) {
	if err := power.Check(); err != nil {
		return nil, err
	}
	if total < 1 || len(all) == 0 {
		return nil, fmt.Errorf("%d GPUs and %d forecasts: a knob needs at least one of each", total, len(all))
	}
	k := &Knob{power: power, total: total}
	minutes := 0
	for _, one := range all {
		for _, actual := range one.Actual {
			k.mean += k.Reachable(actual)
			minutes++
		}
	}
	k.mean /= float64(max(1, minutes))
	for _, quantile := range all[0].Forecast.Quantiles {
		play, err := k.Play(all, quantile)
		if err != nil {
			return nil, err
		}
		k.settings = append(k.settings, Setting{Quantile: quantile, Play: play})
	}
	return k, nil
}

// Settings are all there are, by quantile.
func (k *Knob) Settings() []Setting { return k.settings }

// MeanDemand is the demand of a minute of what the knob learned from, in the mean,
// in GPUs.
func (k *Knob) MeanDemand() float64 { return k.mean }

// Reachable is how much of a demand there are GPUs for, awake or not.
func (k *Knob) Reachable(demand float64) float64 { return min(demand, float64(k.total)) }

// Set returns the setting for a performance, above 0 and at most 1: the lowest
// quantile that served at least so much of the demand. If none did, the highest
// is taken, and reached is false.
func (k *Knob) Set(performance float64) (setting Setting, reached bool, err error) {
	if !(performance > 0 && performance <= 1) {
		return Setting{}, false, fmt.Errorf("a performance of %g: it must be above 0 and at most 1", performance)
	}
	for _, one := range k.settings {
		if one.Served >= performance {
			return one, true, nil
		}
	}
	return k.settings[len(k.settings)-1], false, nil
}

// Awake is how many GPUs should be awake for a forecast at a quantile: the most
// demand of the minutes that a decision of now is for, which begin when what is
// woken up now is awake.
func (k *Knob) Awake(f Forecast, quantile float64) int {
	most := 0.0
	for minute := k.power.DelayMinutes; minute < len(f.Demand); minute++ {
		most = max(most, f.At(minute, quantile))
	}
	return min(k.total, int(math.Ceil(most-1e-9)))
}

// Play decides at each of the forecasts, which are Horizon minutes apart, at a
// quantile.
func (k *Knob) Play(all []Judged, quantile float64) (Play, error) {
	return k.PlayBy(all, func(one Judged) int { return k.Awake(one.Forecast, quantile) }, func(_, _ float64) {})
}

// Serving is how many GPUs serve in a minute behind a decision, the first being 0:
// those that it wakes up are not there before they are awake.
func (k *Knob) Serving(before, wanted, minute int) int {
	if wanted > before && minute < k.power.DelayMinutes {
		return before
	}
	return wanted
}

// PlayBy decides at each of the forecasts how many GPUs are awake, and tells after each
// minute what of its demand was served.
func (k *Knob) PlayBy(all []Judged, decide func(Judged) int, seen func(demand, served float64)) (Play, error) {
	if len(all) == 0 {
		return Play{}, errors.New("there is no forecast to play")
	}
	var p Play
	awake, minutes, demanded, joules := k.total, 0.0, 0.0, 0.0
	for _, one := range all {
		wanted := decide(one)
		for minute, actual := range one.Actual {
			demand := k.Reachable(actual)
			served := min(demand, float64(k.Serving(awake, wanted, minute)))
			seen(demand, served)
			demanded += demand
			p.Served += served
			if served >= demand {
				p.Met++
			}
			joules += 60 * (float64(wanted)*k.power.AwakeWatts + float64(k.total-wanted)*k.power.AsleepWatts)
			minutes++
		}
		awake = wanted
	}
	p.Saved = 1 - joules/(minutes*60*float64(k.total)*k.power.AwakeWatts)
	p.Met /= minutes
	if demanded > 0 {
		p.Served /= demanded
	} else {
		p.Served = 1
	}
	return p, nil
}
