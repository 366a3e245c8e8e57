package space_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/space"
)

// combinations are the grid's configurations, in the order of their index.
func combinations(g space.Grid) (list []space.Configuration) {
	for i := range g.Len() {
		if c, there := g.At(i); there {
			list = append(list, c)
		}
	}
	return list
}

func TestGridValues(t *testing.T) {
	cases := []struct {
		name   string
		p      space.Parameter
		points int
		want   string
	}{
		{"float", space.Parameter{Type: space.FloatType, Low: -1, High: 1}, 5, "-1 -0.5 0 0.5 1"},
		{"one point is the middle", space.Parameter{Type: space.FloatType, Low: 0, High: 1}, 1, "0.5"},
		{"log", space.Parameter{Type: space.FloatType, Low: 1, High: 4, Log: true}, 3, "1 2 4"},
		{"a small int is whole", space.Parameter{Type: space.IntType, Low: 1, High: 3}, 5, "1 2 3"},
		{"a large int is thinned", space.Parameter{Type: space.IntType, Low: 0, High: 100}, 3, "0 50 100"},
		{"no value twice on a log scale", space.Parameter{Type: space.IntType, Low: 1, High: 9, Log: true}, 8, "1 2 3 4 5 7 9"},
		{"step", space.Parameter{Type: space.FloatType, Low: 0, High: 1, Step: 0.4}, 9, "0 0.4 0.8"},
		{"ordinal", space.Parameter{Type: space.OrdinalType, Values: texts("s", "m", "l")}, 2, "s m l"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.p.Name = "x"
			g, err := space.Space{Parameters: []space.Parameter{c.p}}.Grid(c.points)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, configuration := range combinations(g) {
				got = append(got, configuration["x"].String())
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// With sgd 4 momenta × 3 batches × 4 layers, with adam 2 batches × 4 layers:
// the absent momentum is not counted four times, and batch 128 is forbidden.
func TestGridLeavesOutAbsentAndForbidden(t *testing.T) {
	g, err := network().Grid(4)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	n := 0
	for _, c := range combinations(g) {
		n++
		seen[c.Key()] = true
		if faults := network().Check(c); len(faults) > 0 {
			t.Errorf("%v: %v", c, faults)
		}
	}
	if want := 4 * (4*3*4 + 2*4); n != want || len(seen) != want {
		t.Errorf("%d configurations, %d different, want %d", n, len(seen), want)
	}
	if _, ok := g.At(g.Len()); ok {
		t.Error("an index beyond the end has a configuration")
	}
}

func TestGridIsBounded(t *testing.T) {
	if _, err := network().Grid(10_000); !problem.Is(err, problem.Invalid) {
		t.Errorf("got %v", err)
	}
}

func TestGridHasNoDuplicates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpace().Draw(t, "space")
		g, err := s.Grid(rapid.IntRange(1, 4).Draw(t, "points"))
		if err != nil {
			t.Skip("too large")
		}
		seen := map[string]bool{}
		for _, c := range combinations(g) {
			if faults := s.Check(c); len(faults) > 0 {
				t.Fatal(faults)
			}
			if seen[c.Key()] {
				t.Fatalf("%v twice", c)
			}
			seen[c.Key()] = true
		}
		if g.Count() != len(seen) {
			t.Fatalf("it counts %d of %d", g.Count(), len(seen))
		}
	})
}
