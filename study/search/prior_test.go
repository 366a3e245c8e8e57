package search_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/searchtest"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// bowl is best at (0.8, 0.3), and bowlSettings a study of it.
func bowl(c space.Configuration) float64 {
	x, _ := c["x"].Number()
	y, _ := c["y"].Number()
	return -(x-0.8)*(x-0.8) - (y-0.3)*(y-0.3)
}

func bowlSettings(method string) search.Settings {
	number := func(name string) space.Parameter {
		return space.Parameter{Name: name, Kind: space.Training, Type: space.FloatType, Low: 0, High: 1}
	}
	return search.Settings{
		Method: method, Seed: 3, Space: space.Space{Parameters: []space.Parameter{number("x"), number("y")}},
		Rungs: searchtest.Ladder(3, 3), Eta: 3, MaxTrials: 60, RandomFraction: 1. / 3, GridPoints: 9,
		Maximize: []bool{true}, Promotion: budget.Asynchronous,
	}
}

// known are results of random configurations, as the value says.
func known(source string, n int, value func(space.Configuration) float64) []search.Observation {
	s := bowlSettings("random").Space
	r := rand.New(rand.NewPCG(9, 9))
	list := make([]search.Observation, n)
	for i := range list {
		c, err := s.Cube().Sample(r)
		if err != nil {
			panic(err)
		}
		list[i] = search.Observation{Params: c, Values: []trial.Float{trial.Float(value(c))}, Source: source}
	}
	return list
}

// played is a study that was told the prior and run to its end by workers that
// all ask before any of them answers.
func played(t *testing.T, settings search.Settings, prior []search.Observation, workers int) []search.Action {
	t.Helper()
	method, err := search.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	if len(prior) > 0 {
		handle(t, method, search.Event{Kind: search.Prior, Prior: prior})
	}
	var created, out []search.Action
	for {
		action := search.Action{Kind: search.Wait}
		if len(out) < workers {
			action = handle(t, method, search.Event{Kind: search.Request})[0]
		}
		switch action.Kind {
		case search.Finish:
			return created
		case search.Create:
			created = append(created, action)
			fallthrough
		case search.Promote:
			out = append(out, action)
		case search.Wait:
			done := out[0]
			out = out[1:]
			value := bowl(created[done.Trial].Configuration)
			handle(t, method, search.Event{Kind: search.Measured, Trial: done.Trial, Rung: done.Rung, Values: []trial.Float{trial.Float(value)}})
		}
	}
}

func handle(t *testing.T, method *search.Method, e search.Event) []search.Action {
	t.Helper()
	actions, err := method.Handle(e)
	if err != nil {
		t.Fatal(err)
	}
	return actions
}

// of counts the trials of the origin, and tells the highest rung they started at.
func of(created []search.Action, origin string) (n, rung int) {
	for _, a := range created {
		if a.Origin == origin {
			n, rung = n+1, max(rung, a.Rung)
		}
	}
	return n, rung
}

func inverse(c space.Configuration) float64 { return -bowl(c) }

// TestWrongPriorCostsTwoCheapTrials is the promise of docs/search.md.
func TestWrongPriorCostsTwoCheapTrials(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"bohb", "tpe", "cma-es", "random", "sobol", "grid"} {
		for _, workers := range []int{1, 8, 32} {
			for _, promotion := range []budget.Promotion{budget.Asynchronous, budget.Synchronous} {
				settings := bowlSettings(method)
				settings.Promotion = promotion
				created := played(t, settings, known("elsewhere", 80, inverse), workers)
				if n, rung := of(created, "prior"); n > 2 || rung > 0 {
					t.Errorf("%s, %d workers, %s: a wrong prior made %d trials, up to rung %d", method, workers, promotion, n, rung)
				}
				if last := created[len(created)-1]; !strings.Contains(last.Reason, "results of elsewhere are not used") {
					t.Errorf("%s: the last trial's reason is %q", method, last.Reason)
				}
			}
		}
	}
}

func TestGoodPriorIsUsed(t *testing.T) {
	t.Parallel()
	prior := known("elsewhere", 80, bowl)
	best := prior[0]
	for _, o := range prior {
		if o.Values[0] > best.Values[0] {
			best = o
		}
	}
	for method, least := range map[string]int{"bohb": 6, "tpe": 6, "random": 3, "sobol": 3} {
		created := played(t, bowlSettings(method), prior, 1)
		n, _ := of(created, "prior")
		if created[0].Configuration.Key() != best.Params.Key() || created[0].Origin != "prior" {
			t.Errorf("%s begins with %+v, and the best elsewhere is %v", method, created[0], best.Params)
		}
		if n < least || least == 3 && n > 3 {
			t.Errorf("%s: a good prior made %d trials, want %d", method, n, least)
		}
		if method == "bohb" {
			fades(t, created)
		}
	}
}

// fades checks that what was measured elsewhere is used less and less.
func fades(t *testing.T, created []search.Action) {
	t.Helper()
	early, _ := of(created[:30], "prior")
	late, _ := of(created[30:], "prior")
	if late >= early {
		t.Errorf("%d of the first 30 trials come from elsewhere, and %d of the last 30", early, late)
	}
}

func TestSourcesAreTestedByThemselves(t *testing.T) {
	t.Parallel()
	prior := append(known("right", 80, bowl), known("wrong", 80, inverse)...)
	created := played(t, bowlSettings("bohb"), prior, 4)
	right, wrong := 0, 0
	for _, a := range created {
		if a.Origin == "prior" && strings.Contains(a.Reason, " of right") {
			right++
		}
		if a.Origin == "prior" && strings.Contains(a.Reason, " of wrong") {
			wrong++
		}
	}
	if right < 8 || wrong > 1 {
		t.Errorf("%d trials come from the right source, %d from the wrong one", right, wrong)
	}
}

// Results at a small budget are not mixed with those at a large one: here they
// say the opposite.
func TestLargestBudgetWithEnoughResultsCounts(t *testing.T) {
	t.Parallel()
	prior := known("elsewhere", 80, bowl)
	for i, o := range known("elsewhere", 200, inverse) {
		o.Cost = float64(1 + i%2)
		prior = append(prior, o)
	}
	if n, _ := of(played(t, bowlSettings("bohb"), prior, 1), "prior"); n < 6 {
		t.Errorf("only %d trials come from the prior", n)
	}
}

func TestPriorWithGapsAndDivergedResults(t *testing.T) {
	t.Parallel()
	prior := known("elsewhere", 60, bowl)
	for i := range prior {
		switch i % 5 {
		case 0:
			delete(prior[i].Params, "y")
		case 1:
			prior[i].Values[0] = trial.Float([]float64{0, math.Inf(-1), math.Inf(1), math.NaN()}[i%4])
		}
	}
	played(t, bowlSettings("bohb"), prior, 3)
	for i := range prior {
		prior[i].Values[0] = trial.Float(math.NaN()) // nothing to learn from
	}
	if n, _ := of(played(t, bowlSettings("bohb"), prior, 3), "prior"); n > 0 {
		t.Errorf("%d trials come from results that all diverged", n)
	}
}

func TestPriorComesFirst(t *testing.T) {
	t.Parallel()
	method, err := search.New(bowlSettings("bohb"))
	if err != nil {
		t.Fatal(err)
	}
	empty, _ := method.Snapshot()
	if strings.Contains(string(empty), "prior") {
		t.Errorf("the snapshot of a search without a prior is %s", empty)
	}
	handle(t, method, search.Event{Kind: search.Request})
	if _, err := method.Handle(search.Event{Kind: search.Prior, Prior: known("late", 3, bowl)}); !problem.Is(err, problem.Conflict) {
		t.Errorf("a prior behind the first trial: %v", err)
	}
}

func TestDamagedSnapshotsOfPriorsAreRefused(t *testing.T) {
	t.Parallel()
	method, err := search.New(bowlSettings("bohb"))
	if err != nil {
		t.Fatal(err)
	}
	handle(t, method, search.Event{Kind: search.Prior, Prior: known("elsewhere", 20, bowl)})
	state, err := method.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(map[string]any){
		"a suggestion of nowhere": func(s map[string]any) { s["best"].([]any)[0].(map[string]any)["source"] = "nowhere" },
		"a suggestion outside": func(s map[string]any) {
			s["best"].([]any)[0].(map[string]any)["params"] = map[string]any{"x": 7.5, "y": 0.5}
		},
		"a result outside":        func(s map[string]any) { s["prior"].([]any)[0].(map[string]any)["params"] = map[string]any{"x": 7.5} },
		"a result without values": func(s map[string]any) { s["prior"].([]any)[0].(map[string]any)["values"] = []any{} },
	} {
		var s map[string]any
		if err := json.Unmarshal(state, &s); err != nil {
			t.Fatal(err)
		}
		change(s)
		text, _ := json.Marshal(s)
		if err := method.Restore(text); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if err := method.Restore(state); err != nil {
		t.Error(err)
	}
}
