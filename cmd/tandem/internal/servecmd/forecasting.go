package servecmd

import (
	"context"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/web/forecasting"
	"github.com/tandem-tune/tandem/workers/forecast"
)

// poolOptions are what the server is told of its GPUs.
type poolOptions struct {
	performance             float64
	total, wakeMinutes      int
	awakeWatts, asleepWatts float64
}

// usualPool is what is taken where nobody says more: 25 W less by the lowest clock
// (Mammen and others, 2023, section 4.2).
func usualPool() poolOptions {
	return poolOptions{performance: 0.98, awakeWatts: 50, asleepWatts: 25, wakeMinutes: 1}
}

func poolFlags(command *cobra.Command, options *poolOptions) {
	flags, usual := command.Flags(), usualPool()
	flags.Float64Var(&options.performance, "pool-performance", usual.performance, "share of the demand that is to find a GPU awake, for advice on which workers to wake and to drain")
	flags.IntVar(&options.total, "pool-size", 0, "how many GPUs (or trial slots) there are, awake or not; 0: as many as were there at once in the last week")
	flags.Float64Var(&options.awakeWatts, "gpu-idle-watts", usual.awakeWatts, "what a GPU draws that is awake and idle: for estimates of what sleep saves")
	flags.Float64Var(&options.asleepWatts, "gpu-asleep-watts", usual.asleepWatts, "what one draws that sleeps")
	flags.IntVar(&options.wakeMinutes, "gpu-wake-minutes", usual.wakeMinutes, "how many minutes one takes to wake up, from 0 to 4")
}

func (o poolOptions) power() forecast.Power {
	return forecast.Power{AwakeWatts: o.awakeWatts, AsleepWatts: o.asleepWatts, DelayMinutes: o.wakeMinutes}
}

// check refuses flags that cannot be meant.
func (o poolOptions) check() error {
	if err := o.power().Check(); err != nil {
		return term.Misuse("--gpu-idle-watts, --gpu-asleep-watts, --gpu-wake-minutes: %w", err)
	}
	if err := (forecasting.Options{Power: o.power(), Performance: o.performance, Total: o.total}).Check(); err != nil {
		return term.Misuse("--pool-performance, --pool-size: %w", err)
	}
	return nil
}

// openForecasts makes what records and forecasts the demand.
func (s *server) openForecasts(ctx context.Context) (err error) {
	options := s.process.options
	s.forecasts, err = forecasting.New(ctx, forecasting.Options{
		Now: time.Now, Logger: options.Logger, Log: forecasting.NewRecord(s.store), Look: s.studies.Demand,
		Power: options.pool.power(), Performance: options.pool.performance, Total: options.pool.total,
	})
	return err
}

// watch looks at the pool and forecasts its demand, and tells hooks, until the context
// ends. The function that it returns waits for that.
func (s *server) watch(ctx context.Context) (wait func()) {
	var running sync.WaitGroup
	running.Go(func() { s.forecasts.Run(ctx) })
	running.Go(func() { s.hooks.Run(ctx) })
	return running.Wait
}
