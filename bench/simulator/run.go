package simulator

import (
	"container/heap"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/definition"
)

// patience is for how long nobody may be training before the study is called
// stuck: by then every lease has run out, and a worker that was excluded three times
// in a row (10, 20 and 40 minutes) has been asked again.
const patience = 2 * time.Hour

// simulation is one run.
type simulation struct {
	ctx       context.Context
	options   Options
	benchmark Benchmark
	service   *study.Service
	study     string // the study's id
	metric    string
	maximize  bool
	top       budget.Budget
	random    *rand.Rand

	now     time.Duration
	start   time.Time
	events  queue
	planned int // events so far
	idle    int // ticks in a row without anybody training
	workers []*worker
	parked  []*worker // those with nothing to do, who came first at the front
	names   int       // workers so far
	over    bool

	incumbent Point // its Incumbent, Value, True and Full
	trace     Trace
}

// Run simulates the study until it is over or a bound of the options is
// reached. Epochs that are being trained at that moment are not counted.
//
// A benchmark's answer that cannot be and a study that can never end are
// errors: the trace then has what happened before.
func Run(ctx context.Context, def definition.Definition, benchmark Benchmark, options Options) (Trace, error) {
	options, err := options.withDefaults()
	if err != nil {
		return Trace{}, err
	}
	s := &simulation{
		ctx: ctx, options: options, benchmark: benchmark, start: time.Unix(0, 0).UTC(),
		random:    rand.New(rand.NewPCG(options.Seed, 0x73696d)),
		incumbent: Point{Incumbent: -1, Value: math.NaN(), True: math.NaN(), Full: math.NaN()},
	}
	kept := memory.New()
	s.service = study.New(kept, kept, study.Options{
		Now:          func() time.Time { return s.start.Add(s.now) },
		Random:       rand.New(rand.NewPCG(options.Seed, 0x696473)).Uint64,
		LeaseSeconds: options.LeaseSeconds, HeartbeatSeconds: options.LeaseSeconds / 4,
	})
	if err := s.begin(def); err != nil {
		return Trace{}, err
	}
	runErr := s.run()
	if err := s.conclude(); err != nil && runErr == nil {
		return s.trace, err
	}
	return s.trace, runErr
}

// begin creates the study and lets the first workers ask.
func (s *simulation) begin(def definition.Definition) error {
	if err := s.service.Start(s.ctx); err != nil {
		return err
	}
	view, err := s.service.CreateWarm(s.ctx, def, s.options.Prior)
	if err != nil {
		return err
	}
	s.study, s.metric = view.ID, def.Objectives[0].Metric
	s.maximize = def.Objectives[0].Direction == definition.Maximize
	s.top = view.Rungs[len(view.Rungs)-1].Budget
	if s.options.Full.Epochs > 0 {
		s.top = s.options.Full
	}
	for range s.options.Workers {
		w := &worker{}
		s.workers = append(s.workers, w)
		s.plan(0, w)
	}
	s.plan(s.tickEvery(), nil)
	return nil
}

// plan puts an event into the queue, some time from now.
func (s *simulation) plan(after time.Duration, w *worker) {
	s.planned++
	heap.Push(&s.events, event{at: s.now + after, order: s.planned, worker: w})
}

// run is the loop over events.
func (s *simulation) run() error {
	limit := time.Duration(math.MaxInt64)
	if s.options.MaxSeconds > 0 {
		limit = seconds(s.options.MaxSeconds)
	}
	for !s.over && !s.spent() {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		next := heap.Pop(&s.events).(event)
		if next.at > limit {
			s.now = limit
			return nil
		}
		s.now = next.at
		var err error
		if next.worker == nil {
			err = s.tick()
		} else {
			err = s.act(next.worker)
		}
		if err != nil {
			return fmt.Errorf("after %.0f simulated seconds: %w", s.now.Seconds(), err)
		}
	}
	return nil
}

func (s *simulation) spent() bool {
	return s.options.MaxCost > 0 && s.trace.Cost >= s.options.MaxCost*(1-1e-9)
}

// conclude asks the service what became of the study.
func (s *simulation) conclude() error {
	var err error
	if s.trace.Study, err = s.service.Study(s.ctx, s.study); err != nil {
		return err
	}
	s.trace.Recommendation, err = s.service.Recommendation(s.ctx, s.study)
	s.trace.Seconds = s.now.Seconds()
	return err
}

// tickEvery is short enough for no lease to run out between two heartbeats,
// and for the service not to believe that it slept.
func (s *simulation) tickEvery() time.Duration { return seconds(s.options.LeaseSeconds / 4) }

// tick is the server's own, behind the heartbeats of all workers alive.
func (s *simulation) tick() error {
	training := false
	for _, w := range s.workers {
		if err := s.beat(w); err != nil {
			return err
		}
		training = training || w.lease != nil
	}
	if err := s.service.Tick(s.ctx); err != nil {
		return err
	}
	view, err := s.service.Study(s.ctx, s.study)
	if err != nil {
		return err
	}
	s.over = view.Status.Over()
	s.idle++
	if training {
		s.idle = 0
	}
	if time.Duration(s.idle)*s.tickEvery() > patience && !s.over {
		return problem.New(problem.Internal, "the study is stuck: nobody has anything to do, and it is %s", view.Status)
	}
	s.wake()
	s.plan(s.tickEvery(), nil)
	return nil
}

// wake lets everybody who found nothing to do ask again.
func (s *simulation) wake() {
	for _, w := range s.parked {
		s.plan(0, w)
	}
	s.parked = nil
}

// chance draws whether something happens. What cannot happen draws nothing.
func (s *simulation) chance(p float64) bool { return p > 0 && s.random.Float64() < p }

// seconds is a simulated time, at most some centuries.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 1e9) * float64(time.Second))
}
