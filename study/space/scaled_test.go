package space_test

import (
	"math"
	"testing"

	"github.com/tandem-tune/tandem/study/space"
)

func TestScaledMovesByAFactor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		parameter space.Parameter
		from      space.Value
		factor    float64
		want      space.Value
	}{
		{"a rate on its logarithm", space.Parameter{Type: space.FloatType, Low: 1e-4, High: 1, Log: true}, space.Float(0.01), 1.2, space.Float(0.012)},
		{"a float", space.Parameter{Type: space.FloatType, High: 1}, space.Float(0.5), 0.8, space.Float(0.4)},
		{"the bound is the end", space.Parameter{Type: space.FloatType, High: 1}, space.Float(0.9), 1.2, space.Float(1)},
		{"the lower bound is the end", space.Parameter{Type: space.FloatType, Low: 0.5, High: 1}, space.Float(0.55), 0.8, space.Float(0.5)},
		{"below 0 it goes down", space.Parameter{Type: space.FloatType, Low: -2, High: 1}, space.Float(-1), 1.2, space.Float(-1.2)},
		{"0 moves by a fifth of the range", space.Parameter{Type: space.FloatType, High: 10}, space.Float(0), 1.2, space.Float(2)},
		{"0 moves down too", space.Parameter{Type: space.FloatType, Low: -5, High: 5}, space.Float(0), 0.8, space.Float(-2)},
		{"an int is rounded", space.Parameter{Type: space.IntType, Low: 1, High: 100}, space.Int(13), 1.2, space.Int(16)},
		{"a small int moves by one", space.Parameter{Type: space.IntType, Low: 1, High: 100}, space.Int(2), 1.2, space.Int(3)},
		{"a small int moves down by one", space.Parameter{Type: space.IntType, Low: 1, High: 100, Log: true}, space.Int(2), 0.8, space.Int(1)},
		{"steps", space.Parameter{Type: space.FloatType, High: 0.9, Step: 0.1}, space.Float(0.5), 1.2, space.Float(0.6)},
		{"an int at its end stays", space.Parameter{Type: space.IntType, Low: 1, High: 3}, space.Int(3), 1.2, space.Int(3)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.parameter.Name, c.parameter.Kind = "p", space.Training
			cube := space.Space{Parameters: []space.Parameter{c.parameter}}.Cube()
			u := cube.Encode(space.Configuration{"p": c.from})[0]
			got, _ := cube.Decode([]float64{cube.Scaled(0, u, c.factor)})["p"].Number()
			if want, _ := c.want.Number(); math.Abs(got-want) > 1e-9 {
				t.Errorf("%v times %v is %v, want %v", c.from, c.factor, got, c.want)
			}
		})
	}
}
