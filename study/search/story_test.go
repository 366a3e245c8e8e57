package search_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/searchtest"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// line is a space of one float.
func line() space.Space {
	return space.Space{Parameters: []space.Parameter{{Name: "x", Kind: space.Training, Type: space.FloatType, Low: 0, High: 1}}}
}

// sha is plain asynchronous successive halving: random configurations, one
// bracket, larger is better.
func sha(rungs, eta, trials int) search.Settings {
	return search.Settings{
		Method: "random", Seed: 1, Space: line(), Rungs: searchtest.Ladder(rungs, eta), Eta: eta,
		Brackets: 1, MaxTrials: trials, Maximize: []bool{true},
	}
}

func start(t rapid.TB, settings search.Settings) *search.Method {
	t.Helper()
	method, err := search.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	return method
}

// tell plays a story, one event a line:
//
//	request -> create 0 at 0
//	0 measured 0.5 at 0
//	1 failed at 0
func tell(t *testing.T, method *search.Method, story string) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(story), "\n") {
		line = strings.TrimSpace(line)
		if want, ok := strings.CutPrefix(line, "request -> "); ok {
			actions, err := method.Handle(search.Event{Kind: search.Request})
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if got := say(actions[0]); got != want {
				t.Fatalf("%s: got %s (%s)", line, got, actions[0].Reason)
			}
			continue
		}
		if _, err := method.Handle(parse(t, line)); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

func say(a search.Action) string {
	switch a.Kind {
	case search.Create, search.Promote:
		return fmt.Sprintf("%s %d at %d", a.Kind, a.Trial, a.Rung)
	}
	return string(a.Kind)
}

func parse(t *testing.T, line string) search.Event {
	t.Helper()
	words := strings.Fields(line)
	number := func(word string) int {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return n
	}
	e := search.Event{Kind: search.EventKind(words[1]), Trial: number(words[0]), Rung: number(words[len(words)-1])}
	if e.Kind == search.Measured {
		value, err := strconv.ParseFloat(words[2], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		e.Values = []trial.Float{trial.Float(value)}
	}
	return e
}

func TestStories(t *testing.T) {
	minimize := func(s search.Settings) search.Settings {
		s.Maximize = []bool{false}
		return s
	}
	cases := []struct {
		name     string
		settings search.Settings
		story    string
	}{
		{"one in eta goes up as soon as it has earned it", sha(3, 3, 4), `
			request -> create 0 at 0
			request -> create 1 at 0
			0 measured 0.5 at 0
			1 measured 0.7 at 0
			request -> create 2 at 0
			2 measured 0.6 at 0
			request -> promote 1 at 1
			request -> create 3 at 0
			1 measured 0.8 at 1
			3 measured 0.9 at 0
			request -> promote 3 at 1
			request -> wait
			3 measured 0.7 at 1
			request -> promote 1 at 2
			request -> wait
			1 measured 0.9 at 2
			request -> finish
			request -> finish`},
		{"a loss is minimized", minimize(sha(2, 2, 2)), `
			request -> create 0 at 0
			request -> create 1 at 0
			0 measured 2.5 at 0
			1 measured 0.5 at 0
			request -> promote 1 at 1
			1 measured 0.4 at 1
			request -> finish`},
		{"failures count as beaten", sha(2, 3, 3), `
			request -> create 0 at 0
			request -> create 1 at 0
			request -> create 2 at 0
			0 failed at 0
			1 measured 0.1 at 0
			2 failed at 0
			request -> promote 1 at 1
			1 measured 0.2 at 1
			request -> finish`},
		{"the older of two equals goes up", sha(2, 2, 2), `
			request -> create 0 at 0
			request -> create 1 at 0
			1 measured 0.5 at 0
			0 measured 0.5 at 0
			request -> promote 0 at 1
			0 measured 0.5 at 1
			request -> finish`},
		{"what diverged does not go up", sha(2, 2, 4), `
			request -> create 0 at 0
			request -> create 1 at 0
			0 measured NaN at 0
			1 measured -Inf at 0
			request -> create 2 at 0
			request -> create 3 at 0
			2 failed at 0
			3 measured -5 at 0
			request -> promote 3 at 1
			3 measured -4 at 1
			request -> finish`},
		{"a loss of minus infinity does not hide that NaN diverged", minimize(sha(2, 2, 2)), `
			request -> create 0 at 0
			request -> create 1 at 0
			0 measured NaN at 0
			1 measured +Inf at 0
			request -> finish`},
		{"the winner is trained in full at the end", sha(3, 3, 2), `
			request -> create 0 at 0
			request -> create 1 at 0
			0 measured 0.5 at 0
			request -> wait
			1 measured 0.4 at 0
			request -> promote 0 at 1
			request -> wait
			0 measured 0.6 at 1
			request -> promote 0 at 2
			0 measured 0.7 at 2
			request -> finish`},
		{"if the winner fails, the next best is trained in full", sha(3, 3, 2), `
			request -> create 0 at 0
			request -> create 1 at 0
			0 measured 0.5 at 0
			1 measured 0.4 at 0
			request -> promote 0 at 1
			0 measured 0.6 at 1
			request -> promote 0 at 2
			0 failed at 2
			request -> promote 1 at 1
			1 measured 0.5 at 1
			request -> promote 1 at 2
			1 measured NaN at 2
			request -> finish`},
		{"everything fails", sha(3, 3, 2), `
			request -> create 0 at 0
			0 failed at 0
			request -> create 1 at 0
			1 failed at 0
			request -> finish`},
		{"one rung is a plain search", sha(1, 3, 2), `
			request -> create 0 at 0
			request -> create 1 at 0
			request -> wait
			1 measured 1 at 0
			request -> wait
			0 failed at 0
			request -> finish`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { tell(t, start(t, c.settings), c.story) })
	}
}

// With 5 rungs and eta 3 Hyperband's brackets hold 81, 34, 15, 8 and 5
// configurations (Li et al. 2018, table 1); 143 trials are one whole round.
func TestBracketsFollowHyperband(t *testing.T) {
	cases := []struct {
		rungs, eta, brackets int
		want                 []int
	}{
		{5, 3, 0, []int{81, 34, 15, 8, 5}},
		{5, 3, 2, []int{81, 34, 0, 0, 0}},
		{4, 2, 0, []int{8, 6, 4, 4}},
		{1, 3, 0, []int{1}},
	}
	for _, c := range cases {
		settings := sha(c.rungs, c.eta, 0)
		settings.Brackets = c.brackets
		method := start(t, settings)
		total, got := 0, make([]int, c.rungs)
		for _, n := range c.want {
			total += n
		}
		for range total {
			actions, err := method.Handle(search.Event{Kind: search.Request})
			if err != nil {
				t.Fatal(err)
			}
			got[actions[0].Rung]++
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%+v: trials started %v", c, got)
		}
	}
}

func TestNewNamesEveryFault(t *testing.T) {
	settings := search.Settings{Method: "annealing", RandomFraction: math.NaN(), Brackets: -1, MaxTrials: -1}
	_, err := search.New(settings)
	if !problem.Is(err, problem.Invalid) {
		t.Fatalf("got %v", err)
	}
	for _, path := range []string{"search.method", "budget:", "budget.eta", "search.brackets", "stop.trials", "search.random_fraction", "objective", "space:"} {
		if !strings.Contains(err.Error(), path) {
			t.Errorf("%s is not named in:\n%v", path, err)
		}
	}
	large := sha(1, 2, 1)
	large.Method, large.GridPoints = "grid", 1_000_000
	if _, err := search.New(large); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "search.grid_points") {
		t.Errorf("a grid without bound: %v", err)
	}
}

func TestGridVisitsEveryPointOnce(t *testing.T) {
	settings := sha(1, 2, 0)
	settings.Method, settings.GridPoints = "grid", 5
	method := start(t, settings)
	for number := range 5 {
		tell(t, method, fmt.Sprintf("request -> create %d at 0", number))
	}
	tell(t, method, "request -> wait")
	state, err := method.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []string{"0.0", "0.25", "0.5", "0.75", "1.0"} {
		if !strings.Contains(string(state), fmt.Sprintf(`"x":%s}`, x)) {
			t.Errorf("the grid left out %s: %s", x, state)
		}
	}
}

func TestSnapshotsOfOthersAreRefused(t *testing.T) {
	wide := sha(2, 2, 4)
	wide.Space.Parameters[0].High = 100
	method := start(t, wide)
	tell(t, method, "request -> create 0 at 0")
	state, err := method.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	grid := sha(2, 2, 4)
	grid.Method, grid.GridPoints = "grid", 3
	for name, other := range map[string]search.Settings{"another method": grid, "another space": sha(2, 2, 4)} {
		if err := start(t, other).Restore(state); !problem.Is(err, problem.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
