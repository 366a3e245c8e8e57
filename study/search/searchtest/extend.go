package searchtest

import (
	"bytes"
	"slices"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search"
)

// goOn lets a search do more, wherever it is, also behind its end.
func (g *game) goOn() {
	g.extend()
	g.retry()
	g.standing()
}

// extend moves the bound on trials. It is refused where trials are there already that it
// would not allow, or where the best are trained again.
func (g *game) extend() {
	r := g.referee
	taken := len(r.trials) + len(r.queue)
	for _, few := range []int{-1, 1, taken - 1} {
		if few < taken && few != 0 {
			g.refuse(search.Event{Kind: search.Extended, MaxTrials: few})
		}
	}
	bound := max(taken, g.settings.MaxTrials+rapid.IntRange(-2, 4).Draw(g.T, "more trials"), 1)
	e := search.Event{Kind: search.Extended, MaxTrials: bound}
	if len(r.repeats) > 0 && bound != g.settings.MaxTrials {
		g.refuse(e)
		e.MaxTrials = g.settings.MaxTrials
	}
	if actions := g.handle(e); len(actions) != 0 {
		g.Fatalf("%s was answered with %s", e.Kind, show(actions))
	}
	g.settings.MaxTrials, r.settings.MaxTrials = e.MaxTrials, e.MaxTrials
	r.finished, r.exhausted = false, false
}

// retry has some of the failed trials tried again, as far as there is room for them.
func (g *game) retry() {
	left := g.method.Retryable()
	if !slices.Equal(left, g.referee.retryable) {
		g.Fatalf("the trials %v may be tried again, it says; want %v", left, g.referee.retryable)
	}
	for number := range len(g.referee.trials) + 1 {
		if !slices.Contains(left, number) && !g.referee.full() {
			g.refuse(search.Event{Kind: search.Enqueued, RetryOf: &number})
		}
	}
	for _, number := range left {
		if g.referee.full() || rapid.Bool().Draw(g.T, "not again") {
			continue
		}
		g.handle(search.Event{Kind: search.Enqueued, RetryOf: &number})
		g.referee.enqueue(wish{g.referee.trials[number].configuration, &number})
		g.referee.retryable = slices.DeleteFunc(slices.Clone(g.referee.retryable), func(one int) bool { return one == number })
	}
}

// refuse sends an event that cannot happen now.
func (g *game) refuse(e search.Event) {
	before := g.snapshot()
	if actions, err := g.method.Handle(e); !problem.Is(err, problem.Conflict) || len(actions) > 0 {
		g.Fatalf("%s was not refused as a conflict: %s, %v", show(e), show(actions), err)
	}
	if !bytes.Equal(before, g.snapshot()) {
		g.Fatal("an event that was refused changed the state")
	}
}

// standing compares what the method still counts on with what the referee saw.
func (g *game) standing() {
	method := g.method
	for number := range len(g.referee.trials) + len(g.referee.repeats) + 1 {
		expects, rests := false, false
		if number < len(g.referee.trials)+len(g.referee.repeats) {
			t := g.referee.at(number)
			expects = t.state == out
			rests = t.state == measured && number < len(g.referee.trials)
		}
		if method.Expects(number) != expects || method.Rests(number) != rests {
			g.Fatalf("of trial %d it expects an outcome: %t, and it rests: %t; want %t and %t", number, method.Expects(number), method.Rests(number), expects, rests)
		}
	}
}
