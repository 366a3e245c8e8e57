package studyfile

import (
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// readForbidden reads the combinations no trial may have.
func readForbidden(d *tree.Decoder, at string, n *tree.Node) []space.Forbidden {
	const domain = "space.forbidden"
	d.Places.Put(domain, at, n.Line)
	if n.Kind != tree.List {
		d.Wrong(at, n, "a list of combinations, such as [{optimizer: sgd, momentum: 0}]")
		return nil
	}
	var combinations []space.Forbidden
	for i, item := range n.Items {
		combinations = append(combinations, readConditions(d, tree.Index(domain, i), tree.Index(at, i), item))
	}
	return combinations
}

// readConditions reads which values of which parameters are meant: a mapping of
// names and a value or a list of values, or, as a server shows it, a list of
// {parameter, in}.
func readConditions(d *tree.Decoder, domain, at string, n *tree.Node) []space.Condition {
	d.Places.Put(domain, at, n.Line)
	var conditions []space.Condition
	add := func(i int, read func() space.Condition) {
		before := len(d.Faults)
		c := read()
		if len(d.Faults) > before || d.Places.IsSpoilt(tree.Join("space", c.Parameter)) {
			d.Places.Spoil(tree.Index(domain, i))
		}
		conditions = append(conditions, c)
	}
	switch n.Kind {
	case tree.Mapping:
		for i, e := range n.Entries {
			add(i, func() space.Condition { return readCondition(d, tree.Index(domain, i), tree.Join(at, e.Key), e) })
		}
	case tree.List:
		for i, item := range n.Items {
			add(i, func() space.Condition { return readListedCondition(d, tree.Index(domain, i), tree.Index(at, i), item) })
		}
	default:
		d.Wrong(at, n, "a mapping of a parameter's name and its value or values, such as {optimizer: sgd}")
		d.Places.Spoil(domain)
	}
	return conditions
}

func readCondition(d *tree.Decoder, domain, at string, e tree.Entry) space.Condition {
	d.Places.Put(domain, at, e.Line)
	d.Places.Put(domain+".parameter", at, e.Line)
	placeValues(d, domain+".in", at, e.Value)
	return space.Condition{Parameter: e.Key, In: readValues(d, at, e.Value)}
}

func readListedCondition(d *tree.Decoder, domain, at string, n *tree.Node) space.Condition {
	var c space.Condition
	d.Places.Put(domain, at, n.Line)
	s, ok := d.Open(at, n, "parameter", "in")
	if !ok {
		return c
	}
	if name, nameAt := s.Need("parameter", "the name of the parameter that is meant"); name != nil {
		d.TextOf(nameAt, name, tree.MaxKey, &c.Parameter)
	}
	if in, inAt := s.Need("in", "the values that are meant"); in != nil {
		placeValues(d, domain+".in", inAt, in)
		c.In = readValues(d, inAt, in)
	}
	return c
}

// placeValues notes where a value, or each of a list of values, stands.
func placeValues(d *tree.Decoder, domain, at string, n *tree.Node) {
	d.Places.Put(domain, at, n.Line)
	items, paths := tree.Elements(at, n)
	for i, item := range items {
		d.Places.Put(tree.Index(domain, i), paths[i], item.Line)
	}
}
