package study

import (
	"context"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity/groundtruth"
)

// ImportGroundTruth takes in what another server exported: all of it, or
// nothing if any of it has a fault. Of a record that is here too the newer
// version stays, so that to import the same again changes nothing.
func (s *Service) ImportGroundTruth(ctx context.Context, sent protocol.GroundTruth) (protocol.GroundTruthImported, error) {
	var reply protocol.GroundTruthImported
	if err := groundtruth.Check(sent, s.options.Now()); err != nil {
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
	if ours, err := apply(ctx, s, Change{Records: wanted}, &reply); !ours {
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
	if ours, err := apply(ctx, s, Change{Forget: &machine}, &reply); !ours {
		return reply, err
	}
	s.truth.Forget(machine)
	s.notify()
	return reply, nil
}
