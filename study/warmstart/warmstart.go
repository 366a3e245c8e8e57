// Package warmstart gathers what a new study begins with: results of earlier studies, and
// those that were sent with it.
package warmstart

import (
	"context"
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/space"
)

// importedSource is the name of results that were sent without one.
const importedSource = "imported"

// gathered is what a new study begins with: results of elsewhere, and how many
// there are of which source.
type gathered struct {
	space   space.Space
	results []search.Observation
	sources []definition.Source
}

// source is the entry of the source with the name.
func (g *gathered) source(name string) *definition.Source {
	for i := range g.sources {
		if g.sources[i].Name == name {
			return &g.sources[i]
		}
	}
	g.sources = append(g.sources, definition.Source{Name: name})
	return &g.sources[len(g.sources)-1]
}

// add takes a result in, without the parameters the space does not have. What
// does not fit the space is counted and left out.
func (g *gathered) add(o search.Observation) {
	known := make(space.Configuration, len(o.Params))
	for name, v := range o.Params {
		if _, ok := g.space.Parameter(name); ok {
			known[name] = v
		}
	}
	o.Params = known
	from, reason := g.source(o.Source), ""
	if faults := g.space.CheckPart(known); len(faults) > 0 {
		reason = faults[0].Path + " " + faults[0].Message
	} else if part, err := g.space.Part(known); err != nil || len(part) == 0 {
		reason = "it has no parameter of the space"
	}
	if reason == "" {
		from.Observations++
		g.results = append(g.results, o)
		return
	}
	if from.Skipped++; from.Reason == "" {
		from.Reason = reason
	}
}

// Earlier finds earlier studies.
type Earlier struct {
	Look  func(ctx context.Context, ref string) (journal.View, error)
	Store interface {
		Studies(context.Context) ([]journal.Study, error)
	}
}

// Gather returns the results that were sent with a new study, and those of the
// earlier studies it names. It writes into the definition what it found.
func (s Earlier) Gather(ctx context.Context, def *definition.Definition, sent []protocol.Observation) ([]search.Observation, error) {
	if def.Search.WarmStart == nil && len(sent) == 0 {
		return nil, nil
	}
	if err := checkSent(sent, len(def.Objectives)); err != nil {
		return nil, err
	}
	g := gathered{space: def.Space}
	for _, o := range sent {
		g.add(observation(o))
	}
	if len(sent) > 0 && len(g.results) == 0 {
		return nil, problem.WithFields("no result of elsewhere fits the study's space", []problem.Field{{Path: "prior[0]", Message: g.sources[0].Reason}})
	}
	var warm definition.WarmStart
	if def.Search.WarmStart != nil {
		warm.Studies, warm.Similar = def.Search.WarmStart.Studies, def.Search.WarmStart.Similar
	}
	for i, ref := range warm.Studies {
		if err := s.resultsOf(ctx, ref, ref, *def, &g); err != nil {
			return nil, inStudies(err, i)
		}
	}
	if err := s.similar(ctx, *def, &warm, &g); err != nil {
		return nil, err
	}
	if len(g.results) > search.MaxPrior {
		return nil, problem.New(problem.Invalid, "there are %d results of elsewhere: a study begins with at most %d; name fewer studies, or send fewer results", len(g.results), search.MaxPrior)
	}
	warm.Sources = g.sources
	def.Search.WarmStart = &warm
	return g.results, nil
}

// checkSent names every fault of results that were sent, but for whether they
// fit the space.
func checkSent(sent []protocol.Observation, objectives int) error {
	if len(sent) > search.MaxPrior {
		return problem.New(problem.Invalid, "%d results of elsewhere are too many: at most %d", len(sent), search.MaxPrior)
	}
	var faults []problem.Field
	for i, o := range sent {
		fault := func(field string, value any, message string) {
			faults = append(faults, problem.Field{Path: fmt.Sprintf("prior[%d].%s", i, field), Value: value, Message: message})
		}
		if len(o.Values) != objectives {
			fault("values", len(o.Values), fmt.Sprintf("must have %d entries, one for each objective", objectives))
		}
		if !(o.Epochs >= 0 && o.Epochs <= 1e9) {
			fault("epochs", fmt.Sprint(o.Epochs), "must be between 0 (unknown) and 1e9")
		}
		if !(o.DataFraction >= 0 && o.DataFraction <= 1) {
			fault("data_fraction", fmt.Sprint(o.DataFraction), "must be between 0 (all of the data) and 1")
		}
		if len(o.Source) > 128 {
			fault("source", nil, "must have at most 128 bytes")
		}
	}
	if len(faults) > maxPriorFaults {
		faults = faults[:maxPriorFaults]
	}
	if len(faults) > 0 {
		return problem.WithFields("the results of elsewhere have faults", faults)
	}
	return nil
}

// maxPriorFaults bounds the faults told at once.
const maxPriorFaults = 100

// observation is a result as the search takes it.
func observation(o protocol.Observation) search.Observation {
	fraction, source := o.DataFraction, o.Source
	if fraction == 0 {
		fraction = 1
	}
	if source == "" {
		source = importedSource
	}
	return search.Observation{Params: o.Params, Values: o.Values, Cost: o.Epochs * fraction, Source: source}
}

// inStudies says which of the named studies an error is about.
func inStudies(err error, i int) error {
	return problem.WithFields("the study cannot begin with what it names", []problem.Field{
		{Path: fmt.Sprintf("search.warm_start.studies[%d]", i), Message: err.Error()},
	})
}

// resultsOf takes in what an earlier study measured, at every rung, as results
// of the source.
func (s Earlier) resultsOf(ctx context.Context, ref, source string, def definition.Definition, into *gathered) error {
	now, err := s.Look(ctx, ref)
	if err != nil {
		return err
	}
	places, err := objectivesIn(now.Study.Definition, def)
	if err != nil {
		return err
	}
	into.source(source) // also if it measured nothing
	// Of what was trained again the mean counts: the lucky ones would be tried first.
	for _, t := range ranking.Of(now.Trials, now.Study.Definition.Objectives).Standing {
		for _, result := range t.Results {
			o := search.Observation{
				Params: t.Configuration, Cost: float64(result.Budget.Epochs) * result.Budget.DataFraction, Source: source,
			}
			for _, place := range places {
				o.Values = append(o.Values, result.Values[place])
			}
			into.add(o)
		}
	}
	return nil
}

// similar takes in the newest studies that tune the same parameters for the
// same objectives, as many as are wanted and as their results have room. Whether
// they say anything about this study is for the search to test.
func (s Earlier) similar(ctx context.Context, def definition.Definition, warm *definition.WarmStart, into *gathered) error {
	if warm.Similar == 0 {
		return nil
	}
	studies, err := s.Store.Studies(ctx)
	if err != nil {
		return err
	}
	taken, caller := 0, access.CallerOf(ctx)
	for _, one := range studies {
		if taken == warm.Similar {
			break
		}
		// Only its own: what somebody else's study measured is not the caller's to use.
		if one.Owner != caller.Owner || !caller.Sees(one.ID, one.Owner) || named(warm.Studies, one) {
			continue
		}
		if _, err := objectivesIn(one.Definition, def); err != nil || !one.Definition.Space.SameParameters(def.Space) {
			continue
		}
		found := gathered{space: def.Space}
		if err := s.resultsOf(ctx, one.ID, one.Definition.Name, def, &found); problem.Is(err, problem.NotFound) {
			continue // deleted since
		} else if err != nil {
			return err
		}
		if len(found.results) == 0 || len(into.results)+len(found.results) > search.MaxPrior {
			continue
		}
		into.results, into.sources = append(into.results, found.results...), append(into.sources, found.sources...)
		taken++
	}
	return nil
}

// named reports whether the study is among those that its owner names.
func named(refs []string, one journal.Study) bool {
	return slices.Contains(refs, one.ID) || slices.Contains(refs, one.Definition.Name) || slices.Contains(refs, one.Reference())
}

// objectivesIn finds each objective of the new study in the earlier one.
func objectivesIn(earlier, def definition.Definition) ([]int, error) {
	places := make([]int, len(def.Objectives))
	for i, objective := range def.Objectives {
		places[i] = -1
		for at, theirs := range earlier.Objectives {
			if theirs.Metric == objective.Metric && theirs.Direction == objective.Direction {
				places[i] = at
			}
		}
		if places[i] < 0 {
			return nil, problem.New(problem.Invalid, "study %s does not %s %s, so its results say nothing about this study", earlier.Name, objective.Direction, objective.Metric)
		}
	}
	return places, nil
}
