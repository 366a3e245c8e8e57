package analysis

import (
	"context"
	"fmt"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/importance"
	"github.com/tandem-tune/tandem/trial"
)

const importanceMethod = "PED-ANOVA (Watanabe et al., IJCAI 2023), with a permutation test"

// Importance says which parameters made the study's good trials good.
func (q *Queries) Importance(ctx context.Context, ref string, query protocol.ImportanceQuery) (protocol.Importance, error) {
	now, err := q.look(ctx, ref)
	if err != nil {
		return protocol.Importance{}, err
	}
	def, ladder, trials := now.Study.Definition, now.Ladder, trial.Searched(now.Trials)
	if err := now.Check(query.Objective, query.Rung); err != nil {
		return protocol.Importance{}, err
	}
	objective := def.Objectives[query.Objective]
	answer := protocol.Importance{
		Study: def.Name, Method: importanceMethod, Metric: objective.Label(), Rungs: []protocol.RungImportance{}, Notes: []string{},
	}
	for rung := len(ladder) - 1; rung >= 0; rung-- {
		list := observations(trials, rung, query.Objective, objective.Direction)
		if query.Rung != nil && *query.Rung != rung || len(list) < importance.Least {
			continue
		}
		found := importance.Of(def.Space, list)
		answer.Rungs = append(answer.Rungs, protocol.RungImportance{
			Rung: rung, Budget: ladder[rung].Budget, Trials: len(list), Best: found.Best, Parameters: described(def, found),
		})
	}
	if len(answer.Rungs) == 0 {
		where := "no rung has"
		if query.Rung != nil {
			where = fmt.Sprintf("rung %d does not have", *query.Rung)
		}
		answer.Notes = append(answer.Notes, fmt.Sprintf("%s the %d measured trials this needs", where, importance.Least))
		return answer, nil
	}
	if rung := answer.Rungs[0].Rung; rung > 0 {
		answer.Notes = append(answer.Notes, fmt.Sprintf("most trials came to rung %d because they were good below: it tells what matters among those", rung))
	}
	return answer, nil
}

// observations are the trials measured at the rung.
func observations(trials []trial.Trial, rung, objective int, direction definition.Direction) []importance.Observation {
	var list []importance.Observation
	for i := range trials {
		if value, ok := trials[i].ValueAt(rung, objective); ok {
			list = append(list, importance.Observation{Configuration: trials[i].Configuration, Score: direction.Score(value)})
		}
	}
	return list
}

func described(def definition.Definition, found importance.Result) []protocol.ParameterImportance {
	list := make([]protocol.ParameterImportance, 0, len(found.Parameters))
	for _, p := range found.Parameters {
		parameter, _ := def.Space.Parameter(p.Name)
		list = append(list, protocol.ParameterImportance{Name: p.Name, Kind: parameter.Kind, Share: p.Share, Chance: p.Chance})
	}
	return list
}
