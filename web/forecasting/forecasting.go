// Package forecasting records how many GPUs trials want, each minute, and tells
// how many they will.
//
// A [Service] looks at the pool every few seconds, keeps the minutes in a log
// that outlives the server, forecasts the next ones (workers/forecast), and holds
// what came against what it had told. It learns in the background: on one thread
// with the lowest claim to the processor, for about a minute, as soon as there is
// enough to learn from and then daily. Its one invariant: no request waits for
// that. What it answers are estimates, and say so.
package forecasting

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/forecast"
)

// Log keeps minutes. It is called by one goroutine at a time.
type Log interface {
	// Read returns what is kept, by time.
	Read(ctx context.Context, now time.Time) ([]demand.Minute, error)
	Append(ctx context.Context, one demand.Minute) error
}

// Options make a Service.
type Options struct {
	Now    func() time.Time
	Logger *slog.Logger
	Log    Log
	// Look is how the pool is now.
	Look func() demand.Look
	// Power is what GPUs draw, Performance the share of the demand that is to find
	// a GPU awake unless more or less is asked for, from 0 to 1.
	Power       forecast.Power
	Performance float64
	// Total is how many GPUs there are, awake or not; 0: the most that were there
	// at once in the last week.
	Total int
	// Windows is how many windows a network learns from; 0: as many as there is
	// time for in a minute. Hidden is its width; 0: the package's.
	Windows, Hidden int
}

// Check says which of the options cannot be meant.
func (o Options) Check() error {
	if err := o.Power.Check(); err != nil {
		return err
	}
	if !(o.Performance > 0 && o.Performance <= 1) || o.Total < 0 {
		return fmt.Errorf("a performance of %g, and %d GPUs in all: the first must be above 0 and at most 1, the second not negative (0: as many as were seen)", o.Performance, o.Total)
	}
	return nil
}

const (
	// lookEvery is how often the pool is looked at.
	lookEvery = 5 * time.Second
	// learnedFrom bounds what is learned from, in minutes.
	learnedFrom = 14 * forecast.Day
	day         = 24 * time.Hour
	// fresh is how old the newest minute may be for a forecast from it: after a
	// restart, what was recorded before says nothing of the next minutes.
	fresh = 3 * time.Minute
	// returning is how long workers may take to come back to a server that started
	// again: more than a heartbeat.
	returning = 2 * time.Minute
)

// Service records and forecasts. It is safe for concurrent use.
type Service struct {
	options Options
	// began is when this server did, and before what the workers had in the newest
	// minute of the one before.
	began  time.Time
	before float64

	mutex   sync.Mutex
	gauge   demand.Gauge
	history demand.History
	latest  demand.Look
	model   *model
	ahead   []told // of the next minutes
	// rows is what was told of minutes that are not over, demand.Ahead minutes
	// before.
	rows map[time.Time][]float64
	// correction is what the knob is corrected by, and decision what it wanted last.
	correction forecast.Correction
	decision   *decision
	// learning is set while a learner runs; failed is why the last one ended
	// without a result.
	learning   bool
	failed     string
	attempted  time.Time
	background sync.WaitGroup
}

// told is the forecast of a minute.
type told struct {
	at     time.Time
	demand []float64
}

// model is what was learned.
type model struct {
	forecast.Learned
	at      time.Time
	took    time.Duration
	bridged int
	// length is how much there was to learn from, in minutes.
	length int
	// short is why the newest forecast is not by this model but by persistence;
	// empty where it is.
	short string
	// without is why no network was tried; empty where one was.
	without string
	// fallback is persistence, for when the history after a gap is too short.
	fallback forecast.Forecaster
}

// New reads what was recorded before.
func New(ctx context.Context, options Options) (*Service, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	s := &Service{options: options, rows: make(map[time.Time][]float64)}
	minutes, err := options.Log.Read(ctx, options.Now())
	if err != nil {
		return nil, err
	}
	for _, one := range minutes {
		s.history.Add(one)
		s.before = one.Capacity
		if one.Knob != nil {
			s.correction.Debt = one.Knob.Debt
		}
	}
	s.began = options.Now()
	return s, nil
}

// Run looks at the pool until the context ends, and waits for what learns then.
func (s *Service) Run(ctx context.Context) {
	defer s.background.Wait()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	s.Observe(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.Observe(ctx)
		}
	}
}

// Observe looks at the pool once. When a minute is over it is kept, the next ones
// are forecast, and if it is time, learning begins. One goroutine calls it.
func (s *Service) Observe(ctx context.Context) {
	now, look := s.options.Now(), s.options.Look()
	s.mutex.Lock()
	s.latest = look
	minute, whole := s.gauge.Look(now, look)
	if whole {
		minute.Told = s.rows[minute.At]
		for at := range s.rows {
			if !at.After(minute.At) {
				delete(s.rows, at)
			}
		}
		s.compare(&minute)
		whole = s.history.Add(minute)
		s.foresee(minute.At)
		s.decide(minute.At, now)
	}
	s.startLearning(ctx, now)
	s.mutex.Unlock()
	if !whole {
		return
	}
	if err := s.options.Log.Append(ctx, minute); err != nil && ctx.Err() == nil {
		s.options.Logger.Error("a minute of demand could not be kept: after a restart it will be a gap", "error", err)
	}
}

// recent is the newest stretch of demand that may be learned from. The lock is
// held.
func (s *Service) recent() (series []float64, bridged int) {
	newest, some := s.history.Newest()
	if !some {
		return nil, 0
	}
	return demand.Series(s.history.Since(newest.At.Add(-learnedFrom * time.Minute)))
}

// foresee forecasts the minutes behind the newest one. The lock is held.
func (s *Service) foresee(newest time.Time) {
	s.ahead = nil
	if s.model == nil || s.options.Now().Sub(newest) > fresh {
		return
	}
	series, _ := s.recent()
	s.model.short = ""
	found, err := s.model.Forecaster.Forecast(series)
	if err != nil { // there was a gap since
		s.model.short = err.Error()
		if found, err = s.model.fallback.Forecast(series); err != nil {
			return
		}
	}
	for i, row := range found.Demand {
		s.ahead = append(s.ahead, told{at: newest.Add(time.Duration(i+1) * time.Minute), demand: row})
	}
	if last := s.ahead[len(s.ahead)-1]; len(s.ahead) == demand.Ahead {
		s.rows[last.at] = rounded(last.demand)
	}
}

// rounded is what is kept of a forecast: a hundredth of a GPU is enough.
func rounded(row []float64) []float64 {
	kept := make([]float64, len(row))
	for i, x := range row {
		kept[i] = float64(int(x*100+0.5)) / 100
	}
	return kept
}

// grown reports whether there is so much more to learn from that it should not
// wait for a day: half as much again, or enough for what was not possible.
func grown(before, now int) bool {
	for _, least := range []int{forecast.LeastForKnob, forecast.LeastForNetwork} {
		if before < least && now >= least {
			return true
		}
	}
	return before < forecast.LeastForNetwork && 2*now >= 3*before
}

// startLearning begins to learn in the background if it is time: when there is
// enough for the first time, when there is much more, and daily. The lock is
// held.
func (s *Service) startLearning(ctx context.Context, now time.Time) {
	if s.learning || now.Sub(s.attempted) < time.Minute {
		return
	}
	series, bridged := s.recent()
	if len(series) < forecast.LeastForPersistence {
		return
	}
	if s.model != nil {
		if !grown(s.model.length, len(series)) && now.Sub(s.model.at) < day {
			return
		}
	}
	s.learning, s.attempted = true, now
	s.background.Go(func() {
		began := time.Now() // what it takes is real time, whatever the clock of the pool says
		learned, err := s.learn(ctx, series)
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.learning = false
		if err != nil {
			if !errors.Is(err, forecast.ErrStopped) {
				s.failed = err.Error()
				s.options.Logger.Error("the demand could not be learned", "error", err)
			}
			return
		}
		learned.at, learned.bridged, learned.took, learned.length = now, bridged, time.Since(began), len(series)
		s.failed, s.model = "", learned
		if newest, some := s.history.Newest(); some {
			s.foresee(newest.At)
		}
		s.options.Logger.Info("learned how the demand goes", "method", learned.Method, "minutes", len(series), "seconds", learned.took.Seconds())
	})
}
