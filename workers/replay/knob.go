package replay

import (
	"math"

	"github.com/tandem-tune/tandem/workers/forecast"
)

// Standby keeps as many GPUs awake as are wanted, and some to spare: what can be
// done without a forecast.
func Standby(spare int) Knob { return standby(spare) }

type standby int

func (s standby) Awake(state *State) int { return state.Wanted() + int(s) }

// Foreseen keeps as many GPUs awake as a forecast says will be wanted within its
// horizon, at the quantile, and never fewer than are wanted now (CUFF, Mammen et
// al., e-Energy 2023, section 3.3). Its policy has to look every 60 s, as the
// forecasters count in minutes; as long as they lack history, all are awake. It
// remembers what was wanted: each replay needs its own.
func Foreseen(forecaster forecast.Forecaster, quantile float64) Knob {
	return &foreseen{forecaster: forecaster, quantile: quantile}
}

type foreseen struct {
	forecaster forecast.Forecaster
	quantile   float64
	wanted     []float64 // each minute
}

func (f *foreseen) Awake(state *State) int {
	now := state.Wanted()
	f.wanted = append(f.wanted, float64(now))
	one, err := f.forecaster.Forecast(f.wanted)
	if err != nil {
		return math.MaxInt
	}
	most := float64(now)
	for minute := range one.Demand {
		most = max(most, one.At(minute, f.quantile))
	}
	return int(math.Ceil(most))
}
