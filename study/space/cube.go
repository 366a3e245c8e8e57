package space

import (
	"math"
	"slices"
)

// DimensionKind says how coordinates of a dimension relate to each other.
type DimensionKind uint8

// The kinds.
const (
	// Continuous coordinates have a distance: floats and ints.
	Continuous DimensionKind = iota
	// Unordered coordinates are equal or different: categoricals.
	Unordered
	// Ordered coordinates stand before or behind each other: ordinals.
	Ordered
)

// Dimension is one axis of the unit cube: one parameter.
type Dimension struct {
	Name string
	Kind DimensionKind
	// Choices is the number of values of an unordered or ordered dimension.
	Choices int
}

// Choice is the place, from 0, of the value at u in [0, 1]: each value owns an
// equal share of the interval.
func (d Dimension) Choice(u float64) int {
	return min(max(int(u*float64(d.Choices)), 0), d.Choices-1)
}

// Coordinate is the middle of a choice's share.
func (d Dimension) Coordinate(choice int) float64 {
	return (float64(choice) + 0.5) / float64(d.Choices)
}

// Cube maps a space's configurations to points of the unit cube and back: one
// coordinate for each parameter, NaN where a parameter does not exist. Numbers
// are spread over [0, 1] evenly on their own scale, so that a uniform point
// decodes to a uniform configuration.
//
// A cube is read-only after it was made.
type Cube struct {
	space      Space
	dimensions []Dimension
	scales     []scale // of the continuous dimensions
	when       [][]link
	forbidden  [][]link
}

// link is a condition, resolved: the parameter's index, and the values that
// fulfil it in canonical form, or of choices whether each does.
type link struct {
	parameter int
	in        map[Value]bool
	choices   []bool
}

// Cube returns the unit cube of a valid space.
func (s Space) Cube() *Cube {
	c := &Cube{
		space:      s,
		dimensions: make([]Dimension, len(s.Parameters)),
		scales:     make([]scale, len(s.Parameters)),
		when:       make([][]link, len(s.Parameters)),
	}
	index := make(map[string]int, len(s.Parameters))
	for i, p := range s.Parameters {
		c.dimensions[i] = Dimension{Name: p.Name}
		switch p.Type {
		case CategoricalType:
			c.dimensions[i].Kind, c.dimensions[i].Choices = Unordered, len(p.Values)
		case OrdinalType:
			c.dimensions[i].Kind, c.dimensions[i].Choices = Ordered, len(p.Values)
		default:
			c.scales[i] = newScale(p)
		}
		index[p.Name] = i
		c.when[i] = s.resolve(p.When, index)
	}
	for _, combination := range s.Forbidden {
		c.forbidden = append(c.forbidden, s.resolve(combination, index))
	}
	return c
}

func (s Space) resolve(conditions []Condition, index map[string]int) []link {
	links := make([]link, len(conditions))
	for i, condition := range conditions {
		at := index[condition.Parameter]
		in := make(map[Value]bool, len(condition.In))
		for _, v := range condition.In {
			if accepted, wrong := s.Parameters[at].accept(v); wrong == "" {
				in[accepted] = true
			}
		}
		links[i] = link{parameter: at, in: in}
		for _, v := range s.Parameters[at].Values {
			links[i].choices = append(links[i].choices, in[v])
		}
	}
	return links
}

// Dimensions returns the cube's axes, in the order of the space's parameters.
func (c *Cube) Dimensions() []Dimension { return c.dimensions }

// Share returns the interval of coordinates of a parameter that decode to the
// same value as u, which is in [0, 1]. It answers false for a float without a
// step, where every coordinate is a value of its own.
func (c *Cube) Share(parameter int, u float64) (low, high float64, ok bool) {
	if d := c.dimensions[parameter]; d.Kind != Continuous {
		choice := float64(d.Choice(u))
		return choice / float64(d.Choices), (choice + 1) / float64(d.Choices), true
	}
	return c.scales[parameter].share(u)
}

// Mask sets the coordinates of all parameters that do not exist at the point
// to NaN. A parameter exists if the decoded values of those before it fulfil
// its conditions.
func (c *Cube) Mask(point []float64) {
	for i := range point {
		if !c.holds(c.when[i], point) {
			point[i] = math.NaN()
		}
	}
}

// Forbids reports whether the masked point decodes to a forbidden combination.
func (c *Cube) Forbids(point []float64) bool {
	return slices.ContainsFunc(c.forbidden, func(one []link) bool { return c.holds(one, point) })
}

func (c *Cube) holds(links []link, point []float64) bool {
	for _, l := range links {
		u := point[l.parameter]
		if math.IsNaN(u) {
			return false
		}
		met := false
		if l.choices != nil {
			met = l.choices[c.dimensions[l.parameter].Choice(u)]
		} else {
			met = l.in[c.value(l.parameter, u)]
		}
		if !met {
			return false
		}
	}
	return true
}

// value decodes one coordinate.
func (c *Cube) value(parameter int, u float64) Value {
	if d := c.dimensions[parameter]; d.Kind != Continuous {
		return c.space.Parameters[parameter].Values[d.Choice(u)]
	}
	s := c.scales[parameter]
	return s.value(s.decode(u))
}

// Decode returns the configuration at a masked point. It passes the space's
// Check unless the point is forbidden.
func (c *Cube) Decode(point []float64) Configuration {
	configuration := make(Configuration, len(point))
	for i, u := range point {
		if !math.IsNaN(u) {
			configuration[c.dimensions[i].Name] = c.value(i, u)
		}
	}
	return configuration
}

// Encode returns the masked point of a configuration that passes Check.
// Decoding it gives the configuration back; a continuous float may differ by
// its last bits.
func (c *Cube) Encode(configuration Configuration) []float64 {
	point := make([]float64, len(c.dimensions))
	for i, d := range c.dimensions {
		v, present := configuration[d.Name]
		if !present {
			point[i] = math.NaN()
			continue
		}
		if d.Kind != Continuous {
			point[i] = d.Coordinate(c.space.Parameters[i].index(v))
			continue
		}
		number, _ := v.Number()
		point[i] = c.scales[i].encode(number)
	}
	return point
}
