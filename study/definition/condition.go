package definition

import "github.com/tandem-tune/tandem/study/space"

// forbidden reads the combinations no trial may have.
func (d *decoder) forbidden(at string, n *node) []space.Forbidden {
	const domain = "space.forbidden"
	d.places.put(domain, at, n.line)
	if n.kind != list {
		d.wrong(at, n, "a list of combinations, such as [{optimizer: sgd, momentum: 0}]")
		return nil
	}
	var combinations []space.Forbidden
	for i, item := range n.items {
		combinations = append(combinations, d.conditions(index(domain, i), index(at, i), item))
	}
	return combinations
}

// conditions reads which values of which parameters are meant: a mapping of
// names and a value or a list of values, or, as a server shows it, a list of
// {parameter, in}.
func (d *decoder) conditions(domain, at string, n *node) []space.Condition {
	d.places.put(domain, at, n.line)
	var conditions []space.Condition
	add := func(i int, read func() space.Condition) {
		before := len(d.faults)
		c := read()
		if len(d.faults) > before || d.places.isSpoilt(join("space", c.Parameter)) {
			d.places.spoil(index(domain, i))
		}
		conditions = append(conditions, c)
	}
	switch n.kind {
	case mapping:
		for i, e := range n.entries {
			add(i, func() space.Condition { return d.condition(index(domain, i), join(at, e.key), e) })
		}
	case list:
		for i, item := range n.items {
			add(i, func() space.Condition { return d.listedCondition(index(domain, i), index(at, i), item) })
		}
	default:
		d.wrong(at, n, "a mapping of a parameter's name and its value or values, such as {optimizer: sgd}")
		d.places.spoil(domain)
	}
	return conditions
}

func (d *decoder) condition(domain, at string, e entry) space.Condition {
	d.places.put(domain, at, e.line)
	d.places.put(domain+".parameter", at, e.line)
	d.placeValues(domain+".in", at, e.value)
	return space.Condition{Parameter: e.key, In: d.values(at, e.value)}
}

func (d *decoder) listedCondition(domain, at string, n *node) space.Condition {
	var c space.Condition
	d.places.put(domain, at, n.line)
	s, ok := d.section(at, n, "parameter", "in")
	if !ok {
		return c
	}
	if name, nameAt := s.need("parameter", "the name of the parameter that is meant"); name != nil {
		d.textOf(nameAt, name, maxKey, &c.Parameter)
	}
	if in, inAt := s.need("in", "the values that are meant"); in != nil {
		d.placeValues(domain+".in", inAt, in)
		c.In = d.values(inAt, in)
	}
	return c
}

// placeValues notes where a value, or each of a list of values, stands.
func (d *decoder) placeValues(domain, at string, n *node) {
	d.places.put(domain, at, n.line)
	items, paths := elements(at, n)
	for i, item := range items {
		d.places.put(index(domain, i), paths[i], item.line)
	}
}
