package searchtest

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/study/search"
)

func supplies(t *testing.T, made Subject) {
	t.Run("how many may start is known before", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			g := newGame(t, made, anySettings(t, made))
			for range rapid.IntRange(1, 4).Draw(t, "times") {
				g.shuffle(rapid.IntRange(0, 20).Draw(t, "steps"))
				g.supply()
			}
			g.finish()
		})
	})
}

// supply holds how many trials the method says that it could start against how many
// a copy of it does start. One that may run out of configurations guesses.
func (g *game) supply() {
	before := g.snapshot()
	said := g.method.Startable()
	if !bytes.Equal(before, g.snapshot()) {
		g.Fatal("to be asked how many trials may start changed the state")
	}
	other := g.fresh()
	if err := other.Restore(before); err != nil {
		g.Fatalf("restore: %v", err)
	}
	started, ended := 0, false
	for action := (search.Action{}); action.Kind != search.Wait && !ended; {
		actions, err := other.Handle(search.Event{Kind: search.Request})
		if err != nil {
			g.Fatalf("a request: %v", err)
		}
		switch action = actions[0]; action.Kind {
		case search.Create, search.Promote:
			started++
		case search.Finish:
			ended = true
		}
	}
	if ended && started == 0 {
		started = 1 // the request that ends it
	}
	if said != started && (!g.made.Ends || said == 0) {
		g.Fatalf("%d trials may start, it said; %d did", said, started)
	}
}
