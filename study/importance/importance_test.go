package importance_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/study/importance"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
)

const file = `
name: example
objective: {metric: loss, direction: minimize}
space:
  much:    {type: float, low: 1e-5, high: 1, log: true}
  little:  {type: float, low: 0, high: 1}
  nothing: {type: int, low: 1, high: 9}
  choice:  {values: [a, b, c]}
  order:   {type: ordinal, values: [1, 2, 4, 8]}
  only_a:  {type: float, low: 0, high: 1, when: {choice: a}}
`

func spaceOf(t interface{ Fatal(...any) }, text string) space.Space {
	def, err := studyfile.Parse([]byte(text), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	return def.Space
}

// sample draws configurations evenly and scores each.
func sample(t *testing.T, s space.Space, count int, seed uint64, score func(number func(string) float64, c space.Configuration) float64) []importance.Observation {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	var list []importance.Observation
	for range count {
		c, err := s.Cube().Sample(random)
		if err != nil {
			t.Fatal(err)
		}
		number := func(name string) float64 {
			value, _ := c[name].Number()
			return value
		}
		list = append(list, importance.Observation{Configuration: c, Score: score(number, c)})
	}
	return list
}

func byName(result importance.Result) map[string]importance.Parameter {
	named := map[string]importance.Parameter{}
	for _, p := range result.Parameters {
		named[p.Name] = p
	}
	return named
}

func TestWhatMattersComesFirst(t *testing.T) {
	s := spaceOf(t, file)
	result := importance.Of(s, sample(t, s, 400, 1, func(number func(string) float64, _ space.Configuration) float64 {
		distance := math.Log10(number("much")) + 2 // best at 0.01
		return -distance*distance - 0.5*number("little")
	}))
	if result.Trials != 400 || result.Best != 40 {
		t.Errorf("%d trials, %d of them good; want 400 and 40", result.Trials, result.Best)
	}
	named := byName(result)
	if first := result.Parameters[0]; first.Name != "much" || first.Share < 0.6 || first.Chance > 0.002 {
		t.Errorf("the first is %+v, want much", first)
	}
	if p := named["little"]; p.Chance > 0.05 {
		t.Errorf("%+v: it does matter", p)
	}
	sum := 0.0
	for _, p := range result.Parameters {
		sum += p.Share
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("the shares sum to %g", sum)
	}
}

func TestACategoryCanMatter(t *testing.T) {
	s := spaceOf(t, file)
	noise := rand.New(rand.NewPCG(1, 9))
	result := importance.Of(s, sample(t, s, 200, 2, func(_ func(string) float64, c space.Configuration) float64 {
		if text, _ := c["choice"].Text(); text == "b" {
			return 1 + noise.Float64()
		}
		return noise.Float64()
	}))
	if first := result.Parameters[0]; first.Name != "choice" || first.Chance > 0.002 {
		t.Errorf("the first is %+v, want choice", first)
	}
}

// TestChanceIsHonest: of parameters that do nothing, about one in twenty looks
// as if it did at the level of 0.05, and not more.
func TestChanceIsHonest(t *testing.T) {
	s := spaceOf(t, file)
	below, all := 0, 0
	for seed := range uint64(40) {
		noise := rand.New(rand.NewPCG(seed, 3))
		result := importance.Of(s, sample(t, s, 60, seed, func(func(string) float64, space.Configuration) float64 { return noise.Float64() }))
		for _, p := range result.Parameters {
			all++
			if p.Chance <= 0.05 {
				below++
			}
		}
	}
	// 240 parameters: 12 are expected, and more than 24 come up once in 2,000.
	if below > 24 {
		t.Errorf("%d of %d parameters that do nothing look important", below, all)
	}
}

func TestTooFewTrialsHaveNoAnswer(t *testing.T) {
	s := spaceOf(t, file)
	one := func(func(string) float64, space.Configuration) float64 { return 1 }
	if result := importance.Of(s, sample(t, s, importance.Least-1, 1, one)); len(result.Parameters) != 0 || result.Trials != importance.Least-1 {
		t.Errorf("%+v", result)
	}
	if result := importance.Of(s, sample(t, s, importance.Least, 1, one)); len(result.Parameters) != 6 {
		t.Errorf("%+v", result)
	}
}

// TestAnything: whatever the trials are, the answer is finite, complete and
// repeatable, and NaN is never good.
func TestAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spaceOf(t, file)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		scores := rapid.SliceOfN(rapid.OneOf(rapid.Float64(), rapid.Just(math.NaN()), rapid.Just(math.Inf(1)), rapid.Just(0.0)), 10, 40).Draw(t, "scores")
		var list []importance.Observation
		for _, score := range scores {
			c, err := s.Cube().Sample(random)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, importance.Observation{Configuration: c, Score: score})
		}
		first, again := importance.Of(s, list), importance.Of(s, list)
		if len(first.Parameters) != 6 {
			t.Fatalf("%d parameters", len(first.Parameters))
		}
		for i, p := range first.Parameters {
			if p != again.Parameters[i] {
				t.Fatalf("%+v, and then %+v", p, again.Parameters[i])
			}
			if !(p.Share >= 0 && p.Share <= 1 && p.Chance > 0 && p.Chance <= 1) {
				t.Fatalf("%+v", p)
			}
		}
	})
}

func BenchmarkOf(b *testing.B) {
	s := spaceOf(b, file)
	random := rand.New(rand.NewPCG(1, 1))
	var list []importance.Observation
	for range 1000 {
		c, err := s.Cube().Sample(random)
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, importance.Observation{Configuration: c, Score: random.Float64()})
	}
	for b.Loop() {
		importance.Of(s, list)
	}
}
