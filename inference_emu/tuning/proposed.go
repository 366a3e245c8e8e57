package tuning

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// maxRepeated bounds how often in a row a method may propose what was tried.
const maxRepeated = 1_000

// proposed lets a method of study/search propose. It has one rung, as an
// inference is tried out at one price only; its parameters are the places on the
// axes, in order.
func proposed(l *ledger, axes []axis, name string) error {
	method, err := search.New(search.Settings{
		Method: name, Seed: l.settings.Seed, Space: places(axes),
		Rungs: []budget.Rung{{Budget: budget.Budget{Epochs: 1, DataFraction: 1}}},
		Eta:   3, Promotion: budget.NoPromotion, RandomFraction: 1.0 / 3, GridPoints: 2, Maximize: []bool{false},
	})
	if err != nil {
		return err
	}
	for repeated := 0; repeated < maxRepeated && float64(len(l.tried)) < l.settings.Space.Size(); repeated++ {
		actions, err := method.Handle(search.Event{Kind: search.Request})
		if err != nil {
			return err
		}
		action := actions[0]
		if action.Kind != search.Create {
			return nil
		}
		before := len(l.tried)
		e, ok := l.try(at(axes, pointOf(axes, action.Configuration)))
		if !ok {
			return nil
		}
		if len(l.tried) > before {
			repeated = -1
		}
		outcome := search.Event{Kind: search.Measured, Trial: action.Trial, Rung: action.Rung, Values: []trial.Float{trial.Float(e.score)}, Violation: trial.Float(e.Violation)}
		if e.Failure != "" {
			outcome = search.Event{Kind: search.Failed, Trial: action.Trial, Rung: action.Rung}
		}
		if _, err := method.Handle(outcome); err != nil {
			return err
		}
	}
	return nil
}

// places is the space of the places on the axes. An axis of one value is nothing
// to search.
func places(axes []axis) space.Space {
	var s space.Space
	for _, a := range axes {
		if len(a.values) < 2 {
			continue
		}
		p := space.Parameter{Name: a.name, Kind: space.Inference, Type: space.OrdinalType}
		for i := range a.values {
			p.Values = append(p.Values, space.Int(int64(i)))
		}
		s.Parameters = append(s.Parameters, p)
	}
	return s
}

func pointOf(axes []axis, c space.Configuration) []int {
	point := make([]int, len(axes))
	for i, a := range axes {
		if place, ok := c[a.name].Number(); ok {
			point[i] = int(place)
		}
	}
	return point
}
