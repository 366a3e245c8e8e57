package space_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/study/space"
)

// anyParameter draws a valid parameter without conditions.
func anyParameter(t *rapid.T, name string) space.Parameter {
	p := space.Parameter{Name: name, Kind: space.Training}
	p.Type = rapid.SampledFrom([]space.Type{space.FloatType, space.IntType, space.CategoricalType, space.OrdinalType}).Draw(t, "type")
	switch p.Type {
	case space.FloatType:
		p.Log = rapid.Bool().Draw(t, "log")
		p.Low = rapid.Float64Range(-100, 100).Draw(t, "low")
		if p.Log {
			p.Low = rapid.Float64Range(1e-6, 10).Draw(t, "low")
		}
		p.High = p.Low + rapid.Float64Range(0.001, 1000).Draw(t, "width")
		if rapid.Bool().Draw(t, "stepped") {
			p.Step = (p.High - p.Low) / rapid.Float64Range(1, 50).Draw(t, "steps")
		}
	case space.IntType:
		p.Log = rapid.Bool().Draw(t, "log")
		p.Low = float64(rapid.IntRange(-50, 50).Draw(t, "low"))
		if p.Log {
			p.Low = float64(rapid.IntRange(1, 50).Draw(t, "low"))
		}
		p.High = p.Low + float64(rapid.IntRange(1, 2000).Draw(t, "width"))
		p.Step = float64(rapid.IntRange(0, int(p.High-p.Low)).Draw(t, "step"))
	default:
		for i := range rapid.IntRange(1, 6).Draw(t, "values") {
			p.Values = append(p.Values, space.String(fmt.Sprintf("v%d", i)))
		}
	}
	return p
}

// anySpace draws a valid space with conditions and, often, a forbidden
// combination.
func anySpace() *rapid.Generator[space.Space] {
	return rapid.Custom(func(t *rapid.T) space.Space {
		var s space.Space
		choices := func() (space.Condition, bool) {
			for _, p := range s.Parameters {
				if len(p.Values) > 1 && rapid.Bool().Draw(t, "here") {
					return space.Condition{Parameter: p.Name, In: p.Values[:1]}, true
				}
			}
			return space.Condition{}, false
		}
		for i := range rapid.IntRange(1, 6).Draw(t, "parameters") {
			p := anyParameter(t, fmt.Sprintf("p%d", i))
			if condition, ok := choices(); ok {
				p.When = []space.Condition{condition}
			}
			s.Parameters = append(s.Parameters, p)
		}
		if condition, ok := choices(); ok {
			s.Forbidden = []space.Forbidden{{condition}}
		}
		return s
	})
}

func training(p space.Parameter) space.Parameter {
	p.Kind = space.Training
	return p
}

func texts(values ...string) []space.Value {
	var all []space.Value
	for _, v := range values {
		all = append(all, space.String(v))
	}
	return all
}

// network is a small realistic space: momentum exists only for sgd, and the
// largest batch is forbidden with adam.
func network() space.Space {
	return space.Space{
		Parameters: []space.Parameter{
			training(space.Parameter{Name: "lr", Type: space.FloatType, Low: 1e-4, High: 1e-1, Log: true}),
			training(space.Parameter{Name: "optimizer", Type: space.CategoricalType, Values: texts("sgd", "adam")}),
			training(space.Parameter{Name: "momentum", Type: space.FloatType, Low: 0, High: 0.9, Step: 0.3,
				When: []space.Condition{{Parameter: "optimizer", In: texts("sgd")}}}),
			training(space.Parameter{Name: "batch", Type: space.OrdinalType, Values: []space.Value{space.Int(32), space.Int(64), space.Int(128)}}),
			training(space.Parameter{Name: "layers", Type: space.IntType, Low: 1, High: 4}),
		},
		Forbidden: []space.Forbidden{{
			{Parameter: "optimizer", In: texts("adam")},
			{Parameter: "batch", In: []space.Value{space.Int(128)}},
		}},
	}
}
