package importer

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
)

// Results are what a study can begin with, and what was left out.
type Results struct {
	Observations []protocol.Observation
	// Skipped counts the rows that were left out, by the reason.
	Skipped map[string]int
	// Notes are sentences about what was read, for people.
	Notes []string
}

// ReadResults reads results that were measured elsewhere from a CSV file, for a
// study with the definition.
func ReadResults(path string, def definition.Definition) (Results, error) {
	if strings.HasPrefix(path, "sqlite:///") {
		return Results{}, database(path)
	}
	data, err := readFile(path)
	if err != nil {
		return Results{}, err
	}
	if bytes.HasPrefix(data, []byte("SQLite format 3\x00")) {
		return Results{}, database(path)
	}
	t, err := readTable(path, data)
	if err != nil {
		return Results{}, err
	}
	return t.results(path, def)
}

// database says how to take along what an Optuna database has.
func database(path string) error {
	return problem.New(problem.Invalid, "%s is a database: write its study as CSV with study.trials_dataframe().to_csv(\"sweep.csv\"), or give it to create_study(warm_start=...) in Python", path)
}

// gathering collects results and the reasons why some are left out.
type gathering struct {
	def definition.Definition
	Results
}

// add takes a result in, if it fits the study.
func (g *gathering) add(o protocol.Observation) {
	faults := g.def.Space.CheckPart(o.Params)
	switch {
	case len(faults) > 0:
		g.skip(strings.TrimPrefix(faults[0].Path, "params.") + " " + faults[0].Message)
	case len(o.Params) == 0:
		g.skip("it has no parameter of the space")
	default:
		g.Observations = append(g.Observations, o)
	}
}

func (g *gathering) skip(reason string) {
	if g.Skipped == nil {
		g.Skipped = make(map[string]int)
	}
	g.Skipped[reason]++
}

// done thins out what is too much, and says what was left out.
func (g *gathering) done(path string) (Results, error) {
	for _, reason := range slices.Sorted(maps.Keys(g.Skipped)) {
		g.Notes = append(g.Notes, fmt.Sprintf("%s: left out %d: %s", path, g.Skipped[reason], reason))
	}
	if len(g.Observations) == 0 {
		notes := ""
		if len(g.Notes) > 0 {
			notes = " (" + strings.Join(g.Notes, "; ") + ")"
		}
		return Results{}, problem.New(problem.Invalid, "%s has no result that fits the study%s", path, notes)
	}
	if n := len(g.Observations); n > protocol.MaxPrior {
		g.thin()
		g.Notes = append(g.Notes, fmt.Sprintf("%s: took %d of %d results, evenly spread from the best to the worst", path, protocol.MaxPrior, n))
	}
	return g.Results, nil
}

// thin keeps as many as a study takes, evenly spread over the ranking: those
// trained longest first, and of these the best.
func (g *gathering) thin() {
	sign := 1.0
	if g.def.Objectives[0].Direction == definition.Maximize {
		sign = -1
	}
	slices.SortStableFunc(g.Observations, func(a, b protocol.Observation) int {
		if c := cmp.Compare(span(b), span(a)); c != 0 {
			return c
		}
		return cmp.Compare(sign*float64(a.Values[0]), sign*float64(b.Values[0]))
	})
	kept := make([]protocol.Observation, protocol.MaxPrior)
	for i := range kept {
		kept[i] = g.Observations[i*len(g.Observations)/len(kept)]
	}
	g.Observations = kept
}

// span is what it was trained with; unknown is more than anything.
func span(o protocol.Observation) float64 {
	fraction := o.DataFraction
	fraction = cmp.Or(fraction, 1)
	if o.Epochs == 0 {
		return 1e300
	}
	return o.Epochs * fraction
}
