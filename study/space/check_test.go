package space_test

import (
	"errors"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/space"
)

// sgd is a good configuration of the network space.
func sgd() space.Configuration {
	return space.Configuration{
		"lr": space.Float(0.01), "optimizer": space.String("sgd"), "momentum": space.Float(0.6),
		"batch": space.Int(128), "layers": space.Int(2),
	}
}

func TestCheckAndPart(t *testing.T) {
	cases := []struct {
		name     string
		change   func(space.Configuration)
		check    string // paths of Check's faults
		repaired bool   // whether Part of it fits
	}{
		{"good", func(space.Configuration) {}, "", true},
		{"an int for a float", func(c space.Configuration) { c["momentum"] = space.Int(0) }, "params.momentum", true},
		{"a float for an int", func(c space.Configuration) { c["layers"] = space.Float(2) }, "params.layers", true},
		{"a float for a listed int", func(c space.Configuration) { c["batch"] = space.Float(64) }, "params.batch", true},
		{"noise beside a step", func(c space.Configuration) { c["momentum"] = space.Float(0.30000000000000004) }, "params.momentum", true},
		{"between steps", func(c space.Configuration) { c["momentum"] = space.Float(0.4) }, "params.momentum", false},
		{"below low", func(c space.Configuration) { c["lr"] = space.Float(1e-5) }, "params.lr", false},
		{"a fraction for an int", func(c space.Configuration) { c["layers"] = space.Float(2.5) }, "params.layers", false},
		{"text for a number", func(c space.Configuration) { c["lr"] = space.String("0.01") }, "params.lr", false},
		{"an unlisted choice", func(c space.Configuration) { c["optimizer"] = space.String("lamb") }, "params.optimizer params.momentum", false},
		{"missing", func(c space.Configuration) { delete(c, "lr") }, "params.lr", false},
		{"unknown", func(c space.Configuration) { c["l_r"] = space.Float(1) }, "params.l_r", false},
		{"present though its condition fails", func(c space.Configuration) { c["optimizer"], c["batch"] = space.String("adam"), space.Int(32) }, "params.momentum", true},
		{"forbidden", func(c space.Configuration) { c["optimizer"] = space.String("adam"); delete(c, "momentum") }, "params", false},
		{"two faults", func(c space.Configuration) { delete(c, "lr"); c["layers"] = space.Int(9) }, "params.lr params.layers", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, configuration := network(), sgd()
			c.change(configuration)
			if got := paths(s.Check(configuration)); got != c.check {
				t.Errorf("Check found faults at %q, want %q", got, c.check)
			}
			part, err := s.Part(configuration)
			if repaired := err == nil && len(s.Check(part)) == 0; repaired != c.repaired {
				t.Errorf("its part is %v, %v: %v", part, err, s.Check(part))
			}
		})
	}
}

// What nothing is like is not guessed.
func TestTheParameterThatWasMeantIsNamed(t *testing.T) {
	for name, want := range map[string]string{"l_r": "is not a parameter of the search space: did you mean lr?", "zz": "is not a parameter of the search space"} {
		given := sgd()
		given[name] = space.Int(1)
		if faults := network().Check(given); len(faults) != 1 || faults[0].Message != want {
			t.Errorf("%s: %v", name, faults)
		}
		_, err := network().Part(space.Configuration{name: space.Int(1)})
		var invalid *problem.Error
		if !errors.As(err, &invalid) || len(invalid.Fields) != 1 || invalid.Fields[0].Message != want {
			t.Errorf("part of %s: %v", name, err)
		}
	}
}

func TestActiveFollowsChainsOfConditions(t *testing.T) {
	s := space.Space{Parameters: []space.Parameter{
		training(space.Parameter{Name: "a", Type: space.CategoricalType, Values: texts("x", "y")}),
		training(space.Parameter{Name: "b", Type: space.IntType, Low: 1, High: 3, When: []space.Condition{{Parameter: "a", In: texts("x")}}}),
		training(space.Parameter{Name: "c", Type: space.IntType, Low: 1, High: 3, When: []space.Condition{{Parameter: "b", In: []space.Value{space.Int(2)}}}}),
	}}
	for _, c := range []struct {
		a    string
		b    int64
		want int
	}{{"x", 2, 3}, {"x", 1, 2}, {"y", 2, 1}} {
		got := s.Active(space.Configuration{"a": space.String(c.a), "b": space.Int(c.b), "c": space.Int(1)})
		if len(got) != c.want {
			t.Errorf("a=%s b=%d: active %v, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestKeyTellsConfigurationsApart(t *testing.T) {
	a, b := sgd(), sgd()
	if a.Key() != b.Key() {
		t.Error("equal configurations have different keys")
	}
	b["momentum"] = space.Float(0.3)
	if a.Key() == b.Key() {
		t.Error("different configurations share a key")
	}
}
