package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/guard"
)

type columnsInput struct {
	StudyRef
	Rung      int `query:"rung" minimum:"-1" default:"-1" doc:"the rung; -1: the highest where 5 trials were measured, else that with most"`
	Objective int `query:"objective" minimum:"0" maximum:"1000" default:"0" doc:"the place of the objective that ranks, from 0"`
	Limit     int `query:"limit" minimum:"1" maximum:"10000" default:"2000" doc:"of more trials, the best half of as many come, and every so manieth of the others: sample tells"`
}

func (s analysisAPI) columns(ctx context.Context, input *columnsInput) (*jsonAnswer[protocol.Columns], error) {
	return answered(s.studies.Columns(ctx, input.Study, protocol.ColumnsQuery{Rung: given(input.Rung), Objective: input.Objective, Limit: input.Limit}))
}

type curvesInput struct {
	StudyRef
	Metric string `query:"metric" maxLength:"200" doc:"what the curves are of; empty: the first objective"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"of more trials, the best half of as many come, and every so manieth of the others: sample tells"`
}

func (s analysisAPI) curves(ctx context.Context, input *curvesInput) (*jsonAnswer[protocol.Curves], error) {
	return answered(s.studies.Curves(ctx, input.Study, protocol.CurvesQuery{Metric: input.Metric, Limit: input.Limit}))
}

type timelineInput struct {
	StudyRef
	Events int `query:"events" minimum:"1" maximum:"1000000" default:"20000" doc:"how many of the study's newest events are looked at: cut tells where they begin"`
}

func (s analysisAPI) timeline(ctx context.Context, input *timelineInput) (*jsonAnswer[protocol.Timeline], error) {
	return answered(s.studies.Timeline(ctx, input.Study, input.Events))
}

// chartRoutes are the routes of the data of charts.
func (s analysisAPI) chartRoutes() []route {
	return []route{
		{"GET", studyPath + "/columns", guard.Guests, 200, guard.Call, "get-columns", "Get what trials measured at one rung, in columns to draw from", handle(s.server, s.columns), nil},
		{"GET", studyPath + "/curves", guard.Guests, 200, guard.Call, "get-curves", "Get learning curves of the trials", handle(s.server, s.curves), nil},
		{"GET", studyPath + "/timeline", guard.Guests, 200, guard.Call, "get-timeline", "Say which trial ran where and when", handle(s.server, s.timeline), nil},
		{"GET", studyPath + "/plan", guard.Guests, 200, guard.Call, "get-plan", "Compare the plan with what was done", handle(s.server, ofNamed[StudyRef](s.studies.PlanProgress)), nil},
		{"GET", studyPath + "/deflation", guard.Readers, 200, guard.Call, "get-deflation", "Say what trials leave out of their data for studies of a higher priority", handle(s.server, ofNamed[StudyRef](s.studies.Deflation)), nil},
	}
}

// AimQuery says which objective and which rung an analysis is for.
type AimQuery struct {
	Objective int `query:"objective" minimum:"0" maximum:"1000" default:"0" doc:"the place of the objective, from 0"`
	Rung      int `query:"rung" minimum:"-1" default:"-1" doc:"only this rung; -1: every one"`
}

type importanceInput struct {
	StudyRef
	AimQuery
}

func (s analysisAPI) importance(ctx context.Context, input *importanceInput) (*jsonAnswer[protocol.Importance], error) {
	return answered(s.studies.Importance(ctx, input.Study, protocol.ImportanceQuery{Objective: input.Objective, Rung: given(input.Rung)}))
}

// given is a number of a query, nil for the -1 that stands for none.
func given(number int) *int {
	if number < 0 {
		return nil
	}
	return &number
}
