package study

import (
	"context"
	"fmt"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/importance"
	"github.com/tandem-tune/tandem/trial"
)

const importanceMethod = "PED-ANOVA (Watanabe et al., IJCAI 2023), with a permutation test"

// Importance says which parameters made the study's good trials good.
func (s *Service) Importance(ctx context.Context, ref string) (protocol.Importance, error) {
	now, err := look(ctx, s, ref, func(r *runtime) (still, error) { return r.still(), nil })
	if err != nil {
		return protocol.Importance{}, err
	}
	def, ladder, trials := now.study.Definition, now.ladder, now.trials
	answer := protocol.Importance{Study: def.Name, Method: importanceMethod, Rungs: []protocol.RungImportance{}, Notes: []string{}}
	for rung := len(ladder) - 1; rung >= 0; rung-- {
		found := importance.Of(def.Space, observations(trials, rung, def.Objectives[0].Direction))
		if len(found.Parameters) == 0 {
			continue
		}
		answer.Rungs = append(answer.Rungs, protocol.RungImportance{
			Rung: rung, Budget: ladder[rung].Budget, Trials: found.Trials, Best: found.Best, Parameters: described(def, found),
		})
	}
	if len(answer.Rungs) == 0 {
		answer.Notes = append(answer.Notes, fmt.Sprintf("no rung has the %d measured trials this needs", importance.Least))
		return answer, nil
	}
	if rung := answer.Rungs[0].Rung; rung > 0 {
		answer.Notes = append(answer.Notes, fmt.Sprintf("most trials came to rung %d because they were good below: it tells what matters among those", rung))
	}
	return answer, nil
}

// observations are the trials measured at the rung.
func observations(trials []trial.Trial, rung int, direction definition.Direction) []importance.Observation {
	var list []importance.Observation
	for _, t := range trials {
		for _, result := range t.Results {
			if result.Rung != rung {
				continue
			}
			score := float64(result.Values[0])
			if direction == definition.Minimize {
				score = -score
			}
			list = append(list, importance.Observation{Configuration: t.Configuration, Score: score})
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
