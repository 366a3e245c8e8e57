package ranking

import (
	"cmp"
	"context"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/query"
)

// maxTrialPage bounds one page of trials.
const maxTrialPage = 10000

// Trials returns one page of the study's trials.
func (q *Queries) Trials(ctx context.Context, ref string, asked protocol.TrialQuery) (protocol.TrialPage, error) {
	now, err := q.options.Look(ctx, ref)
	if err != nil {
		return protocol.TrialPage{}, err
	}
	columns := fieldsOf(now)
	chosen, err := query.Parse(asked.Query, columns)
	if err != nil {
		return protocol.TrialPage{}, err
	}
	key, err := columns(cmp.Or(asked.Sort, "rank"))
	if err != nil {
		return protocol.TrialPage{}, problem.WithFields("the query is not valid", []problem.Field{{Path: "sort", Message: "this " + err.Error(), Value: asked.Sort}})
	}
	places := Rank(now.Trials, now.Study.Definition.Objectives)
	page := protocol.TrialPage{All: len(places), Sequence: now.Sequence}
	places = slices.DeleteFunc(places, func(p Place) bool {
		return len(asked.States) > 0 && !slices.Contains(asked.States, p.trial.State) ||
			asked.Rung != nil && p.trial.Rung != *asked.Rung
	})
	places = chosen.Apply(places)
	if asked.Descending || cmp.Or(asked.Sort, "rank") != "rank" {
		query.Sort(places, query.Key[Place]{Of: key.Of, Descending: asked.Descending})
	}
	page.Total = len(places)
	limit := asked.Limit
	if limit <= 0 {
		limit = 100
	}
	first := min(max(asked.Offset, 0), len(places))
	for _, p := range places[first:min(first+min(limit, maxTrialPage), len(places))] {
		page.Trials = append(page.Trials, p.Ranked())
	}
	return page, nil
}

// EachTrial visits the study's trials by number, as they are at one moment: what
// changes meanwhile is not among them. The first error of visit ends it.
func (q *Queries) EachTrial(ctx context.Context, ref string, visit func(protocol.RankedTrial) error) error {
	now, err := q.options.Look(ctx, ref)
	if err != nil {
		return err
	}
	places := Rank(now.Trials, now.Study.Definition.Objectives)
	slices.SortFunc(places, func(a, b Place) int { return cmp.Compare(a.trial.Number, b.trial.Number) })
	for _, p := range places {
		if err := visit(p.Ranked()); err != nil {
			return err
		}
	}
	return nil
}
