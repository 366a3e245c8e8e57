package importer

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// columns of a table of results, by their place; -1: there is none.
type places struct {
	parameters       []column
	values           []int // of each objective
	epochs, fraction int
	left             []string
}

// results reads a table: columns named after parameters (or params_ and their
// name), one for each objective under its metric's name (or value_ and the
// name; or value, if there is one objective), and epochs and data_fraction if
// they are known. A row without a value is left out.
func (t table) results(path string, def definition.Definition) (Results, error) {
	p, err := t.places(path, def)
	if err != nil {
		return Results{}, err
	}
	g := gathering{def: def}
	if len(p.left) > 0 {
		g.Notes = append(g.Notes, fmt.Sprintf("%s: left out columns that are no parameters: %s", path, strings.Join(p.left, ", ")))
	}
	for _, row := range t.rows {
		o := protocol.Observation{Source: filepath.Base(path), Params: configurationOf(row, p.parameters)}
		if reason := p.read(row, &o); reason != "" {
			g.skip(reason)
			continue
		}
		g.add(o)
	}
	return g.done(path)
}

// read fills in what is no parameter; it returns why the row is left out.
func (p places) read(row []string, o *protocol.Observation) string {
	for _, at := range p.values {
		value, ok := measured(row[at])
		if !ok {
			return "it has no value"
		}
		o.Values = append(o.Values, value)
	}
	for _, c := range []struct {
		at     int
		most   float64
		target *float64
		name   string
	}{{p.epochs, 1e9, &o.Epochs, "epochs"}, {p.fraction, 1, &o.DataFraction, "data_fraction"}} {
		if c.at < 0 || strings.TrimSpace(row[c.at]) == "" {
			continue
		}
		number, err := strconv.ParseFloat(strings.TrimSpace(row[c.at]), 64)
		if err != nil || !(number > 0) || number > c.most {
			return fmt.Sprintf("its %s is no number above 0 and at most %g", c.name, c.most)
		}
		*c.target = number
	}
	return ""
}

// measured reads a value as JSON and data frames write it.
func measured(cell string) (trial.Float, bool) {
	switch cell = strings.Trim(strings.TrimSpace(cell), `'"`); strings.ToLower(cell) {
	case "":
		return 0, false
	case "nan", "-nan":
		return trial.Float(math.NaN()), true
	}
	number, err := strconv.ParseFloat(cell, 64) // takes inf and Infinity as well
	return trial.Float(number), err == nil
}

// places finds the columns. Without a value or a parameter nothing can be read.
func (t table) places(path string, def definition.Definition) (places, error) {
	p := places{epochs: -1, fraction: -1}
	find := func(names ...string) int {
		for _, name := range names {
			if at := slices.Index(t.header, name); at >= 0 {
				return at
			}
		}
		return -1
	}
	var taken []int
	for _, objective := range def.Objectives {
		names := []string{objective.Metric, "value_" + objective.Metric, "metrics_" + objective.Metric}
		if len(def.Objectives) == 1 {
			names = append(names, "value")
		}
		at := find(names...)
		if at < 0 {
			return p, problem.New(problem.Invalid, "%s: no column is named %s, the study's objective; it has %s", path, objective.Metric, strings.Join(t.header, ", "))
		}
		p.values, taken = append(p.values, at), append(taken, at)
	}
	columns, _ := t.parameters(def.Space)
	for _, c := range columns {
		if !slices.Contains(taken, c.at) {
			p.parameters, taken = append(p.parameters, c), append(taken, c.at)
		}
	}
	if len(p.parameters) == 0 {
		return p, problem.New(problem.Invalid, "%s: no column is named after a parameter of the space, which has %s", path, strings.Join(names(def.Space), ", "))
	}
	for name, target := range map[string]*int{"epochs": &p.epochs, "data_fraction": &p.fraction} {
		if at := find(name); at >= 0 && !slices.Contains(taken, at) {
			*target, taken = at, append(taken, at)
		}
	}
	for at, name := range t.header {
		if !slices.Contains(taken, at) {
			p.left = append(p.left, name)
		}
	}
	return p, nil
}
