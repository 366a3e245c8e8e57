package space_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/space"
)

func TestSamplesPassCheckAndEncodeInverts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpace().Draw(t, "space")
		if len(s.Validate("space")) > 0 {
			t.Skip("forbids everything")
		}
		cube := s.Cube()
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range 20 {
			c, err := s.Cube().Sample(r)
			if err != nil {
				t.Fatal(err)
			}
			if faults := s.Check(c); len(faults) > 0 {
				t.Fatalf("%v: %v", c, faults)
			}
			if len(s.Active(c)) != len(c) {
				t.Fatalf("active %v, sampled %v", s.Active(c), c)
			}
			sameConfiguration(t, s, c, cube.Decode(cube.Encode(c)))
		}
	})
}

// sameConfiguration allows a difference in the last bits of continuous floats.
func sameConfiguration(t *rapid.T, s space.Space, a, b space.Configuration) {
	if len(a) != len(b) {
		t.Fatalf("%v came back as %v", a, b)
	}
	for name, v := range a {
		p, _ := s.Parameter(name)
		if p.Type == space.FloatType && p.Step == 0 {
			x, _ := v.Number()
			y, _ := b[name].Number()
			if math.Abs(x-y) <= 1e-12*max(1, math.Abs(x), math.Abs(p.High)) {
				continue
			}
		}
		if b[name] != v {
			t.Fatalf("%s: %v came back as %v", name, v, b[name])
		}
	}
}

func TestAnyPointDecodesToAGoodConfiguration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpace().Draw(t, "space")
		s.Forbidden = nil
		point := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1e-300, 0.25, 0.5, 0.75, math.Nextafter(1, 0), 1}), len(s.Parameters), len(s.Parameters)).Draw(t, "point")
		cube := s.Cube()
		cube.Mask(point)
		if faults := s.Check(cube.Decode(point)); len(faults) > 0 {
			t.Fatal(faults)
		}
	})
}

// A share holds what decodes to one value, and no more.
func TestShareIsWhatDecodesAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyParameter(t, "x")
		cube := space.Space{Parameters: []space.Parameter{p}}.Cube()
		at := func(u float64) space.Value { return cube.Decode([]float64{u})["x"] }
		u := rapid.Float64Range(0, 1).Draw(t, "u")
		low, high, stepped := cube.Share(0, u)
		if want := p.Type != space.FloatType || p.Step > 0; stepped != want {
			t.Fatalf("stepped is %v", stepped)
		}
		if !stepped {
			return
		}
		hair := (high - low) * 1e-6
		if u < low-hair || u > high+hair || at(low+hair) != at(u) || at(high-hair) != at(u) {
			t.Fatalf("%v to %v is not the share of %v at %v", low, high, at(u), u)
		}
		if low > 0 && at(low-hair) == at(u) || high < 1 && at(high+hair) == at(u) {
			t.Fatalf("%v to %v is not the whole share of %v", low, high, at(u))
		}
	})
}

// Every value of a number with a lattice owns a share of the unit interval.
func TestSharesOfTheUnitInterval(t *testing.T) {
	one := func(p space.Parameter) space.Space {
		p.Name = "x"
		return space.Space{Parameters: []space.Parameter{training(p)}}
	}
	cases := []struct {
		name  string
		space space.Space
		want  map[string]float64
	}{
		{"int", one(space.Parameter{Type: space.IntType, Low: 3, High: 6}), map[string]float64{"3": .25, "4": .25, "5": .25, "6": .25}},
		{"int with a step that misses high", one(space.Parameter{Type: space.IntType, Low: 0, High: 5, Step: 2}), map[string]float64{"0": 1. / 3, "2": 1. / 3, "4": 1. / 3}},
		{"float with a step", one(space.Parameter{Type: space.FloatType, Low: 0.1, High: 0.3, Step: 0.1}), map[string]float64{"0.1": 1. / 3, "0.2": 1. / 3, "0.3": 1. / 3}},
		{"int on a log scale", one(space.Parameter{Type: space.IntType, Low: 1, High: 4, Step: 3, Log: true}), map[string]float64{"1": .5, "4": .5}},
		{"ordinal", one(space.Parameter{Type: space.OrdinalType, Values: texts("s", "m", "l", "xl")}), map[string]float64{"s": .25, "m": .25, "l": .25, "xl": .25}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			const n = 12_000
			shares := map[string]float64{}
			cube := c.space.Cube()
			for i := range n {
				shares[cube.Decode([]float64{(float64(i) + 0.5) / n})["x"].String()] += 1. / n
			}
			for value, want := range c.want {
				if math.Abs(shares[value]-want) > 0.001 {
					t.Errorf("%s has %.4f, want %.4f", value, shares[value], want)
				}
			}
			if len(shares) != len(c.want) {
				t.Errorf("values %v", shares)
			}
		})
	}
}

func TestLogScaleSpreadsOverTheLogarithm(t *testing.T) {
	s := space.Space{Parameters: []space.Parameter{training(space.Parameter{Name: "x", Type: space.FloatType, Low: 1e-4, High: 1, Log: true})}}
	for u, want := range map[float64]float64{0: 1e-4, 0.25: 1e-3, 0.5: 1e-2, 1: 1} {
		got, _ := s.Cube().Decode([]float64{u})["x"].Number()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%v decodes to %v, want %v", u, got, want)
		}
	}
}

func TestSampleGivesUpOnAForbiddenSpace(t *testing.T) {
	s := network()
	s.Forbidden = []space.Forbidden{{{Parameter: "optimizer", In: texts("sgd", "adam")}}}
	_, err := s.Cube().Sample(rand.New(rand.NewPCG(1, 2)))
	if !problem.Is(err, problem.Exhausted) {
		t.Errorf("got %v", err)
	}
}

func TestSampleRepeatsWithItsSeed(t *testing.T) {
	a, b := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(1, 2))
	for range 100 {
		x, _ := network().Cube().Sample(a)
		y, _ := network().Cube().Sample(b)
		if x.Key() != y.Key() {
			t.Fatalf("%v and %v", x, y)
		}
	}
}

func BenchmarkSample(b *testing.B) {
	cube, r := network().Cube(), rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		if _, err := cube.Sample(r); err != nil {
			b.Fatal(err)
		}
	}
}
