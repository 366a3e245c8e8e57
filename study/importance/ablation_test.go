package importance_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/study/importance"
	"github.com/tandem-tune/tandem/study/space"
)

const forbiddingFile = `
name: example
objective: {metric: loss, direction: minimize}
space:
  choice: {values: [a, b, c]}
  other:  {values: [a, b, c]}
  count:  {type: int, low: 1, high: 4}
  rate:   {type: float, low: 1e-5, high: 1, log: true}
  only_a: {type: float, low: 0, high: 1, when: {choice: a}}
  deep:   {values: [1, 2, 3], when: {choice: a, other: [a, b]}}
  deeper: {type: float, low: 0, high: 1, when: {deep: [1, 2]}}
forbidden:
  - {choice: b, other: c}
  - {choice: c, count: [2, 3]}
`

// checkPath checks what holds for every path.
// Sums are as exact as the largest score it was grown from lets them be.
func checkPath(t interface{ Fatalf(string, ...any) }, s space.Space, f *importance.Forest, from, to space.Configuration, largest float64) {
	path := f.Ablate(from, to)
	if !reflect.DeepEqual(path, f.Ablate(from, to)) {
		t.Fatalf("the path is another one the second time")
	}
	if path.From != f.Predict(from) {
		t.Fatalf("the path begins at %+v, the forest says %+v", path.From, f.Predict(from))
	}
	here, gains := from, 0.0
	var switched []string
	for i, step := range path.Steps {
		if faults := s.Check(step.Configuration); faults != nil {
			t.Fatalf("step %d is no configuration: %v", i, faults)
		}
		if len(step.Switched) == 0 {
			t.Fatalf("step %d switches nothing", i)
		}
		rebuilt := space.Configuration{}
		for name, value := range here {
			rebuilt[name] = value
		}
		for _, change := range append(slices.Clone(step.Switched), step.Dependent...) {
			if rebuilt[change.Parameter] != change.From || change.From == change.To {
				t.Fatalf("step %d: %+v, but it was %v", i, change, rebuilt[change.Parameter])
			}
			delete(rebuilt, change.Parameter)
			if !change.To.IsZero() {
				rebuilt[change.Parameter] = change.To
			}
		}
		if !reflect.DeepEqual(rebuilt, step.Configuration) {
			t.Fatalf("step %d leads to %v, its changes to %v", i, step.Configuration, rebuilt)
		}
		for _, change := range step.Switched {
			if change.To != to[change.Parameter] || slices.Contains(switched, change.Parameter) {
				t.Fatalf("step %d: %+v is not the goal's, or was switched before", i, change)
			}
			switched = append(switched, change.Parameter)
		}
		for _, change := range step.Dependent {
			if !change.From.IsZero() && !change.To.IsZero() {
				t.Fatalf("step %d: %+v depends on nothing that was switched", i, change)
			}
		}
		if len(step.Switched) > 1 && i < 31 {
			checkNoSingle(t, s, step, here, to)
		}
		here = step.Configuration
		gains += step.Gain
	}
	if !reflect.DeepEqual(here, to) {
		t.Fatalf("the path ends at %v, not at %v", here, to)
	}
	if whole := f.Predict(to).Score - f.Predict(from).Score; math.Abs(gains-whole) > 1e-12*(1e3+largest) || math.Abs(path.Gain()-whole) > 1e-12*(1e3+largest) {
		t.Fatalf("the gains sum to %g, the whole is %g (%g)", gains, whole, path.Gain())
	}
}

// checkNoSingle checks that none of the parameters switched together could
// have been switched alone.
func checkNoSingle(t interface{ Fatalf(string, ...any) }, s space.Space, step importance.Step, here, to space.Configuration) {
	for _, change := range step.Switched {
		alone := space.Configuration{}
		for _, p := range s.Parameters {
			if v, has := here[p.Name]; has {
				alone[p.Name] = v
			} else if v, has := to[p.Name]; has {
				alone[p.Name] = v
			}
		}
		alone[change.Parameter] = to[change.Parameter]
		active := s.Active(alone)
		for name := range alone {
			if !slices.Contains(active, name) {
				delete(alone, name)
			}
		}
		if s.Check(alone) == nil {
			t.Fatalf("%s was switched with others and could go alone, to %v", change.Parameter, alone)
		}
	}
}

func TestPathsHoldTogether(t *testing.T) {
	s := spaceOf(t, forbiddingFile)
	f := importance.Grow(s, sample(t, s, 300, 1, func(number func(string) float64, c space.Configuration) float64 {
		text, _ := c["choice"].Text()
		return map[string]float64{"a": 1, "b": 0.5}[text] + number("only_a") - math.Abs(math.Log10(number("rate"))+2) + 0.1*number("count")
	}))
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		from, err := s.Sample(random)
		if err != nil {
			t.Fatal(err)
		}
		to, err := s.Sample(random)
		if err != nil {
			t.Fatal(err)
		}
		checkPath(t, s, f, from, to, 0)
	})
}

// TestPathHasTheKnownOrder: of an additive function the largest part is
// switched first, and each step's gain is its part.
func TestPathHasTheKnownOrder(t *testing.T) {
	s := spaceOf(t, squareFile)
	f := importance.Grow(s, sample(t, s, 1500, 1, func(number func(string) float64, _ space.Configuration) float64 {
		return 1*number("x") + 4*number("y") + 2*number("z")
	}))
	at := func(u float64) space.Configuration {
		return space.Configuration{"x": space.Float(u), "y": space.Float(u), "z": space.Float(u), "idle": space.Float(u)}
	}
	path := f.Ablate(at(-0.8), at(0.8))
	var order []string
	for i, step := range path.Steps {
		order = append(order, step.Switched[0].Parameter)
		part := []float64{6.4, 3.2, 1.6, 0}[i]
		if math.Abs(step.Gain-part) > 0.8 {
			t.Errorf("step %d, %s, gains %g, want about %g", i, order[i], step.Gain, part)
		}
	}
	if !slices.Equal(order, []string{"y", "z", "x", "idle"}) {
		t.Errorf("the order is %v", order)
	}
}

// TestParametersSwitchWithTheirParent walks into and out of a branch.
func TestParametersSwitchWithTheirParent(t *testing.T) {
	s := spaceOf(t, file)
	f := importance.Grow(s, sample(t, s, 300, 1, func(number func(string) float64, c space.Configuration) float64 {
		return number("only_a")
	}))
	base := func(choice string) space.Configuration {
		return space.Configuration{"much": space.Float(0.1), "little": space.Float(0.5), "nothing": space.Int(3), "choice": space.String(choice), "order": space.Int(2)}
	}
	with, without := base("a"), base("b")
	with["only_a"] = space.Float(0.9)
	in, out := f.Ablate(without, with), f.Ablate(with, without)
	if len(in.Steps) != 1 || len(in.Steps[0].Dependent) != 1 || in.Steps[0].Dependent[0] != (importance.Change{Parameter: "only_a", To: space.Float(0.9)}) {
		t.Errorf("the way in is %+v", in.Steps)
	}
	if len(out.Steps) != 1 || len(out.Steps[0].Dependent) != 1 || out.Steps[0].Dependent[0] != (importance.Change{Parameter: "only_a", From: space.Float(0.9)}) {
		t.Errorf("the way out is %+v", out.Steps)
	}
	if in.Gain() < 0.6 || out.Gain() > -0.6 {
		t.Errorf("the way in gains %g, the way out %g", in.Gain(), out.Gain())
	}
}

// TestForbiddenCombinationsAreNotStepped on: the shorter way leads through one.
func TestForbiddenCombinationsAreNotStepped(t *testing.T) {
	s := spaceOf(t, `
name: example
objective: {metric: loss, direction: minimize}
space: {p: {values: [0, 1]}, q: {values: [0, 1]}, r: {values: [0, 1]}}
forbidden: [{p: 1, q: 0}]
`)
	f := importance.Grow(s, sample(t, s, 300, 1, func(number func(string) float64, _ space.Configuration) float64 {
		return 3*number("p") + number("q") + 2*number("r")
	}))
	at := func(v int64) space.Configuration {
		return space.Configuration{"p": space.Int(v), "q": space.Int(v), "r": space.Int(v)}
	}
	var order []string
	for _, step := range f.Ablate(at(0), at(1)).Steps {
		order = append(order, step.Switched[0].Parameter)
	}
	if !slices.Equal(order, []string{"r", "q", "p"}) {
		t.Errorf("the order is %v; p may not come before q", order)
	}

	closed := spaceOf(t, `
name: example
objective: {metric: loss, direction: minimize}
space: {p: {values: [0, 1]}, q: {values: [0, 1]}, r: {values: [0, 1]}}
forbidden: [{p: 1, q: 0}, {p: 0, q: 1}]
`)
	g := importance.Grow(closed, sample(t, closed, 300, 1, func(number func(string) float64, _ space.Configuration) float64 {
		return 3*number("p") + 2*number("r")
	}))
	path := g.Ablate(at(0), at(1))
	if len(path.Steps) != 2 || len(path.Steps[0].Switched) != 1 || len(path.Steps[1].Switched) != 2 {
		t.Errorf("p and q can only change together, the path is %+v", path.Steps)
	}
}
