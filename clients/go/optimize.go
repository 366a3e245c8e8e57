package tandem

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// ObjectiveFunc measures a trial. What it returns is reported as the last epoch of the
// budget, unless the function reported that itself. The context is trial.Context().
type ObjectiveFunc func(ctx context.Context, trial *Trial) (float64, error)

// Option changes how Optimize runs.
type Option func(*run)

// Trials bounds how often the objective runs: a promoted trial runs again. Without it
// Optimize goes on until the study is over.
func Trials(n int) Option { return func(r *run) { r.left, r.bounded = n, true } }

// Parallel has n runs go on at once, each in a goroutine.
func Parallel(n int) Option { return func(r *run) { r.parallel = n } }

// KeepGoing has a run whose objective returns an error fail alone; without it that
// error ends Optimize, too.
func KeepGoing() Option { return func(r *run) { r.keepGoing = true } }

// run is one call of Optimize.
type run struct {
	study     *Study
	objective ObjectiveFunc
	session   *session
	parallel  int
	keepGoing bool

	mu      sync.Mutex // never held over a call
	left    int
	bounded bool
	ending  bool
	err     error
}

// Optimize runs the objective for trial after trial in this process, until the study is
// over, a bound is reached, the context ends or the objective fails. When the context
// ends, running trials go back to the server; the error is the context's.
func (s *Study) Optimize(ctx context.Context, objective ObjectiveFunc, options ...Option) error {
	r := &run{study: s, objective: objective, parallel: 1}
	for _, option := range options {
		option(r)
	}
	if r.parallel < 1 {
		return fmt.Errorf("tandem: Parallel takes a number from 1 on, not %d", r.parallel)
	}
	if r.bounded && r.left < 0 {
		return fmt.Errorf("tandem: Trials takes a number from 0 on, not %d", r.left)
	}
	var err error
	if r.session, err = s.client.open(ctx, s.ID, r.parallel); err != nil {
		return err
	}
	defer r.session.close()
	var loops sync.WaitGroup
	for range r.parallel {
		loops.Go(func() { r.work(ctx) })
	}
	loops.Wait()
	return r.err
}

func (r *run) work(ctx context.Context) {
	for r.take() {
		trial, err := r.session.next(ctx)
		if err == nil {
			err = r.one(ctx, trial)
		}
		if errors.Is(err, ErrStudyOver) {
			r.end(nil)
			return
		}
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			r.end(err)
			return
		}
	}
}

func (r *run) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending || r.bounded && r.left == 0 {
		return false
	}
	r.left--
	return true
}

// end lets the other goroutines end after the trial that they are on.
func (r *run) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending = true
	if r.err == nil {
		r.err = err
	}
}

// one runs a trial and ends its lease. The error is what ends Optimize.
func (r *run) one(ctx context.Context, trial *Trial) error {
	held, err := heldBy(trial)
	if err != nil {
		return err
	}
	value, err := r.objective(trial.ctx, trial)
	if err == nil {
		err = trial.complete(value)
	}
	last := context.WithoutCancel(ctx)
	switch {
	case IsCode(err, LeaseLost) || IsCode(context.Cause(trial.ctx), LeaseLost):
		return nil // another worker has it; the next one may go well
	case err == nil:
		_, err = held.finish(last, trial.outcome(), trial.wanted.Reason, "")
	case ctx.Err() != nil:
		held.giveBack("the program was ended", "")
		return err
	default:
		failed := fmt.Errorf("tandem: trial %d: %w", trial.Number, err)
		if _, err = held.finish(last, "failed", err.Error(), ""); err == nil && !r.keepGoing {
			return failed
		}
	}
	if IsCode(err, LeaseLost) {
		return nil
	}
	return err
}

// complete reports the value as the last epoch of the budget, if that is still missing.
func (t *Trial) complete(value float64) error {
	if err := t.Err(); err != nil {
		return err
	}
	if _, stopped := t.Stopped(); stopped || t.Complete() {
		return nil
	}
	switch {
	case t.measured:
		return fmt.Errorf("tandem: the objective returned after epoch %d, before its budget was spent: with a budget in seconds or joules, report in the loop over trial.Epochs() until it ends", t.reported)
	case len(t.Objectives) != 1:
		return fmt.Errorf("tandem: the objective returned one value for the objectives %s: report epoch %d with all of them", strings.Join(t.Objectives, ", "), t.LastEpoch)
	}
	return t.Report(t.LastEpoch, Metrics{t.Objectives[0]: value})
}

// outcome is how the run ended, in the server's word.
func (t *Trial) outcome() string {
	if t.Complete() {
		return "budget_reached"
	}
	return "interrupted"
}

// Result is a trial that was measured elsewhere.
type Result struct {
	Params map[string]any
	// Metrics are those of its end, the study's objectives among them.
	Metrics Metrics
	// Curve is the first objective after each epoch, if it is known. The last epoch's is
	// taken from Metrics.
	Curve []float64
	// Took is how long the training took.
	Took time.Duration
}

const recordTries = 20

// Record makes a result a finished trial of the study, and returns the trial's number.
// The study trains each trial in one go: Epochs is 1, or Search has "promotion": "none".
// A result that does not fit the space is an *Error with the code Invalid. Another trial
// that it is given meanwhile is kept, under this context, for the next call of Ask.
func (s *Study) Record(ctx context.Context, result Result) (int, error) {
	trial, err := s.enqueued(ctx, result.Params)
	if err != nil {
		return 0, err
	}
	curve := result.Curve[:min(len(result.Curve), trial.LastEpoch-1)]
	share := result.Took / time.Duration(len(curve)+1)
	trial.took = &share
	// The result comes first: early stopping does not judge what is measured already.
	if err := trial.Report(trial.LastEpoch, result.Metrics); err != nil {
		_, failed := s.Interrupt(ctx, trial, err.Error())
		return 0, errors.Join(err, failed)
	}
	for i, value := range curve {
		if _, err := trial.send(i+1, Metrics{trial.Objectives[0]: value}, share); err != nil {
			return 0, err
		}
	}
	_, err = s.Tell(ctx, trial, 0)
	return trial.Number, err
}

// enqueued leases a trial with the parameters. Others that it gets meanwhile are for
// later calls of Ask.
func (s *Study) enqueued(ctx context.Context, params map[string]any) (*Trial, error) {
	for range recordTries {
		if err := s.Enqueue(ctx, params); err != nil {
			return nil, err
		}
		for waiting := 1; waiting > 0; {
			trial, err := s.ask(ctx)
			if err != nil {
				return nil, err
			}
			if trial.has(params) {
				return trial, nil
			}
			s.mu.Lock()
			s.spare = append(s.spare, trial)
			s.mu.Unlock()
			status, err := s.Status(ctx)
			if err != nil {
				return nil, err
			}
			waiting = status.Enqueued
		}
	}
	return nil, fmt.Errorf("tandem: study %s gave the trial that was enqueued to other workers, %d times: pause them while results are brought in", s.Name, recordTries)
}

func (t *Trial) has(params map[string]any) bool {
	for name, value := range params {
		if mine, has := t.params[name]; has && !same(mine, value) {
			return false
		}
	}
	return true
}
