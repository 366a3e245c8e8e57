package api

import (
	"context"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/protocol"
)

// MachineQuery names a type of machine.
type MachineQuery struct {
	Machine string `query:"machine" maxLength:"1024" doc:"a type of machine, as the list names it"`
}

type machineList struct {
	Machines []protocol.GroundTruthMachine `json:"machines"`
}

type machinesAnswer struct{ Body machineList }

func (s *server) listGroundTruth(ctx context.Context, _ *nothing) (*machinesAnswer, error) {
	machines, err := s.studies.GroundTruthMachines(ctx)
	return &machinesAnswer{Body: machineList{Machines: orEmpty(machines)}}, err
}

type truthInput struct{ MachineQuery }

type truthAnswer struct{ Body protocol.GroundTruth }

// groundTruth answers all types of machine where none is named.
func (s *server) groundTruth(ctx context.Context, input *truthInput) (*truthAnswer, error) {
	truth, err := s.studies.GroundTruth(ctx, input.Machine)
	truth.Records = orEmpty(truth.Records)
	return &truthAnswer{Body: truth}, err
}

type importInput struct {
	Content[protocol.GroundTruth]
}

type importAnswer struct{ Body protocol.GroundTruthImported }

func (s *server) importGroundTruth(ctx context.Context, input *importInput) (*importAnswer, error) {
	reply, err := s.studies.ImportGroundTruth(ctx, input.Body)
	return &importAnswer{Body: reply}, err
}

type forgetInput struct {
	MachineQuery
	All bool `query:"all" doc:"forget every type of machine"`
}

type forgetAnswer struct{ Body protocol.GroundTruthForgotten }

// forgetGroundTruth takes a type of machine or all=true, so that a forgotten
// parameter does not forget everything.
func (s *server) forgetGroundTruth(ctx context.Context, input *forgetInput) (*forgetAnswer, error) {
	if (input.Machine != "") == input.All {
		return nil, problem.WithFields("the query has a fault", []problem.Field{
			{Path: "machine", Value: input.Machine, Message: "must be the type of machine to forget, or else all=true: one of them"}})
	}
	reply, err := s.studies.ForgetGroundTruth(ctx, input.Machine)
	return &forgetAnswer{Body: reply}, err
}
