package space_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/study/space"
)

// TestCompletedPartsFit takes parts of configurations away and completes them.
func TestCompletedPartsFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anySpace().Draw(t, "space")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		whole, err := s.Cube().Sample(r)
		if err != nil {
			t.Skip("nearly everything is forbidden")
		}
		part := make(space.Configuration)
		for name, v := range whole {
			if rapid.Bool().Draw(t, name) {
				part[name] = v
			}
		}
		complete, err := s.Cube().Complete(part, r)
		if err != nil {
			t.Fatalf("complete %v of %v: %v", part, whole, err)
		}
		if faults := s.Check(complete); len(faults) > 0 {
			t.Fatalf("%v became %v: %v", part, complete, faults)
		}
		for name, v := range complete {
			if given, ok := part[name]; ok && given != v {
				t.Fatalf("%s was %v and is %v", name, given, v)
			}
		}
		again, err := s.Cube().Complete(whole, nil) // draws nothing
		if err != nil || again.Key() != whole.Key() {
			t.Fatalf("%v became %v, %v", whole, again, err)
		}
		if known, err := s.Part(part); err != nil || len(known) > len(part) {
			t.Fatalf("the part of %v is %v, %v", part, known, err)
		}
	})
}

func TestWrittenValues(t *testing.T) {
	t.Parallel()
	listed := space.Parameter{Type: space.CategoricalType, Values: []space.Value{space.String("32"), space.Bool(true), space.Float(0.5)}}
	for _, c := range []struct {
		p    space.Parameter
		text string
		want space.Value
	}{
		{listed, "32", space.String("32")},
		{listed, "true", space.Bool(true)},
		{listed, "0.50", space.Float(0.5)},
		{space.Parameter{}, "32", space.Int(32)},
		{space.Parameter{}, "1e-3", space.Float(0.001)},
		{space.Parameter{}, "NaN", space.String("NaN")},
		{space.Parameter{}, "False", space.Bool(false)},
		{space.Parameter{}, "relu", space.String("relu")},
	} {
		if got := c.p.Written(c.text); got != c.want {
			t.Errorf("%q is %#v, want %#v", c.text, got, c.want)
		}
	}
}
