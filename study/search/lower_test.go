package search_test

import (
	"container/heap"
	"math"
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/searchtest"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// late is what came of a study of many seeds: the median of the winners' losses,
// and of the second half of the model's proposals the share that failed and the
// mean loss of the others.
type late struct{ final, failed, loss float64 }

// learned runs the method on seeds. A configuration fails, at once and at the
// cheapest rung, where the loss is infinite.
func learned(t *testing.T, settings search.Settings, seeds uint64, loss func(space.Configuration) float64) late {
	t.Helper()
	var finals []float64
	proposed, failed, sum := 0.0, 0.0, 0.0
	for seed := range seeds {
		settings.Seed = seed + 1
		method := start(t, settings)
		var running queue
		params := map[int]space.Configuration{}
		best := outcome{rung: -1}
		for now, free := 0.0, 4; ; {
			for ; free > 0; free-- {
				actions, err := method.Handle(search.Event{Kind: search.Request})
				if err != nil {
					t.Fatal(err)
				}
				a := actions[0]
				if a.Kind == search.Wait || a.Kind == search.Finish {
					break
				}
				if a.Kind == search.Create {
					params[a.Trial] = a.Configuration
					if 2*a.Trial >= settings.MaxTrials && a.Origin == "model" {
						proposed++
						if l := loss(a.Configuration); math.IsInf(l, 1) {
							failed++
						} else {
							sum += l
						}
					}
				}
				heap.Push(&running, outcome{at: now + math.Pow(3, float64(a.Rung)), number: a.Trial, rung: a.Rung, value: loss(params[a.Trial])})
			}
			if running.Len() == 0 {
				break
			}
			o := heap.Pop(&running).(outcome)
			now, free = o.at, free+1
			e := search.Event{Kind: search.Measured, Trial: o.number, Rung: o.rung}
			if math.IsInf(o.value, 1) {
				e.Kind = search.Failed
			} else {
				// Cheap looks see the truth through waves.
				seen := o.value + 0.1*math.Pow(3, -float64(o.rung))*wave(number(params[o.number], "x0"))
				e.Values = []trial.Float{trial.Float(-seen)}
				if o.rung > best.rung || o.rung == best.rung && o.value < best.value {
					best = o
				}
			}
			if _, err := method.Handle(e); err != nil {
				t.Fatal(err)
			}
		}
		finals = append(finals, best.value)
	}
	slices.Sort(finals)
	return late{final: finals[len(finals)/2], failed: failed / proposed, loss: sum / (proposed - failed)}
}

// cliff is a bowl whose deepest place is beside a third of the space that fails.
func cliff() (space.Space, func(space.Configuration) float64) {
	return numbers(4), func(c space.Configuration) float64 {
		loss := 0.0
		for i, at := range []float64{0.66, 0.3, 0.5, 0.7} {
			x := number(c, []string{"x0", "x1", "x2", "x3"}[i]) - at
			loss += x * x
		}
		if number(c, "x0") > 0.67 {
			return math.Inf(1)
		}
		return loss
	}
}

// branches has a choice of three, each with parameters of its own.
func branches() (space.Space, func(space.Configuration) float64) {
	s := numbers(2)
	names := []string{"a", "b", "c"}
	choice := space.Parameter{Name: "choice", Kind: space.Model, Type: space.CategoricalType}
	for _, name := range names {
		choice.Values = append(choice.Values, space.String(name))
	}
	s.Parameters = append(s.Parameters, choice)
	for _, name := range names {
		on := []space.Condition{{Parameter: "choice", In: []space.Value{space.String(name)}}}
		for _, number := range []string{"1", "2"} {
			s.Parameters = append(s.Parameters, space.Parameter{Name: name + number, Kind: space.Model, Type: space.FloatType, Low: 0, High: 1, When: on})
		}
	}
	return s, func(c space.Configuration) float64 {
		x, y := number(c, "x0")-0.3, number(c, "x1")-0.6
		loss := x*x + y*y
		name, _ := c["choice"].Text()
		u, v := number(c, name+"1"), number(c, name+"2")
		switch name {
		case "a":
			loss += (u-0.8)*(u-0.8) + (v-0.2)*(v-0.2)
		case "b":
			loss += 0.05 + (u-0.2)*(u-0.2) + (v-0.5)*(v-0.5)
		default:
			loss += 0.3 + (u-0.5)*(u-0.5)
		}
		return loss
	}
}

// What failed, and what was bad, at lower rungs is learned from: the model of a
// rung sees only what survived up to it, and else sends trials there again.
func TestModelsLearnFromLowerRungs(t *testing.T) {
	for name, c := range map[string]struct {
		of          func() (space.Space, func(space.Configuration) float64)
		method      string
		final, late float64 // at most these shares of what is without
	}{
		"bohb beside failures": {cliff, "bohb", 0.5, 0.5},
		"tpe beside failures":  {cliff, "tpe", 0.5, 0.7},
		"tpe under conditions": {branches, "tpe", 0.5, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			s, loss := c.of()
			settings := search.Settings{
				Method: c.method, Space: s, Rungs: searchtest.Ladder(4, 3), Eta: 3, Brackets: 1, MaxTrials: 200, RandomFraction: 1. / 3, Maximize: []bool{true},
			}
			without := learned(t, settings, 40, loss)
			settings.Learning = search.LowerRungs
			with := learned(t, settings, 40, loss)
			t.Logf("one rung: final loss %.4f, late proposals: %.0f%% fail, the others lose %.3f", without.final, 100*without.failed, without.loss)
			t.Logf("lower rungs: %.4f, %.0f%%, %.3f", with.final, 100*with.failed, with.loss)
			if with.final > c.final*without.final {
				t.Errorf("the final loss %v is more than %v of %v", with.final, c.final, without.final)
			}
			if with.failed > c.late*without.failed || with.loss > c.late*without.loss {
				t.Errorf("of late proposals %v fail and the others lose %v: more than %v of %v and %v", with.failed, with.loss, c.late, without.failed, without.loss)
			}
		})
	}
}
