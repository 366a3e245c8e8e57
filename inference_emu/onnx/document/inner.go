package document

import (
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
)

// What runs within operators is counted and not kept: graphs of If, Loop and Scan,
// and functions, which a runtime writes out wherever they are called.

// call is what an operator may be a call of.
type call struct{ domain, kind string }

// called is a call by the one name of the domain that has two.
func called(domain, kind string) call {
	if domain == "ai.onnx" {
		domain = ""
	}
	return call{domain, kind}
}

// body is how many operators a graph or a function has, and which kinds.
type body struct {
	nodes int
	calls map[call]int
}

func newBody() *body { return &body{calls: map[call]int{}} }

// count counts an operator of the graph or function that is read.
func (d *decoder) count(domain, kind string) error {
	d.nodes++
	if d.nodes > d.limits.Nodes {
		return Exhausted("operators", d.limits.Nodes)
	}
	d.within.nodes++
	d.within.calls[called(domain, kind)]++
	return nil
}

// inner counts what is in a graph within an operator.
func (d *decoder) inner(message []byte, depth int) error {
	if depth > d.limits.Depth {
		return Exhausted("graphs within each other", d.limits.Depth)
	}
	return fields(message, func(f field) error {
		if f.number != 1 {
			return nil
		}
		return d.innerNode(f.bytes, depth)
	})
}

func (d *decoder) innerNode(message []byte, depth int) error {
	var domain, kind string
	err := fields(message, func(f field) (err error) {
		switch f.number {
		case 4:
			kind, err = d.text(f)
		case 7:
			domain, err = d.text(f)
		case 5:
			err = fields(f.bytes, func(f field) error {
				if f.number != 6 && f.number != 11 {
					return nil
				}
				return d.inner(f.bytes, depth+1)
			})
		}
		return err
	})
	if err != nil {
		return err
	}
	return d.count(domain, kind)
}

// function counts what is in a function of the file.
func (d *decoder) function(message []byte) error {
	var domain, kind string
	own := newBody()
	before := d.within
	d.within = own
	defer func() { d.within = before }()
	err := fields(message, func(f field) (err error) {
		switch f.number {
		case 1:
			kind, err = d.text(f)
		case 7:
			err = d.innerNode(f.bytes, 1)
		case 10:
			domain, err = d.text(f)
		}
		return err
	})
	d.functions[called(domain, kind)] = own
	return err
}

// written checks how many operators there are with all functions written out.
func (d *decoder) written() error {
	sizes := map[call]int{}
	var size func(name call, b *body, depth int) (int, error)
	size = func(name call, b *body, depth int) (int, error) {
		if known, ok := sizes[name]; ok {
			if known < 0 {
				return 0, problem.New(problem.Invalid, "function %q calls itself", name.kind)
			}
			return known, nil
		}
		if depth > d.limits.Depth {
			return 0, Exhausted("functions within each other", d.limits.Depth)
		}
		sizes[name] = -1
		all := b.nodes
		for _, other := range slices.SortedFunc(maps.Keys(b.calls), func(a, b call) int { return slices.Compare([]string{a.domain, a.kind}, []string{b.domain, b.kind}) }) {
			inside, ok := d.functions[other]
			if !ok {
				continue
			}
			one, err := size(other, inside, depth+1)
			if err != nil {
				return 0, err
			}
			if all += b.calls[other] * one; all > d.limits.Nodes {
				return 0, Exhausted("operators with its functions written out", d.limits.Nodes)
			}
		}
		sizes[name] = all
		return all, nil
	}
	_, err := size(call{"", ""}, d.within, 0)
	return err
}
