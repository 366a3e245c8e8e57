package search_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/searchtest"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// expecting is a study of the bowl, whose best point is at (0.8, 0.3), that expects it
// elsewhere.
func expecting(method string, x, y float64, sure space.Sureness) search.Settings {
	settings := bowlSettings(method)
	for i, value := range []float64{x, y} {
		settings.Space.Parameters[i].Expect = &space.Expectation{Value: space.Float(value), Sure: sure}
	}
	return settings
}

// What is expected is tried first; where nothing is expected, the method chooses.
func TestWhatIsExpectedIsTriedFirst(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"bohb", "tpe", "cma-es", "gp", "random", "sobol"} {
		settings := expecting(method, 0.8, 0.3, space.High)
		settings.Space.Parameters[1].Expect = nil
		created := played(t, settings, nil, 1)
		if first := created[0]; first.Configuration["x"] != space.Float(0.8) || first.Origin != "expected" {
			t.Errorf("%s begins with %+v", method, first)
		}
		n, _ := of(created, "expected")
		if alone := method == "random" || method == "sobol"; alone && n != 1 {
			t.Errorf("%s made %d trials of what is expected: it would no longer be %s", method, n, method)
		} else if !alone && n < 6 {
			t.Errorf("%s made only %d trials of what is expected", method, n)
		}
		if method == "bohb" {
			early, _ := of(created[:30], "expected")
			if late := n - early; late >= early {
				t.Errorf("%d of the first 30 trials are expected ones, and %d of the last 30", early, late)
			}
		}
	}
}

// The promise of docs/search.md, whatever a study without a prior would cost.
func TestAWrongExpectationCostsFiveCheapTrials(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"bohb", "tpe", "cma-es", "gp", "random", "sobol"} {
		for _, workers := range []int{1, 8, 32} {
			for _, promotion := range []budget.Promotion{budget.Asynchronous, budget.Synchronous} {
				settings := expecting(method, 0, 1, space.High)
				settings.Promotion = promotion
				created := played(t, settings, nil, workers)
				if n, rung := of(created, "expected"); n < 1 || n > 5 || rung > 0 {
					t.Errorf("%s, %d workers, %s: a wrong expectation made %d trials, up to rung %d", method, workers, promotion, n, rung)
				}
				if last := created[len(created)-1]; !strings.Contains(last.Reason, "what is expected is not used, as it does not agree") {
					t.Errorf("%s, %d workers: the last trial's reason is %q", method, workers, last.Reason)
				}
			}
		}
	}
}

// A study without an expectation proposes what it did before there were any, and says
// nothing of them; the same study with one does not.
func TestNothingExpectedChangesNothing(t *testing.T) {
	t.Parallel()
	for _, method := range search.Names() {
		made := func(settings search.Settings) string { return fmt.Sprint(played(t, settings, nil, 3)) }
		settings := bowlSettings(method)
		without := made(settings)
		if strings.Contains(without, "what is expected") {
			t.Errorf("%s speaks of what is expected where nothing is", method)
		}
		if method != "grid" && made(expecting(method, 0.1, 0.1, space.Low)) == without {
			t.Errorf("%s proposes the same whatever is expected", method)
		}
	}
}

func TestTrustIsTold(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		x, y    float64
		verdict string
	}{{0.8, 0.3, "trusted after a test"}, {0, 1, "not trusted after a test"}} {
		settings := expecting("bohb", one.x, one.y, space.Medium)
		settings.Rungs = searchtest.Ladder(1, 3)
		method, err := search.New(settings)
		if err != nil {
			t.Fatal(err)
		}
		says := func(verdict string) {
			t.Helper()
			if told := method.Trusts(); len(told) != 1 || told[0].Verdict != verdict {
				t.Errorf("with (%v, %v) expected: %+v, want %s", one.x, one.y, told, verdict)
			}
		}
		says("not tested yet")
		for range 20 {
			a := handle(t, method, search.Event{Kind: search.Request})[0]
			handle(t, method, search.Event{Kind: search.Measured, Trial: a.Trial, Values: []trial.Float{trial.Float(bowl(a.Configuration))}})
		}
		says(one.verdict)
	}
}

// Conditions decide whether what is expected of a parameter plays a part, and a choice is
// expected as a number is.
func TestExpectationsOfEveryType(t *testing.T) {
	t.Parallel()
	settings := bowlSettings("bohb")
	sgd, adam := space.String("sgd"), space.String("adam")
	expect := func(v space.Value) *space.Expectation { return &space.Expectation{Value: v, Sure: space.High} }
	settings.Space = space.Space{Parameters: []space.Parameter{
		{Name: "rate", Kind: space.Training, Type: space.FloatType, Low: 1e-5, High: 1, Log: true, Expect: expect(space.Float(1e-3))},
		{Name: "layers", Kind: space.Model, Type: space.IntType, Low: 1, High: 9, Expect: expect(space.Float(3))},
		{Name: "batch", Kind: space.Training, Type: space.OrdinalType, Values: []space.Value{space.Int(32), space.Int(64), space.Int(128)}, Expect: expect(space.Int(64))},
		{Name: "optimizer", Kind: space.Training, Type: space.CategoricalType, Values: []space.Value{sgd, adam, space.String("none")}, Expect: expect(adam)},
		{Name: "momentum", Kind: space.Training, Type: space.FloatType, Low: 0, High: 1, Expect: expect(space.Float(0.9)), When: []space.Condition{{Parameter: "optimizer", In: []space.Value{sgd}}}},
	}}
	method, err := search.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	first := handle(t, method, search.Event{Kind: search.Request})[0]
	if want := `{"batch":64,"layers":3,"optimizer":"adam","rate":0.001}`; first.Configuration.Key() != want {
		t.Errorf("it begins with %s, want %s", first.Configuration.Key(), want)
	}
	settings.Space.Forbidden = []space.Forbidden{{{Parameter: "batch", In: []space.Value{space.Int(64)}}, {Parameter: "optimizer", In: []space.Value{adam}}}}
	if _, err := search.New(settings); !problem.Is(err, problem.Invalid) || !strings.Contains(fmt.Sprint(err.(*problem.Error).Fields), "forbidden together") {
		t.Errorf("expecting what is forbidden: %v", err)
	}
	if _, err := search.New(expecting("grid", 0.5, 0.5, space.Low)); !problem.Is(err, problem.Invalid) || !strings.Contains(fmt.Sprint(err.(*problem.Error).Fields), "must be left out with a grid") {
		t.Errorf("a grid: %v", err)
	}
}
