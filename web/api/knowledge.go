package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// MachineQuery names a type of machine.
type MachineQuery struct {
	Machine string `query:"machine" maxLength:"1024" doc:"a type of machine, as the list names it"`
}

// OneMachineQuery is MachineQuery where what is known of several types makes no
// sense together.
type OneMachineQuery struct {
	Machine string `query:"machine" required:"true" minLength:"1" maxLength:"1024" doc:"a type of machine, as the list names it"`
}

type machineList struct {
	Machines []protocol.GroundTruthMachine `json:"machines"`
}

type truthInput struct{ MachineQuery }

// groundTruth answers all types of machine where none is named.
func (s knowledgeAPI) groundTruth(ctx context.Context, input *truthInput) (*jsonAnswer[protocol.GroundTruth], error) {
	truth, err := s.studies.GroundTruth(ctx, input.Machine)
	truth.Records = orEmpty(truth.Records)
	return answered(truth, err)
}

type runsInput struct {
	OneMachineQuery
	Limit  int `query:"limit" default:"100" minimum:"1" maximum:"1000"`
	Offset int `query:"offset" minimum:"0"`
}

func (s knowledgeAPI) groundTruthRuns(ctx context.Context, input *runsInput) (*jsonAnswer[protocol.GroundTruthRuns], error) {
	page, err := s.studies.GroundTruthRuns(ctx, input.Machine, input.Limit, input.Offset)
	page.Runs = orEmpty(page.Runs)
	return answered(page, err)
}

type clustersInput struct {
	OneMachineQuery
	Configuration string `query:"configuration" maxLength:"4096" doc:"the key of a configuration, as the answer lists them; without it, the one with most runs"`
}

func (s knowledgeAPI) groundTruthClusters(ctx context.Context, input *clustersInput) (*jsonAnswer[protocol.GroundTruthClusters], error) {
	answer, err := s.studies.GroundTruthClusters(ctx, input.Machine, input.Configuration)
	answer.Configurations, answer.Workloads = orEmpty(answer.Configurations), orEmpty(answer.Workloads)
	return answered(answer, err)
}

type forgetInput struct {
	MachineQuery
	All bool `query:"all" doc:"forget every type of machine"`
}

// forgetGroundTruth takes a type of machine or all=true, so that a forgotten
// parameter does not forget everything.
func (s knowledgeAPI) forgetGroundTruth(ctx context.Context, input *forgetInput) (*jsonAnswer[protocol.GroundTruthForgotten], error) {
	if (input.Machine != "") == input.All {
		return nil, problem.WithFields("the query has a fault", []problem.Field{
			{Path: "machine", Value: input.Machine, Message: "must be the type of machine to forget, or else all=true: one of them"}})
	}
	return answered(s.studies.ForgetGroundTruth(ctx, input.Machine))
}

func (s knowledgeAPI) deployments(ctx context.Context, input *TrialRef) (*jsonAnswer[protocol.Deployments], error) {
	return answered(s.studies.Deployments(ctx, input.Study, input.Number))
}

type architecturesInput struct {
	Limit int `query:"limit" default:"100" minimum:"1" maximum:"1000"`
}

func (s knowledgeAPI) architectures(ctx context.Context, input *architecturesInput) (*jsonAnswer[protocol.Architectures], error) {
	found, err := s.studies.Architectures(ctx, input.Limit)
	found.Architectures = orEmpty(found.Architectures)
	return answered(found, err)
}
