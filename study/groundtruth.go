package study

import (
	"cmp"
	"context"
	"slices"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/similarity"
)

// GroundTruth returns what runs taught on a type of machine, or on all types if
// it is empty. Of a type that nothing ran on, that is nothing.
func (s *Service) GroundTruth(ctx context.Context, machine string) (protocol.GroundTruth, error) {
	records, err := s.store.Records(ctx, machine)
	return protocol.GroundTruth{Version: protocol.GroundTruthVersion, Records: records}, err
}

// GroundTruthMachines sums up what is known of each type of machine.
func (s *Service) GroundTruthMachines(ctx context.Context) ([]protocol.GroundTruthMachine, error) {
	types, err := s.store.RecordTypes(ctx)
	if err != nil {
		return nil, err
	}
	var machines []protocol.GroundTruthMachine
	for _, machine := range types {
		records, err := s.store.Records(ctx, machine)
		if err != nil {
			return nil, err
		}
		if len(records) > 0 { // else they were forgotten since
			machines = append(machines, summary(records))
		}
	}
	return machines, nil
}

// summary sums up the records of one type of machine, the oldest first.
func summary(records []similarity.Record) protocol.GroundTruthMachine {
	first, last := records[0], records[len(records)-1]
	sum := protocol.GroundTruthMachine{Machine: first.Machine, Records: len(records), Oldest: first.Updated, Newest: last.Updated}
	tried := make(map[string]bool)
	for _, record := range records {
		for _, cell := range record.Cells {
			tried[cell.Configuration.Key()] = true
			sum.Epochs += cell.Epochs
		}
	}
	sum.Configurations = len(tried)
	return sum
}

// ImportGroundTruth takes in what another server exported: all of it, or
// nothing if any of it has a fault. Of a record that is here too the newer
// version stays, so that to import the same again changes nothing.
func (s *Service) ImportGroundTruth(ctx context.Context, sent protocol.GroundTruth) (protocol.GroundTruthImported, error) {
	var reply protocol.GroundTruthImported
	now := s.options.Now()
	if err := checkGroundTruth(sent, now); err != nil {
		return reply, err
	}
	if err := s.teaching.enter(ctx); err != nil {
		return reply, problem.New(problem.Unavailable, "the caller gave up: %w", err)
	}
	defer s.teaching.leave()
	here, err := s.store.Records(ctx, "")
	if err != nil {
		return reply, err
	}
	wanted := wantedOf(sent.Records, here)
	reply = protocol.GroundTruthImported{Imported: len(wanted), Skipped: len(sent.Records) - len(wanted)}
	change := Change{Records: wanted}
	if change.Receipt, err = receiptOf(ctx, reply, now); err != nil {
		return reply, err
	}
	if err := s.store.Apply(context.WithoutCancel(ctx), change); err != nil {
		_, err := overtaken(ctx, s, err, &reply)
		return reply, err
	}
	s.learned(wanted)
	s.notify() // whoever waits for a trial may get another configuration with it
	return reply, nil
}

// wantedOf returns the records that are news, as many as there is room for.
func wantedOf(sent, here []similarity.Record) []similarity.Record {
	versions := make(map[string]similarity.Record, len(here))
	for _, record := range here {
		versions[record.ID] = record
	}
	news := slices.DeleteFunc(slices.Clone(sent), func(record similarity.Record) bool {
		kept, there := versions[record.ID]
		return there && !record.Updated.After(kept.Updated)
	})
	for _, record := range news {
		versions[record.ID] = record
	}
	// The same order as the stores': the newest of each type stay.
	all := make([]similarity.Record, 0, len(versions))
	for _, record := range versions {
		all = append(all, record)
	}
	slices.SortFunc(all, func(a, b similarity.Record) int { return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(b.ID, a.ID)) })
	ranks, kept := make(map[string]int), make(map[string]bool)
	for _, record := range all {
		kept[record.ID] = ranks[record.Machine] < MaxRecords
		ranks[record.Machine]++
	}
	return slices.DeleteFunc(news, func(record similarity.Record) bool { return !kept[record.ID] })
}

// ForgetGroundTruth removes what runs taught on a type of machine; on all types
// if it is empty. A run that goes on begins its record anew with its next report.
func (s *Service) ForgetGroundTruth(ctx context.Context, machine string) (protocol.GroundTruthForgotten, error) {
	var reply protocol.GroundTruthForgotten
	if err := s.teaching.enter(ctx); err != nil {
		return reply, problem.New(problem.Unavailable, "the caller gave up: %w", err)
	}
	defer s.teaching.leave()
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
		_, err := overtaken(ctx, s, err, &reply)
		return reply, err
	}
	s.forgot(machine)
	s.notify()
	return reply, nil
}
