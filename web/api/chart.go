package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
)

type columnsInput struct {
	StudyRef
	Rung      int `query:"rung" minimum:"-1" default:"-1" doc:"the rung; -1: the one where most trials were measured"`
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

// chartRoutes are the lines of the table for what charts are drawn from.
func (s analysisAPI) chartRoutes() []route {
	return []route{
		{"GET", studyPath + "/columns", guests, 200, call, "get-columns", "Get what trials measured at one rung, in columns to draw from", handle(s.server, s.columns), nil},
		{"GET", studyPath + "/curves", guests, 200, call, "get-curves", "Get learning curves of the trials", handle(s.server, s.curves), nil},
		{"GET", studyPath + "/timeline", guests, 200, call, "get-timeline", "Say which trial ran where and when", handle(s.server, s.timeline), nil},
		{"GET", studyPath + "/plan", guests, 200, call, "get-plan", "Compare the plan with what was done", handle(s.server, ofStudy(s.studies.PlanProgress)), nil},
		{"GET", studyPath + "/deflation", readers, 200, call, "get-deflation", "Say what trials leave out of their data for studies of a higher priority", handle(s.server, ofStudy(s.studies.Deflation)), nil},
	}
}
