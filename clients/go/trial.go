package tandem

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The actions of a directive.
const (
	goOn   = "continue"
	pause  = "pause"
	stop   = "stop"
	finish = "finish"
)

// Metrics are what an epoch measured, by name. NaN and infinities are values.
type Metrics map[string]float64

// link is the way from a trial to whoever gave it out.
type link interface {
	report(ctx context.Context, epoch int, metrics map[string]number, seconds time.Duration) (directive, error)
	publish(ctx context.Context, epoch int) error
	directive(ctx context.Context) (directive, error)
}

// Trial is one configuration, to be trained up to a budget.
//
// A trial may be run several times: it trains to a small budget, is paused and, if it
// is among the better ones, goes on to a larger one from its checkpoint. Its methods
// are for one goroutine.
type Trial struct {
	// ID is its name within the server, Number its place within the study, from 0.
	ID     string
	Study  string
	Number int
	// Rung is the step of the ladder of budgets, 0 for the cheapest.
	Rung int
	// Seed is the same in all runs of the trial.
	Seed uint64
	// FirstEpoch and LastEpoch are what this run trains, counted from 1 over all runs.
	// Of a budget in seconds or joules, LastEpoch is only the most there can be.
	FirstEpoch, LastEpoch int
	// DataFraction is the share of the training data that each epoch uses, in (0, 1].
	DataFraction float64
	// Objectives are the metrics that the last report of a budget must have.
	Objectives []string

	params    map[string]any
	measured  bool // the budget is one of seconds or joules
	directory string
	link      link
	ctx       context.Context
	wanted    directive
	current   int
	reported  int
	took      *time.Duration
	mark      time.Time
	faults    []error
}

func newTrial(ctx context.Context, given lease, link link) *Trial {
	t := &Trial{
		ID: given.TrialID, Study: given.Study, Number: given.Number, Rung: given.Rung, Seed: given.Seed,
		FirstEpoch: max(given.FirstEpoch, 1), LastEpoch: given.Budget.Epochs, DataFraction: given.Budget.DataFraction,
		Objectives: given.Objectives, params: plainAll(given.Params), measured: given.Budget.Seconds > 0 || given.Budget.Joules > 0,
		link: link, ctx: ctx, wanted: directive{Action: goOn}, mark: time.Now(),
	}
	if held, is := link.(*leased); is {
		t.directory = held.directory()
	}
	return t
}

// Context is cancelled when the trial was given to another worker, or whoever asked
// for it wants no more of it. context.Cause says why.
func (t *Trial) Context() context.Context { return t.ctx }

// Params are all values by name: float64, int64, string or bool.
func (t *Trial) Params() map[string]any { return maps.Clone(t.params) }

// Has reports whether the trial has the parameter: one with a condition is absent
// where that is not met.
func (t *Trial) Has(name string) bool {
	_, has := t.params[name]
	return has
}

// Float is the value of a parameter that is a number. For a parameter that the trial
// lacks, or that is no number, it is NaN, and Err and Report say so.
func (t *Trial) Float(name string) float64 {
	value, is := asFloat(t.value(name))
	if !is {
		t.wrong(name, "a number")
		return math.NaN()
	}
	return value
}

// Int is the value of a parameter that is a whole number; see Float.
func (t *Trial) Int(name string) int {
	value, is := asFloat(t.value(name))
	if !is || value != math.Trunc(value) {
		t.wrong(name, "a whole number")
		return 0
	}
	return int(value)
}

// Categorical is the value of a parameter as text; see Float.
func (t *Trial) Categorical(name string) string {
	value := t.value(name)
	if value == nil {
		t.wrong(name, "a text")
		return ""
	}
	return fmt.Sprint(value)
}

// Bool is the value of a parameter that is true or false; see Float.
func (t *Trial) Bool(name string) bool {
	value, is := t.value(name).(bool)
	if !is {
		t.wrong(name, "true or false")
	}
	return value
}

func (t *Trial) value(name string) any { return t.params[name] }

func (t *Trial) wrong(name, wanted string) {
	value, has := t.params[name]
	if has {
		t.faults = append(t.faults, fmt.Errorf("tandem: parameter %q of study %s is %v, which is not %s", name, t.Study, value, wanted))
		return
	}
	known := strings.Join(slices.Sorted(maps.Keys(t.params)), ", ")
	t.faults = append(t.faults, fmt.Errorf("tandem: trial %d of study %s has no parameter %q: it has %s; ask with Has for one that has a condition", t.Number, t.Study, name, known))
}

// Err says which parameters were asked for that the trial does not have so; nil if
// none. Report returns it too.
func (t *Trial) Err() error { return errors.Join(t.faults...) }

// Epochs are what is left to train in this run. They end when the budget is reached,
// or a report was answered that no more is wanted; Stopped says why.
func (t *Trial) Epochs() iter.Seq[int] {
	return func(yield func(int) bool) {
		t.mark = time.Now()
		for epoch := max(t.FirstEpoch, t.reported+1); epoch <= t.LastEpoch && t.wanted.Action == goOn && t.ctx.Err() == nil; epoch++ {
			t.current = epoch
			if !yield(epoch) {
				return
			}
		}
	}
}

// Report tells the server what an epoch measured; the last one of the budget must have
// the study's objectives. Its error is *Error, with the code LeaseLost if another worker
// has the trial now, or says what is wrong with the epoch, a metric or a parameter that
// was asked for.
func (t *Trial) Report(epoch int, metrics Metrics) error {
	if err := t.Err(); err != nil {
		return err
	}
	switch {
	case epoch < t.FirstEpoch || epoch > t.LastEpoch:
		return fmt.Errorf("tandem: epoch %d is not in this run, which is %d to %d", epoch, t.FirstEpoch, t.LastEpoch)
	case epoch <= t.reported:
		return fmt.Errorf("tandem: epoch %d cannot follow epoch %d, which is reported already: report each epoch once", epoch, t.reported)
	case len(metrics) == 0:
		return fmt.Errorf("tandem: the report of epoch %d has no metric: give it %s", epoch, strings.Join(t.Objectives, ", "))
	}
	for _, name := range t.Objectives {
		if _, has := metrics[name]; !has && epoch == t.LastEpoch {
			return fmt.Errorf("tandem: the report of epoch %d, the last of this budget, lacks the objective %q: it has %s", epoch, name, strings.Join(slices.Sorted(maps.Keys(metrics)), ", "))
		}
	}
	took := time.Since(t.mark)
	if t.took != nil {
		took = *t.took
	}
	answer, err := t.send(epoch, metrics, took)
	if err != nil {
		return err
	}
	t.mark, t.reported, t.wanted, t.took = time.Now(), epoch, answer, nil
	return nil
}

func (t *Trial) send(epoch int, metrics Metrics, took time.Duration) (directive, error) {
	numbers := make(map[string]number, len(metrics))
	for name, value := range metrics {
		numbers[name] = number(value)
	}
	return t.link.report(t.ctx, epoch, numbers, took)
}

// Stopped reports whether no further epoch is wanted before the budget is reached, and
// why: the trial was pruned, or the study is paused or over. A long epoch may ask, too.
func (t *Trial) Stopped() (reason string, stopped bool) {
	if t.wanted.Action == goOn {
		if wanted, err := t.link.directive(t.ctx); err == nil {
			t.wanted = wanted
		}
	}
	if t.wanted.Action == stop || t.wanted.Action == pause {
		return first(t.wanted.Reason, "the server wants no more of it"), true
	}
	return "", false
}

// Complete reports whether this run has reached its budget.
func (t *Trial) Complete() bool { return t.reported == t.LastEpoch || t.wanted.Action == finish }

// Checkpoint keeps the training's state: save writes a file or a folder at the path
// that it is given. Once it returns nil, the worker has a copy, which it sends beside the
// next epoch: any machine can go on from it when the next call returns, or this one if no
// epoch follows. It is the state after the epoch that was reported last.
func (t *Trial) Checkpoint(save func(path string) error) error {
	if t.reported == 0 {
		return errors.New("tandem: there is nothing to keep yet: report an epoch before its checkpoint")
	}
	if err := keep(t.directory, save); err != nil {
		return fmt.Errorf("tandem: keep the checkpoint of epoch %d: %w", t.reported, err)
	}
	return t.link.publish(t.ctx, t.reported)
}

// Restore has load read what save wrote, if this run goes on from a checkpoint, and
// reports whether it does. Call it before Epochs.
func (t *Trial) Restore(load func(path string) error) (bool, error) {
	if t.FirstEpoch == 1 {
		return false, nil
	}
	entries, err := os.ReadDir(t.directory)
	if err != nil {
		return false, fmt.Errorf("tandem: restore the checkpoint: %w", err)
	}
	path := t.directory
	if len(entries) == 1 && entries[0].Name() == kept {
		path = filepath.Join(t.directory, kept)
	}
	if err := load(path); err != nil {
		return false, fmt.Errorf("tandem: restore the checkpoint of epoch %d: %w", t.FirstEpoch-1, err)
	}
	return true, nil
}
