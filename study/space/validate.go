package space

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"github.com/tandem-tune/tandem/internal/problem"
)

// The bounds of a space.
const (
	MaxParameters = 1_000
	MaxValues     = 10_000
	MaxName       = 128
	// maxLattice is how many values an int, or a float with a step, may have.
	// Above it neighbours are too close for a float64 on the unit interval.
	maxLattice = 1 << 40
	// maxInteger is the largest whole number below which every one is a float64.
	maxInteger = 1 << 53
	// trialDraws is how many draws must all be forbidden before a space counts
	// as forbidden as a whole.
	trialDraws = 1_000
)

// Validate returns everything that is wrong with the space; path is where the
// space stands in the user's file, such as "space".
func (s Space) Validate(path string) []problem.Field {
	v := validation{space: s, path: path, known: make(map[string]int), sound: make([]bool, len(s.Parameters))}
	if len(s.Parameters) == 0 {
		v.fault(path, nil, "needs at least one parameter")
	}
	if len(s.Parameters) > MaxParameters {
		v.fault(path, len(s.Parameters), "has too many parameters: at most %d", MaxParameters)
		return v.faults
	}
	for i, p := range s.Parameters {
		at := path + "." + p.Name
		v.name(at, p.Name)
		before := len(v.faults)
		v.parameter(at, p)
		v.sound[i] = len(v.faults) == before
		for k, condition := range p.When {
			v.condition(fmt.Sprintf("%s.when[%d]", at, k), condition, i)
		}
		v.known[p.Name] = i
	}
	for i, combination := range s.Forbidden {
		at := fmt.Sprintf("%s.forbidden[%d]", path, i)
		if len(combination) == 0 {
			v.fault(at, nil, "is empty and would forbid everything: name at least one parameter")
		}
		for k, condition := range combination {
			v.condition(fmt.Sprintf("%s[%d]", at, k), condition, len(s.Parameters))
		}
	}
	if len(v.faults) == 0 && len(s.Forbidden) > 0 {
		v.satisfiable()
	}
	return v.faults
}

// validation collects the faults of one space.
type validation struct {
	space  Space
	path   string
	known  map[string]int // the parameters seen so far
	sound  []bool         // which of them have a domain without fault
	faults []problem.Field
}

func (v *validation) fault(path string, value any, format string, args ...any) {
	v.faults = append(v.faults, problem.Field{Path: path, Message: fmt.Sprintf(format, args...), Value: value})
}

func (v *validation) name(at, name string) {
	if !validName(name) {
		v.fault(at, name, "must be a name of at most %d characters: a letter or _, then letters, digits, _ . or -", MaxName)
	}
	if _, taken := v.known[name]; taken {
		v.fault(at, nil, "is defined twice: every parameter needs its own name")
	}
}

func validName(name string) bool {
	if name == "" || len(name) > MaxName {
		return false
	}
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		further := '0' <= r && r <= '9' || r == '.' || r == '-'
		if !letter && (i == 0 || !further) {
			return false
		}
	}
	return true
}

// elsewhere are types of Ray Tune, Katib and W&B in lower case, and what they are here.
var elsewhere = map[string]string{
	"uniform": "float", "double": "float", "quniform": "float with step", "loguniform": "float with log: true", "log_uniform_values": "float with log: true",
	"randint": "int", "lograndint": "int with log: true", "choice": "categorical", "discrete": "ordinal",
}

func (v *validation) parameter(at string, p Parameter) {
	switch p.Kind {
	case Model, Training, System, Inference:
	default:
		v.fault(at+".kind", string(p.Kind), "must be model, training, system or inference")
	}
	before := len(v.faults)
	switch p.Type {
	case FloatType, IntType:
		v.number(at, p)
	case CategoricalType, OrdinalType:
		v.choice(at, p)
	default:
		hint := ""
		if here := elsewhere[strings.ToLower(string(p.Type))]; here != "" {
			hint = "; write " + here
		}
		v.fault(at+".type", string(p.Type), "must be float, int, categorical or ordinal%s", hint)
	}
	if p.Expect != nil && len(v.faults) == before {
		v.expectation(at+".expect", p)
	}
}

func (v *validation) expectation(at string, p Parameter) {
	if _, wrong := p.accept(p.Expect.Value); wrong != "" {
		v.fault(at+".value", p.Expect.Value.String(), "%s", wrong)
	}
	switch p.Expect.Sure {
	case Low, Medium, High:
	default:
		v.fault(at+".sure", string(p.Expect.Sure), "must be low, medium or high")
	}
}

func (v *validation) number(at string, p Parameter) {
	before := len(v.faults)
	if len(p.Values) > 0 {
		v.fault(at+".values", nil, "belongs to a categorical or an ordinal: %s has low and high", article(p.Type))
	}
	v.bound(at+".low", p, p.Low)
	v.bound(at+".high", p, p.High)
	if p.Step < 0 || !finite(p.Step) {
		v.fault(at+".step", display(p.Step), "must be a positive number, or absent")
	} else if p.Type == IntType && p.Step != math.Trunc(p.Step) {
		v.fault(at+".step", p.Step, "must be a whole number, as the parameter is an int")
	}
	if len(v.faults) > before {
		return
	}
	if p.Low >= p.High {
		v.fault(at+".low", p.Low, "must be less than high (%s); a parameter with one value is a categorical with that value", number64(p.High))
		return
	}
	if p.Log && p.Low <= 0 {
		v.fault(at+".low", p.Low, "must be greater than 0, as the scale is logarithmic; or leave out log")
	}
	if !finite(p.High - p.Low) {
		v.fault(at+".high", p.High, "is too far from low: the range is not a finite number")
	}
	if p.Step > p.High-p.Low {
		v.fault(at+".step", p.Step, "must not be larger than the range from low to high (%s)", number64(p.High-p.Low))
	}
	step := p.Step
	if p.Type == IntType {
		step = max(step, 1)
	}
	magnitude := p.High - p.Low
	if p.Type == FloatType {
		magnitude = max(magnitude, math.Abs(p.Low), math.Abs(p.High))
	}
	if step > 0 && magnitude/step >= maxLattice {
		v.fault(at+".high", p.High, "is too far away for a step of %s: use a larger step, or a float without a step", number64(step))
	}
}

func (v *validation) bound(at string, p Parameter, bound float64) {
	switch {
	case !finite(bound):
		v.fault(at, display(bound), "must be a finite number")
	case p.Type != IntType:
	case bound != math.Trunc(bound):
		v.fault(at, bound, "must be a whole number, as the parameter is an int")
	case math.Abs(bound) > maxInteger:
		v.fault(at, bound, "must be between -2^53 and 2^53")
	}
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// display makes a number fit for JSON, which has no NaN.
func display(f float64) any {
	if finite(f) {
		return f
	}
	return number64(f)
}

func (v *validation) choice(at string, p Parameter) {
	if p.Low != 0 || p.High != 0 {
		v.fault(at+".low", nil, "low and high belong to a float or an int: %s has values", p.Type)
	}
	if p.Log {
		v.fault(at+".log", nil, "belongs to a float or an int: %s has values", p.Type)
	}
	if p.Step != 0 {
		v.fault(at+".step", display(p.Step), "belongs to a float or an int: %s has values", p.Type)
	}
	if len(p.Values) == 0 {
		v.fault(at+".values", nil, "needs at least one value")
	}
	if len(p.Values) > MaxValues {
		v.fault(at+".values", len(p.Values), "has too many values: at most %d", MaxValues)
		return
	}
	seen := make(map[Value]int, len(p.Values))
	for i, value := range p.Values {
		path := fmt.Sprintf("%s.values[%d]", at, i)
		v.value(path, value)
		if first, twice := seen[plain(value)]; twice {
			v.fault(path, value.String(), "is the same as values[%d]", first)
			continue
		}
		seen[plain(value)] = i
		if p.Type == OrdinalType && class(value) != class(p.Values[0]) {
			v.fault(path, value.String(), "must be %s like the first value: an ordinal's values are of one type", class(p.Values[0]))
		}
	}
}

// plain makes values that mean the same equal: 1 and 1.0.
func plain(v Value) Value {
	if number, ok := v.Number(); ok {
		return Float(number + 0)
	}
	return v
}

func (v *validation) value(path string, value Value) {
	if value.IsZero() {
		v.fault(path, nil, "must be a number, a string or a boolean")
	}
	if number, ok := value.Number(); ok && !finite(number) {
		v.fault(path, value.String(), "must be a finite number")
	}
	if text, ok := value.Text(); ok && !utf8.ValidString(text) {
		v.fault(path, nil, "must be valid UTF-8 text")
	}
}

// class is the type of a value for an ordinal, which may mix 1 and 0.5.
func class(v Value) string {
	if _, ok := v.Number(); ok {
		return "a number"
	}
	if _, ok := v.Text(); ok {
		return "a string"
	}
	return "a boolean"
}

// condition checks a condition that may refer to the parameters before the
// place in the space.
func (v *validation) condition(at string, c Condition, place int) {
	if len(c.In) == 0 {
		v.fault(at+".in", nil, "needs at least one value")
	}
	i, ok := v.known[c.Parameter]
	if !ok {
		for later, p := range v.space.Parameters {
			if p.Name == c.Parameter && later == place {
				v.fault(at+".parameter", c.Parameter, "must be another parameter, not the one that has the condition")
				return
			} else if p.Name == c.Parameter {
				v.fault(at+".parameter", c.Parameter, "must stand earlier in the space: move %s up", c.Parameter)
				return
			}
		}
		v.fault(at+".parameter", c.Parameter, "is not a parameter of the space")
		return
	}
	if !v.sound[i] {
		return // its own fault is told already, and its values are unknown
	}
	p := v.space.Parameters[i]
	for k, value := range c.In {
		if _, wrong := p.accept(value); wrong != "" {
			v.fault(fmt.Sprintf("%s.in[%d]", at, k), value.String(), "can never be: %s %s", p.Name, wrong)
		}
	}
}

// satisfiable looks for one allowed configuration.
func (v *validation) satisfiable() {
	cube := v.space.Cube()
	point := make([]float64, len(cube.dimensions))
	r := rand.New(rand.NewPCG(1, trialDraws))
	if cube.draw(r, point, trialDraws) != nil {
		v.fault(v.path+".forbidden", nil, "leaves almost nothing: %d random configurations were all forbidden; remove or narrow a combination", trialDraws)
	}
}
