package study

import (
	"context"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity/groundtruth"
)

// GroundTruth returns what runs taught on a type of machine, or on all types if
// it is empty. Of a type that nothing ran on, that is nothing.
func (s *Service) GroundTruth(ctx context.Context, machine string) (protocol.GroundTruth, error) {
	records, err := s.store.Records(ctx, machine)
	return protocol.GroundTruth{Version: protocol.GroundTruthVersion, Records: records}, err
}

// GroundTruthMachines is [groundtruth.Base.Machines].
func (s *Service) GroundTruthMachines(ctx context.Context) ([]protocol.GroundTruthMachine, error) {
	return s.truth.Machines(ctx)
}

// GroundTruthRuns is [groundtruth.Base.Runs].
func (s *Service) GroundTruthRuns(ctx context.Context, machine string, limit, offset int) (protocol.GroundTruthRuns, error) {
	return s.truth.Runs(ctx, machine, limit, offset)
}

// GroundTruthClusters is [groundtruth.Base.Clusters].
func (s *Service) GroundTruthClusters(ctx context.Context, machine, key string) (protocol.GroundTruthClusters, error) {
	return s.truth.Clusters(ctx, machine, key)
}

// ImportGroundTruth takes in what another server exported: all of it, or
// nothing if any of it has a fault. Of a record that is here too the newer
// version stays, so that to import the same again changes nothing.
func (s *Service) ImportGroundTruth(ctx context.Context, sent protocol.GroundTruth) (protocol.GroundTruthImported, error) {
	var reply protocol.GroundTruthImported
	now := s.options.Now()
	if err := groundtruth.Check(sent, now); err != nil {
		return reply, err
	}
	if err := s.teaching.Enter(ctx); err != nil {
		return reply, problem.New(problem.Unavailable, "the caller gave up: %w", err)
	}
	defer s.teaching.Leave()
	here, err := s.store.Records(ctx, "")
	if err != nil {
		return reply, err
	}
	wanted := groundtruth.Wanted(sent.Records, here)
	reply = protocol.GroundTruthImported{Imported: len(wanted), Skipped: len(sent.Records) - len(wanted)}
	change := Change{Records: wanted}
	if change.Receipt, err = receiptOf(ctx, reply, now); err != nil {
		return reply, err
	}
	if err := s.store.Apply(context.WithoutCancel(ctx), change); err != nil {
		err = overtaken(ctx, s, err, &reply)
		return reply, err
	}
	s.truth.Learn(wanted)
	s.notify() // whoever waits for a trial may get another configuration with it
	return reply, nil
}

// ForgetGroundTruth removes what runs taught on a type of machine; on all types
// if it is empty. A run that goes on begins its record anew with its next report.
func (s *Service) ForgetGroundTruth(ctx context.Context, machine string) (protocol.GroundTruthForgotten, error) {
	var reply protocol.GroundTruthForgotten
	if err := s.teaching.Enter(ctx); err != nil {
		return reply, problem.New(problem.Unavailable, "the caller gave up: %w", err)
	}
	defer s.teaching.Leave()
	here, err := s.store.Records(ctx, machine)
	if err != nil {
		return reply, err
	}
	reply.Forgotten = len(here)
	change := Change{Forget: &machine}
	if change.Receipt, err = receiptOf(ctx, reply, s.options.Now()); err != nil {
		return reply, err
	}
	if err := s.store.Apply(context.WithoutCancel(ctx), change); err != nil {
		err = overtaken(ctx, s, err, &reply)
		return reply, err
	}
	s.truth.Forget(machine)
	s.notify()
	return reply, nil
}
