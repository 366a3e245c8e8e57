package forecast

import (
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

func (p Power) check() error {
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
	// MeanAwake is how many were awake in the mean.
	MeanAwake float64
}

// Knob decides how many GPUs are awake, for a performance that is asked for.
type Knob struct {
	forecaster Forecaster
	power      Power
	total      int
	quantile   float64
	expected   Play
}

// NewKnob learns on a series that the forecaster has not learned from which
// quantile is enough for the performance, from 0 to 1: the lowest of those
// tried that serves at least so much of the demand. If none does, the highest
// is taken, and Expected says what it serves.
func NewKnob(forecaster Forecaster, series []float64, total int, power Power, performance float64) (*Knob, error) {
	if err := power.check(); err != nil {
		return nil, err
	}
	if !(performance > 0 && performance <= 1) || total < 1 {
		return nil, fmt.Errorf("a performance of %g with %d GPUs: the first is above 0 and at most 1, the second at least 1", performance, total)
	}
	k := &Knob{forecaster: forecaster, power: power, total: total}
	low, high := 0, len(Quantiles())-1
	for low < high { // more GPUs serve no less
		middle := (low + high) / 2
		play, err := k.Play(series, Quantiles()[middle], 0)
		if err != nil {
			return nil, err
		}
		if play.Served >= performance {
			high = middle
		} else {
			low = middle + 1
		}
	}
	k.quantile = Quantiles()[low]
	var err error
	k.expected, err = k.Play(series, k.quantile, 0)
	return k, err
}

// Quantile is the one that is taken, Expected how it did on the series that the
// knob learned from.
func (k *Knob) Quantile() float64 { return k.quantile }

// Expected is how the quantile did on the series that the knob learned from.
func (k *Knob) Expected() Play { return k.expected }

// Awake is how many GPUs should be awake, and how many of them are to be woken
// up (or, negative, put to sleep) now.
func (k *Knob) Awake(history []float64, awake int) (wanted, change int, err error) {
	f, err := k.forecaster.Forecast(history)
	if err != nil {
		return 0, 0, err
	}
	wanted = k.needed(f, k.quantile, 0)
	return wanted, wanted - awake, nil
}

// needed is the demand of the minutes that a decision of now is for: from when
// what is woken up now is awake.
func (k *Knob) needed(f Forecast, quantile, margin float64) int {
	most := 0.0
	for minute := k.power.DelayMinutes; minute < Horizon; minute++ {
		most = max(most, f.At(minute, quantile))
	}
	return min(k.total, int(math.Ceil(most*(1+margin)-1e-9)))
}

// Play decides every Horizon minutes over a series, at a quantile and with a
// share of GPUs more than it says (the threshold of section 4.4).
func (k *Knob) Play(series []float64, quantile, margin float64) (Play, error) {
	if err := checkSeries(series, Lookback+2*Horizon); err != nil {
		return Play{}, err
	}
	var p Play
	awake, minutes, demanded, joules := k.total, 0.0, 0.0, 0.0
	for now := Lookback - 1; now+Horizon < len(series); now += Horizon {
		f, err := k.forecaster.Forecast(series[:now+1])
		if err != nil {
			return Play{}, err
		}
		wanted := k.needed(f, quantile, margin)
		for minute := range Horizon {
			serving, drawing := wanted, wanted
			if wanted > awake && minute < k.power.DelayMinutes {
				serving = awake // the others are waking up
			}
			demand := min(series[now+1+minute], float64(k.total)) // more is not there
			served := min(demand, float64(serving))
			demanded += demand
			p.Served += served
			if served >= demand {
				p.Met++
			}
			p.MeanAwake += float64(drawing)
			joules += 60 * (float64(drawing)*k.power.AwakeWatts + float64(k.total-drawing)*k.power.AsleepWatts)
			minutes++
		}
		awake = wanted
	}
	p.Saved = 1 - joules/(minutes*60*float64(k.total)*k.power.AwakeWatts)
	p.Met /= minutes
	p.MeanAwake /= minutes
	if demanded > 0 {
		p.Served /= demanded
	} else {
		p.Served = 1
	}
	return p, nil
}
