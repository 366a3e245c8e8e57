package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// AimQuery says which objective and which rung an analysis is for.
type AimQuery struct {
	Objective int `query:"objective" minimum:"0" maximum:"1000" default:"0" doc:"the place of the objective, from 0"`
	Rung      int `query:"rung" minimum:"-1" default:"-1" doc:"only this rung; -1: every one, or for a path the highest with enough trials"`
}

type importanceInput struct {
	StudyRef
	AimQuery
	Method string `query:"method" enum:"ped-anova,fanova" default:"ped-anova" doc:"ped-anova: what the best trials have in common; fanova: what the values vary with, over the whole space"`
}

func (s analysisAPI) importance(ctx context.Context, input *importanceInput) (*jsonAnswer[protocol.Importance], error) {
	return answered(s.studies.Importance(ctx, input.Study, protocol.ImportanceQuery{
		Method: input.Method, Objective: input.Objective, Rung: given(input.Rung),
	}))
}

type ablationInput struct {
	StudyRef
	AimQuery
	From int `query:"from" minimum:"-1" default:"-1" doc:"the trial to start from; -1: the median of those drawn without a model"`
	To   int `query:"to" minimum:"-1" default:"-1" doc:"the trial to reach; -1: the recommended one"`
}

func (s analysisAPI) ablation(ctx context.Context, input *ablationInput) (*jsonAnswer[protocol.Ablation], error) {
	return answered(s.studies.Ablation(ctx, input.Study, protocol.AblationQuery{
		From: given(input.From), To: given(input.To), Objective: input.Objective, Rung: given(input.Rung),
	}))
}

// given is a number of a query, nil for the -1 that stands for none.
func given(number int) *int {
	if number < 0 {
		return nil
	}
	return &number
}
