package forecasting

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/tandem-tune/tandem/workers/forecast"
)

const (
	// training is how long a network learns, and longest when it has to stop.
	training = 90 * time.Second
	longest  = 2 * time.Minute
	// tasted is how many windows it learns from first, to see how fast that goes
	// here; leastSamples and mostSamples bound what follows from it.
	tasted       = 256
	leastSamples = 1000
	mostSamples  = 60_000
)

// learn finds the best way to forecast. It works on a thread of its own that
// everything else goes before, and takes no second one.
func (s *Service) learn(ctx context.Context, series []float64) (*model, error) {
	runtime.LockOSThread() // without an unlock: the thread ends with the goroutine, and so does its low claim
	stepBack()
	fallback, err := forecast.NewNaive(series, forecast.Quantiles())
	if err != nil {
		return nil, err
	}
	without := ""
	var network *forecast.Settings
	if len(series) >= forecast.LeastForNetwork {
		if network, err = s.pace(ctx, series); err != nil {
			return nil, err
		}
	} else {
		without = needs(forecast.LeastForNetwork, len(series))
	}
	learned, err := forecast.Learn(series, network)
	if errors.Is(err, forecast.ErrStopped) && ctx.Err() == nil {
		without = "its training took too long on this machine, which was busy"
		learned, err = forecast.Learn(series, nil)
	}
	if err != nil {
		return nil, err
	}
	return &model{Learned: learned, fallback: fallback, without: without}, nil
}

// pace measures how fast a network learns here, and gives it as many windows as
// there is time for.
func (s *Service) pace(ctx context.Context, series []float64) (*forecast.Settings, error) {
	var began time.Time // of the first step: what is made before it is made once
	settings := forecast.Settings{Hidden: s.options.Hidden, Samples: tasted, Seed: 1, Stop: func() bool {
		if began.IsZero() {
			began = time.Now()
		}
		return ctx.Err() != nil
	}}
	if s.options.Windows > 0 {
		settings.Samples = s.options.Windows
		return &settings, nil
	}
	if _, err := forecast.Train(series, settings); err != nil {
		return nil, err
	}
	each := max(time.Since(began)/tasted, time.Microsecond)
	settings.Samples = min(max(int(training/each), leastSamples), mostSamples)
	late := time.Now().Add(longest)
	settings.Stop = func() bool { return ctx.Err() != nil || time.Now().After(late) }
	return &settings, nil
}
