package search_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/searchtest"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// five is a population of five on three rungs.
func five(trials int) search.Settings {
	settings := sha(3, 2, trials)
	settings.Promotion, settings.Population, settings.Brackets = budget.Population, 5, 0
	return settings
}

// everybody starts the five and measures them at rung 0, the last one best.
const everybody = `
	request -> create 0 at 0
	request -> create 1 at 0
	request -> create 2 at 0
	request -> create 3 at 0
	request -> create 4 at 0
	0 measured 0.1 at 0
	1 measured 0.2 at 0
	2 measured 0.3 at 0
	3 measured 0.4 at 0
	4 measured 0.5 at 0`

func TestPopulationStories(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name     string
		settings search.Settings
		story    string
	}{
		{"the best go on, and the worst is replaced", five(20), everybody + `
			request -> promote 4 at 1
			request -> promote 3 at 1
			request -> promote 2 at 1
			request -> promote 1 at 1
			request -> create 5 at 1
			request -> wait
			4 measured 0.6 at 1
			request -> promote 4 at 2
			request -> wait`},
		{"the lowest rung comes first", five(20), everybody + `
			request -> promote 4 at 1
			4 measured 0.6 at 1
			request -> promote 3 at 1
			request -> promote 2 at 1
			request -> promote 1 at 1
			request -> create 5 at 1
			request -> promote 4 at 2`},
		{"with few outcomes nobody is replaced", five(20), `
			request -> create 0 at 0
			request -> create 1 at 0
			request -> create 2 at 0
			request -> create 3 at 0
			request -> create 4 at 0
			0 measured 0.1 at 0
			1 measured 0.2 at 0
			request -> promote 1 at 1
			request -> promote 0 at 1
			request -> wait`},
		{"a failure is replaced when there is somebody to continue", five(20), `
			request -> create 0 at 0
			request -> create 1 at 0
			request -> create 2 at 0
			request -> create 3 at 0
			request -> create 4 at 0
			0 failed at 0
			1 measured NaN at 0
			2 measured 0.5 at 0
			3 measured 0.5 at 0
			request -> promote 2 at 1
			request -> promote 3 at 1
			request -> wait
			4 measured 0.1 at 0
			request -> promote 4 at 1
			request -> create 5 at 1
			request -> create 6 at 1
			request -> wait`},
		{"when the trials are used up losers go on, but no diverged ones", five(5), everybody + `
			request -> promote 4 at 1
			request -> promote 3 at 1
			request -> promote 2 at 1
			request -> promote 1 at 1
			request -> promote 0 at 1
			0 measured NaN at 1
			1 failed at 1
			2 failed at 1
			3 failed at 1
			4 measured 0.6 at 1
			request -> promote 4 at 2
			4 measured 0.7 at 2
			request -> finish`},
		{"who is replaced at the end is not taken to the top", five(6), everybody + `
			request -> promote 4 at 1
			request -> promote 3 at 1
			request -> promote 2 at 1
			request -> promote 1 at 1
			request -> create 5 at 1
			1 failed at 1
			2 failed at 1
			3 failed at 1
			4 failed at 1
			5 failed at 1
			request -> finish`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tell(t, start(t, c.settings), c.story)
		})
	}
}

func TestAChildHasItsParentsParametersChangedALittle(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(200) {
		settings := five(20)
		settings.Seed = seed
		settings.Space = space.Space{Parameters: []space.Parameter{
			{Name: "rate", Kind: space.Training, Type: space.FloatType, Low: 1e-6, High: 1e3, Log: true},
			{Name: "batch", Kind: space.Training, Type: space.OrdinalType, Values: []space.Value{space.Int(1), space.Int(2), space.Int(4), space.Int(8), space.Int(16)}},
			{Name: "optimizer", Kind: space.Training, Type: space.CategoricalType, Values: []space.Value{space.Int(0), space.Int(1), space.Int(2), space.Int(3)}},
			{Name: "width", Kind: space.Model, Type: space.FloatType, Low: 0.1, High: 0.7, Log: true},
		}}
		method := start(t, settings)
		configurations := map[int]space.Configuration{}
		request := func() search.Action {
			actions, err := method.Handle(search.Event{Kind: search.Request})
			if err != nil {
				t.Fatal(err)
			}
			if actions[0].Kind == search.Create {
				configurations[actions[0].Trial] = actions[0].Configuration
			}
			return actions[0]
		}
		for range 5 {
			request()
		}
		for number := range 5 {
			tell(t, method, fmt.Sprintf("%d measured 0.%d at 0", number, number+1))
		}
		for range 4 {
			request()
		}
		action := request()
		if action.Parent == nil || *action.Parent != 4 || action.Replaces == nil || *action.Replaces != 0 || action.Origin != "population" {
			t.Fatalf("%+v", action)
		}
		parent, child := configurations[4], action.Configuration
		if child["width"] != parent["width"] {
			t.Fatalf("the model's width went from %v to %v", parent["width"], child["width"])
		}
		before, _ := parent["rate"].Number()
		after, _ := child["rate"].Number()
		switch ratio := after / before; {
		case math.Abs(ratio-0.8) < 1e-6 || math.Abs(ratio-1.2) < 1e-6:
			seen["rate moved"]++
		default:
			seen["rate drawn"]++
		}
		steps := func(v space.Value) float64 { n, _ := v.Number(); return math.Log2(n) }
		if math.Abs(steps(parent["batch"])-steps(child["batch"])) > 1 {
			seen["batch drawn"]++
		}
		if parent["optimizer"] == child["optimizer"] {
			seen["optimizer kept"]++
		}
	}
	// A quarter is drawn anew; of these draws, half of the batches are further
	// than one step from before, and a quarter of the optimizers the same.
	for what, want := range map[string]int{"rate moved": 150, "rate drawn": 50, "batch drawn": 24, "optimizer kept": 162} {
		if got := seen[what]; math.Abs(float64(got-want)) > 30 {
			t.Errorf("%s: %d of 200, want about %d", what, got, want)
		}
	}
}

func TestPopulationsThatCannotBe(t *testing.T) {
	t.Parallel()
	scratch := searchtest.Ladder(3, 2)
	scratch[1].FromScratch = true
	model := line()
	model.Parameters[0].Kind = space.Model
	for _, c := range []struct {
		name   string
		change func(*search.Settings)
		want   string
	}{
		{"too few", func(s *search.Settings) { s.Population = 4 }, "search.population"},
		{"one rung", func(s *search.Settings) { s.Rungs = s.Rungs[:1] }, "search.promotion"},
		{"a rung from scratch", func(s *search.Settings) { s.Rungs = scratch }, "search.promotion"},
		{"a budget in seconds", func(s *search.Settings) { s.Rungs[0].Budget.Seconds = 10 }, "search.promotion"},
		{"brackets", func(s *search.Settings) { s.Brackets = 1 }, "search.brackets"},
		{"nothing to change", func(s *search.Settings) { s.Space = model }, "search.promotion"},
		{"of another promotion", func(s *search.Settings) { s.Promotion = budget.Asynchronous }, "search.population"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			settings := five(20)
			c.change(&settings)
			_, err := search.New(settings)
			var told *problem.Error
			if !errors.As(err, &told) || len(told.Fields) != 1 || told.Fields[0].Path != c.want {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestSnapshotsOfPopulationsThatCannotBe(t *testing.T) {
	t.Parallel()
	method := start(t, five(20))
	tell(t, method, everybody+`
		request -> promote 4 at 1
		request -> promote 3 at 1
		request -> promote 2 at 1
		request -> promote 1 at 1
		request -> create 5 at 1`)
	state, err := method.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range [][2]string{
		{`"parent":4`, `"parent":5`}, {`"parent":4`, `"parent":-1`}, {`,"parent":4`, ``},
		{`"status":"measured","results":[[0.1]],"replaced":true`, `"status":"out","replaced":true`},
	} {
		text := strings.Replace(string(state), broken[0], broken[1], 1)
		if text == string(state) {
			t.Fatalf("the snapshot has no %s: %s", broken[0], state)
		}
		if err := start(t, five(20)).Restore(json.RawMessage(text)); !problem.Is(err, problem.Invalid) {
			t.Errorf("%s was read: %v", broken[1], err)
		}
	}
	again := start(t, five(20))
	if err := again.Restore(state); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Handle(search.Event{Kind: search.Measured, Trial: 5, Rung: 1, Values: []trial.Float{0.9}}); err != nil {
		t.Fatal(err)
	}
	tell(t, again, "request -> promote 5 at 2\nrequest -> wait")
}
