// Package searchtest is the conformance suite of search methods: whatever
// order requests, results and failures come in, a method keeps the promises of
// package search. A method passes if [Run] passes.
//
// It judges a method only by its events and actions, with a referee that keeps
// its own book; it knows nothing of how a method decides.
package searchtest

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// Subject is what is checked.
type Subject struct {
	// New returns a new method for the settings, whose Method it may set.
	New func(search.Settings) (*search.Method, error)
	// Ends says that the method may run out of configurations, as a grid does.
	// All others must go on until the study has all its trials.
	Ends bool
	// One says that the method needs one objective.
	One bool
	// Promotions are those of which each case draws one.
	Promotions []budget.Promotion
}

// Run checks the subject.
func Run(t *testing.T, made Subject) {
	run(t, made)
	supplies(t, made)
}

func run(t *testing.T, made Subject) {
	t.Run("any order of events is played to the end", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			g := newGame(t, made, anySettings(t, made))
			g.inform()
			g.shuffle(rapid.IntRange(0, 60).Draw(t, "steps"))
			if rapid.Bool().Draw(t, "goes on behind its end") {
				g.finish()
				g.goOn()
			}
			g.finish()
			g.standing()
		})
	})
	t.Run("the same events give the same actions", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			g := newGame(t, made, anySettings(t, made))
			g.twin = g.fresh()
			g.inform()
			g.shuffle(rapid.IntRange(1, 60).Draw(t, "steps"))
			g.finish()
		})
	})
	t.Run("a restored snapshot continues alike", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			g := newGame(t, made, anySettings(t, made))
			g.twin = g.fresh()
			g.inform()
			for range rapid.IntRange(1, 4).Draw(t, "snapshots") {
				g.shuffle(rapid.IntRange(0, 20).Draw(t, "steps"))
				if rapid.IntRange(0, 2).Draw(t, "extended") == 0 {
					g.goOn()
				}
				// Restoring over a method that has a past must not mix the two.
				switch rapid.IntRange(0, 2).Draw(t, "over") {
				case 0:
					g.twin = g.fresh()
				case 1:
					other := newGame(t, made, g.settings)
					other.shuffle(rapid.IntRange(0, 40).Draw(t, "past"))
					g.twin = other.method
				}
				if err := g.twin.Restore(g.snapshot()); err != nil {
					t.Fatalf("restore: %v", err)
				}
			}
			g.finish()
		})
	})
	t.Run("impossible events change nothing", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			g := newGame(t, made, anySettings(t, made))
			for range rapid.IntRange(1, 10).Draw(t, "times") {
				g.shuffle(rapid.IntRange(0, 5).Draw(t, "steps"))
				g.impossible()
			}
			g.finish()
		})
	})
}

// game plays a method against workers that answer in any order.
type game struct {
	*rapid.T
	made     Subject
	settings search.Settings
	method   *search.Method
	twin     *search.Method // gets the same events and must do the same, if set
	referee  *referee
}

func newGame(t *rapid.T, made Subject, settings search.Settings) *game {
	g := &game{T: t, made: made, settings: settings, referee: newReferee(t, settings, made.Ends)}
	g.method = g.fresh()
	return g
}

// inform may tell the method what was measured elsewhere.
func (g *game) inform() {
	if rapid.Bool().Draw(g.T, "without a prior") {
		return
	}
	e := search.Event{Kind: search.Prior}
	for range rapid.IntRange(1, 30).Draw(g.T, "results of elsewhere") {
		o := search.Observation{
			Params: anyPart(g.T, g.settings.Space),
			Cost:   rapid.SampledFrom([]float64{0, 1, 4}).Draw(g.T, "cost"), Source: rapid.SampledFrom([]string{"a", "b"}).Draw(g.T, "source"),
		}
		for range g.settings.Maximize {
			o.Values = append(o.Values, anyValue(g.T))
		}
		if part, err := g.settings.Space.Part(o.Params); err == nil && len(part) > 0 {
			e.Prior = append(e.Prior, o)
		}
	}
	if actions := g.handle(e); len(actions) != 0 {
		g.Fatalf("%s was answered with %s", e.Kind, show(actions))
	}
	g.referee.informed = len(e.Prior) > 0
}

func (g *game) fresh() *search.Method {
	method, err := g.made.New(g.settings)
	if err != nil {
		g.Fatalf("make a method: %v", err)
	}
	return method
}

func (g *game) snapshot() json.RawMessage {
	state, err := g.method.Snapshot()
	if err != nil {
		g.Fatalf("snapshot: %v", err)
	}
	return state
}

// shuffle plays random events.
func (g *game) shuffle(steps int) {
	for range steps {
		if rapid.IntRange(0, 9).Draw(g.T, "enqueue") == 0 {
			g.enqueue()
		}
		out := g.referee.out()
		if len(out) == 0 || rapid.Bool().Draw(g.T, "request") {
			g.request()
			continue
		}
		number := rapid.SampledFrom(out).Draw(g.T, "of trial")
		if g.settings.EarlyStopping != nil && rapid.IntRange(0, 3).Draw(g.T, "reports") > 0 {
			g.report(number)
			continue
		}
		g.end(number)
	}
}

// finish plays until the method says that it is over. A method that forgets a
// trial, or waits for nothing, does not get there.
func (g *game) finish() {
	// Every trial is out once at each rung at most, and there is one request
	// and one outcome for each, and one wait.
	limit := 3*g.settings.MaxTrials*len(g.settings.Rungs) + 10
	if again := g.settings.Repeats; again != nil {
		limit += 3 * 2 * again.Trials * again.Times // each may fail and is trained once more
	}
	for range limit {
		switch action := g.request(); action.Kind {
		case search.Wait:
			g.train(g.referee.out()[0])
		case search.Finish:
			if again := g.request(); again.Kind != search.Finish {
				g.Fatalf("after finish came %s", show(again))
			}
			return
		}
	}
	g.Fatalf("not finished after %d more events with %d trials", limit, g.settings.MaxTrials)
}

func (g *game) request() search.Action {
	before := g.snapshot()
	ended, trusts := g.method.Ended(), g.method.Trusts()
	// A twin is not asked whether it has ended: it goes on differently where that changes a state.
	if g.twin == nil && !bytes.Equal(before, g.snapshot()) {
		g.Fatal("the question whether it has ended, or what it trusts, changed the state")
	}
	if g.twin != nil && !slices.Equal(trusts, g.twin.Trusts()) {
		g.Fatalf("it trusts %+v, and its twin %+v", trusts, g.twin.Trusts())
	}
	actions := g.handle(search.Event{Kind: search.Request})
	if len(actions) != 1 {
		g.Fatalf("a request was answered with %d actions", len(actions))
	}
	if ended != (actions[0].Kind == search.Finish) {
		g.Fatalf("it said that it has ended: %t; the request was answered with %s", ended, show(actions))
	}
	g.referee.judge(actions[0])
	if kind := actions[0].Kind; kind == search.Wait || kind == search.Finish {
		// The study does not log them, so a replay does not see them.
		if !bytes.Equal(before, g.snapshot()) {
			g.Fatalf("%s changed the state", kind)
		}
	}
	return actions[0]
}

// end lets a trial that is out be measured or fail.
func (g *game) end(number int) {
	e := search.Event{Kind: search.Failed, Trial: number, Rung: g.referee.at(number).rung}
	if rapid.IntRange(0, 4).Draw(g.T, "outcome") > 0 {
		e.Kind = search.Measured
		for range g.settings.Maximize {
			e.Values = append(e.Values, anyValue(g.T))
		}
		// Most outcomes are feasible, or nothing would ever be compared.
		e.Violation = trial.Float(rapid.SampledFrom([]float64{0, 0, 0, 0, 0, 0.1, 0.1, 2.5, math.Inf(1)}).Draw(g.T, "violation"))
	}
	if actions := g.handle(e); len(actions) != 0 {
		g.Fatalf("%s was answered with %s", e.Kind, show(actions))
	}
	g.referee.observe(e)
}

// enqueue wants a configuration tried of which parts may be missing. It is
// refused only when there is no trial left for it.
func (g *game) enqueue() {
	if g.referee.finished {
		return // the study is over, so nobody can
	}
	e := search.Event{Kind: search.Enqueued, Configuration: anyPart(g.T, g.settings.Space)}
	if !g.referee.full() {
		if actions := g.handle(e); len(actions) != 0 {
			g.Fatalf("%s was answered with %s", e.Kind, show(actions))
		}
		g.referee.enqueue(wish{Configuration: e.Configuration})
		return
	}
	before := g.snapshot()
	if _, err := g.method.Handle(e); !problem.Is(err, problem.Conflict) {
		g.Fatalf("%s was not refused as a conflict, though all trials are taken: %v", show(e), err)
	}
	if !bytes.Equal(before, g.snapshot()) {
		g.Fatal("an event that was refused changed the state")
	}
}

// train lets a trial report its epochs, as far as it gets, and then end.
func (g *game) train(number int) {
	if g.settings.EarlyStopping != nil {
		for range rapid.IntRange(0, 3).Draw(g.T, "reports") {
			g.report(number)
			if g.referee.at(number).state != out {
				return
			}
		}
	}
	g.end(number)
}

// report sends an intermediate value of a trial that is out: of any epoch, in
// any order, now and then twice.
func (g *game) report(number int) {
	at := g.referee.at(number).rung
	epochs := g.settings.Rungs[at].Budget.Epochs
	if epochs < 2 {
		return
	}
	e := search.Event{
		Kind: search.Reported, Trial: number, Rung: at,
		Epoch: rapid.IntRange(1, epochs-1).Draw(g.T, "epoch"), Values: []trial.Float{anyValue(g.T)},
	}
	before, known := g.snapshot(), g.referee.knows(e)
	actions := g.handle(e)
	if known && (len(actions) > 0 || !bytes.Equal(before, g.snapshot())) {
		g.Fatalf("a second report of epoch %d changed the state or was answered with %s", e.Epoch, show(actions))
	}
	g.referee.report(e, actions)
}

// anyValue is often equal to another one, and sometimes not a number.
func anyValue(t *rapid.T) trial.Float {
	return trial.Float(rapid.OneOf(
		rapid.SampledFrom([]float64{0, 0.25, 0.5, 0.5, 0.75, math.NaN(), math.Inf(1), math.Inf(-1)}),
		rapid.Float64Range(-1, 1),
	).Draw(t, "value"))
}

func (g *game) handle(e search.Event) []search.Action {
	actions, err := g.method.Handle(e)
	if err != nil {
		g.Fatalf("%s: %v", show(e), err)
	}
	if g.twin != nil {
		also, err := g.twin.Handle(e)
		if err != nil || show(also) != show(actions) {
			g.Fatalf("%s: %s here, %s (%v) there", show(e), show(actions), show(also), err)
		}
	}
	return actions
}

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// impossible sends events that cannot happen now.
func (g *game) impossible() {
	n := len(g.referee.trials) + len(g.referee.repeats)
	value := make([]trial.Float, len(g.settings.Maximize))
	events := []search.Event{
		{Kind: "paused"},
		{Kind: search.Measured, Trial: n, Values: value},
		{Kind: search.Failed, Trial: n},
		{Kind: search.Failed, Trial: -1},
		{Kind: search.Prior, Prior: []search.Observation{{Params: space.Configuration{"no such parameter": space.Int(1)}, Values: value}}},
		{Kind: search.Prior, Prior: []search.Observation{{Values: value}}},
		{Kind: search.Prior, Prior: make([]search.Observation, search.MaxPrior+1)},
		{Kind: search.Enqueued, Configuration: space.Configuration{"no such parameter": space.Int(1)}},
		{Kind: search.Enqueued, Configuration: space.Configuration{g.settings.Space.Parameters[0].Name: space.String("no such value")}},
		{Kind: search.Reported, Trial: n, Epoch: 1, Values: value},
	}
	for number := range n {
		t := g.referee.at(number)
		if t.state != out {
			events = append(events,
				search.Event{Kind: search.Measured, Trial: number, Rung: t.rung, Values: value},
				search.Event{Kind: search.Failed, Trial: number, Rung: t.rung},
				search.Event{Kind: search.Reported, Trial: number, Rung: t.rung, Epoch: 1, Values: value})
			continue
		}
		if epochs := g.settings.Rungs[t.rung].Budget.Epochs; g.settings.EarlyStopping == nil || epochs < 2 {
			events = append(events, search.Event{Kind: search.Reported, Trial: number, Rung: t.rung, Epoch: epochs - 1, Values: value})
		} else {
			events = append(events,
				search.Event{Kind: search.Reported, Trial: number, Rung: t.rung, Values: value},
				search.Event{Kind: search.Reported, Trial: number, Rung: t.rung, Epoch: epochs, Values: value},
				search.Event{Kind: search.Reported, Trial: number, Rung: t.rung + 1, Epoch: 1, Values: value},
				search.Event{Kind: search.Reported, Trial: number, Rung: t.rung, Epoch: 1})
		}
		events = append(events,
			search.Event{Kind: search.Measured, Trial: number, Rung: t.rung + 1, Values: value},
			search.Event{Kind: search.Failed, Trial: number, Rung: t.rung - 1},
			search.Event{Kind: search.Measured, Trial: number, Rung: t.rung},
			search.Event{Kind: search.Measured, Trial: number, Rung: t.rung, Values: value, Violation: -1},
			search.Event{Kind: search.Measured, Trial: number, Rung: t.rung, Values: value, Violation: trial.Float(math.NaN())})
	}
	before := g.snapshot()
	for _, e := range events {
		if actions, err := g.method.Handle(e); err == nil || len(actions) > 0 {
			g.Fatalf("%s was accepted: %s", show(e), show(actions))
		}
	}
	for _, broken := range []string{``, `{`, `{}`, `[]`, `{"version":-1}`} {
		if err := g.method.Restore(json.RawMessage(broken)); err == nil {
			g.Fatalf("the snapshot %q was accepted", broken)
		}
	}
	if !bytes.Equal(before, g.snapshot()) {
		g.Fatal("an event that was refused changed the state")
	}
}
