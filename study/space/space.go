// Package space says what may be tuned: parameters, their ranges and scales,
// which of them exist only under conditions, and which combinations are
// forbidden.
//
// A [Space] is a value. It checks configurations, draws them, and maps them to
// the unit cube and back for the searches; it knows nothing of trials,
// budgets or storage. Its one invariant: every configuration it returns passes
// its own [Space.Check].
package space

import (
	"fmt"
	"slices"
	"strings"
)

// Kind says what a parameter belongs to: EdgeTune's onefold search tunes all
// of them together (thesis 7.4.1).
type Kind string

// The kinds.
const (
	Model     Kind = "model"     // the network's architecture
	Training  Kind = "training"  // how it is trained
	System    Kind = "system"    // how the training machine is used
	Inference Kind = "inference" // how the deployed model is run
)

// Type is a parameter's domain.
type Type string

// The types.
const (
	FloatType       Type = "float"
	IntType         Type = "int"
	CategoricalType Type = "categorical" // unordered values
	OrdinalType     Type = "ordinal"     // values in an order, with no distance
)

// Parameter is one thing to tune.
type Parameter struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	Type Type   `json:"type"`
	// Low and High are the inclusive bounds of a float or an int.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Log spreads a float or an int evenly over its logarithm; Low is then > 0.
	Log bool `json:"log,omitempty"`
	// Step, if > 0, allows only Low, Low+Step, ... of a float or an int.
	Step float64 `json:"step,omitempty"`
	// Values are the choices of a categorical, or an ordinal in order.
	Values []Value `json:"values,omitempty"`
	// Expect is where somebody expects the best value; nil: nobody does.
	Expect *Expectation `json:"expect,omitempty"`
	// Group is of studies that an earlier build stored: parts of a space could have
	// search methods of their own. It is kept, and changes nothing.
	Group string `json:"group,omitempty"`
	// When lists the conditions under which the parameter exists: all must
	// hold. A condition's parameter stands earlier in the space.
	When []Condition `json:"when,omitempty"`
}

// Expectation is what somebody expects of a parameter before anything was measured.
type Expectation struct {
	Value Value    `json:"value"`
	Sure  Sureness `json:"sure"`
}

// Sureness is how sure somebody is of an expectation.
type Sureness string

// How sure one can be.
const (
	Low    Sureness = "low"
	Medium Sureness = "medium"
	High   Sureness = "high"
)

// Condition holds when the named parameter exists and has one of the values.
type Condition struct {
	Parameter string  `json:"parameter"`
	In        []Value `json:"in"`
}

// Forbidden is a combination no trial may have: it matches when every one of
// its conditions holds.
type Forbidden []Condition

// Space is everything a study tunes by search, in the order it was written.
type Space struct {
	Parameters []Parameter `json:"parameters"`
	Forbidden  []Forbidden `json:"forbidden,omitempty"`
}

// Configuration is one point of a space: the values of the parameters that
// exist in it, by name.
type Configuration map[string]Value

// Parameter returns the parameter with the name.
func (s Space) Parameter(name string) (Parameter, bool) {
	for _, p := range s.Parameters {
		if p.Name == name {
			return p, true
		}
	}
	return Parameter{}, false
}

// Expects says where the best values are expected; empty: nowhere.
func (s Space) Expects() string {
	var parts []string
	for _, p := range s.Parameters {
		if e := p.Expect; e != nil {
			parts = append(parts, fmt.Sprintf("%s %s (%s)", p.Name, e.Value, e.Sure))
		}
	}
	return strings.Join(parts, ", ")
}

// SameParameters reports whether the spaces have the same parameters, whatever their
// ranges.
func (s Space) SameParameters(other Space) bool {
	return len(s.Parameters) == len(other.Parameters) && !slices.ContainsFunc(s.Parameters, func(p Parameter) bool {
		theirs, ok := other.Parameter(p.Name)
		return !ok || theirs.Type != p.Type
	})
}
