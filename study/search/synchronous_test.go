package search_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
)

// hyperband is Hyperband on rungs of 1, eta, eta² ... epochs.
func hyperband(rungs, eta, trials int) search.Settings {
	settings := sha(rungs, eta, trials)
	settings.Promotion, settings.Brackets = budget.Synchronous, 0
	return settings
}

func TestSynchronousStories(t *testing.T) {
	without := sha(2, 2, 2)
	without.Promotion, without.Brackets = budget.NoPromotion, 0
	grid := hyperband(2, 3, 0) // brackets of 3 and 2
	grid.Method, grid.GridPoints = "grid", 2
	for _, c := range []struct {
		name     string
		settings search.Settings
		story    string
	}{
		// Brackets of 2 and 2.
		{"who is free begins the next bracket", hyperband(2, 2, 5), `
			request -> create 0 at 0
			request -> create 1 at 0
			0 measured 0.9 at 0
			request -> create 2 at 1
			1 measured 0.1 at 0
			request -> promote 0 at 1
			request -> create 3 at 1
			request -> create 4 at 0
			4 measured 0.1 at 0
			request -> wait
			0 measured 0.9 at 1
			2 measured 0.9 at 1
			3 failed at 1
			request -> finish`},
		// Brackets of 4, 3 and 3: the older one is served first, and trials of
		// different brackets are not compared.
		{"each bracket has its own rungs", hyperband(3, 2, 7), `
			request -> create 0 at 0
			request -> create 1 at 0
			request -> create 2 at 0
			request -> create 3 at 0
			request -> create 4 at 1
			request -> create 5 at 1
			request -> create 6 at 1
			4 measured 0.9 at 1
			5 measured 0.8 at 1
			0 measured 0.1 at 0
			1 measured 0.2 at 0
			2 measured 0.3 at 0
			request -> wait
			6 measured 0.7 at 1
			3 failed at 0
			request -> promote 2 at 1
			request -> promote 1 at 1
			request -> promote 4 at 2
			request -> wait
			2 measured 0.3 at 1
			request -> wait
			1 measured 0.4 at 1
			request -> promote 1 at 2
			4 measured 1 at 2
			1 measured 1 at 2
			request -> finish`},
		{"failures are the worst, and the rest goes up", hyperband(3, 2, 4), `
			request -> create 0 at 0
			request -> create 1 at 0
			request -> create 2 at 0
			request -> create 3 at 0
			0 failed at 0
			1 measured NaN at 0
			2 failed at 0
			request -> wait
			3 measured 0.1 at 0
			request -> promote 3 at 1
			3 measured 0.1 at 1
			request -> promote 3 at 2
			3 failed at 2
			request -> finish`},
		{"the last bracket halves what it got", hyperband(3, 3, 4), `
			request -> create 0 at 0
			request -> create 1 at 0
			request -> create 2 at 0
			request -> create 3 at 0
			0 measured 0.1 at 0
			1 measured 0.2 at 0
			3 measured 0.4 at 0
			request -> wait
			2 measured 0.3 at 0
			request -> promote 3 at 1
			request -> wait
			3 measured 0.4 at 1
			request -> promote 3 at 2
			3 measured 0.4 at 2
			request -> finish`},
		{"a grid that is used up ends a bracket", grid, `
			request -> create 0 at 0
			request -> create 1 at 0
			1 measured 0.2 at 0
			request -> wait
			0 measured 0.1 at 0
			request -> promote 1 at 1
			1 measured 0.2 at 1
			request -> finish`},
		{"no promotion trains everything in full", without, `
			request -> create 0 at 1
			0 measured 0.5 at 1
			request -> create 1 at 1
			request -> wait
			1 failed at 1
			request -> finish`},
	} {
		t.Run(c.name, func(t *testing.T) { tell(t, start(t, c.settings), c.story) })
	}
}

// A trial that never comes back holds up its bracket and nothing else.
func TestALostTrialHoldsUpNobody(t *testing.T) {
	for _, name := range search.Names() {
		if name == "grid" {
			continue // it ends
		}
		t.Run(name, func(t *testing.T) {
			settings := hyperband(3, 3, 0)
			settings.Method = name
			method := start(t, settings)
			tell(t, method, "request -> create 0 at 0")
			tops := 0
			for range 160 {
				actions, err := method.Handle(search.Event{Kind: search.Request})
				if err != nil {
					t.Fatal(err)
				}
				a := actions[0]
				if a.Kind != search.Create && a.Kind != search.Promote {
					t.Fatalf("%s: %s", a.Kind, a.Reason)
				}
				if a.Rung == 2 {
					tops++
				}
				value := trial.Float(float64(a.Trial*7919%1009) / 1009)
				if _, err := method.Handle(search.Event{Kind: search.Measured, Trial: a.Trial, Rung: a.Rung, Values: []trial.Float{value}}); err != nil {
					t.Fatal(err)
				}
			}
			tell(t, method, "0 failed at 0")
			actions, err := method.Handle(search.Event{Kind: search.Request})
			if err != nil || actions[0].Kind != search.Promote || !strings.Contains(actions[0].Reason, "bracket 1,") {
				t.Errorf("%+v, %v: the first bracket does not go on", actions, err)
			}
			if tops < 20 {
				t.Errorf("only %d trainings at the top", tops)
			}
		})
	}
}

func TestSnapshotsKeepTheirPromotion(t *testing.T) {
	asynchronous := sha(2, 2, 4)
	method := start(t, asynchronous)
	tell(t, method, "request -> create 0 at 0")
	state, err := method.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := start(t, hyperband(2, 2, 4)).Restore(state); !problem.Is(err, problem.Invalid) {
		t.Errorf("an asynchronous snapshot in a synchronous search: %v", err)
	}
	// As a program wrote it that knew no other promotion.
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(state, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "promotion")
	old, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	asynchronous.Promotion = budget.Asynchronous
	again := start(t, asynchronous)
	if err := again.Restore(old); err != nil {
		t.Fatal(err)
	}
	if state2, err := again.Snapshot(); err != nil || string(state2) != string(state) {
		t.Errorf("%v:\n%s\n%s", err, state, state2)
	}
}

func TestSnapshotsOfImpossibleBracketsAreRefused(t *testing.T) {
	method := start(t, hyperband(2, 2, 4))
	tell(t, method, "request -> create 0 at 0")
	state, err := method.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{`"bracket":0`, `"bracket":2`, `"bracket":-1`, `"bracket":1000000000`} {
		broken := strings.Replace(string(state), `"bracket":1`, wrong, 1)
		if broken == string(state) {
			t.Fatal("the snapshot has no bracket")
		}
		if err := start(t, hyperband(2, 2, 4)).Restore([]byte(broken)); !problem.Is(err, problem.Invalid) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// A final promotion may bring a trial among the best of a rung that was done.
// What follows must not depend on whether the server was restarted meanwhile.
func TestAFinalPromotionOpensItsBracketAgain(t *testing.T) {
	settings := hyperband(3, 2, 4) // one bracket: 4, 2, 1
	method := start(t, settings)
	tell(t, method, `
		request -> create 0 at 0
		request -> create 1 at 0
		request -> create 2 at 0
		request -> create 3 at 0
		0 measured 0.4 at 0
		1 measured 0.3 at 0
		2 measured 0.2 at 0
		3 measured 0.1 at 0
		request -> promote 0 at 1
		request -> promote 1 at 1
		0 measured 0.4 at 1
		1 measured 0.3 at 1
		request -> promote 0 at 2
		0 failed at 2
		request -> promote 1 at 2
		1 failed at 2
		request -> promote 2 at 1
		request -> wait
		2 measured 0.9 at 1`)
	state, err := method.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	again := start(t, settings)
	if err := again.Restore(state); err != nil {
		t.Fatal(err)
	}
	here, err := method.Handle(search.Event{Kind: search.Request})
	if err != nil {
		t.Fatal(err)
	}
	there, err := again.Handle(search.Event{Kind: search.Request})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(here) != fmt.Sprint(there) || say(here[0]) != "promote 2 at 2" {
		t.Errorf("here %v\nthere %v", here, there)
	}
}
