package study

import (
	"cmp"
	"context"
	"slices"
	"time"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/inference"
	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity/groundtruth"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
)

// holder is what the study of a trial wants that is held under the lease, and the type of
// machine of its worker.
func (s *Service) holder(ctx context.Context, id trial.ID, epoch trial.LeaseEpoch) (inference.Wanted, string, error) {
	r, t, err := s.sessions.LockedTrial(ctx, id)
	if err != nil {
		return inference.Wanted{}, "", err
	}
	want := inference.WantedBy(r.Study, r.Trials)
	r.Unlock()
	if err := holds(t, epoch); err != nil {
		return want, "", err
	}
	return want, s.allocator.SiteOf(t.Worker, id).Machine, nil
}

// ranOn is the type of machine of the worker that ran inferences for a trial, which may
// have gone on meanwhile.
func (s *Service) ranOn(ctx context.Context, id trial.ID, report protocol.InferenceReport) (string, error) {
	r, t, err := s.sessions.LockedTrial(ctx, id)
	if err != nil {
		return "", err
	}
	r.Unlock()
	if report.LeaseEpoch > t.LeaseEpoch {
		return "", problem.New(problem.LeaseLost, "trial %s was never under lease %d", id, report.LeaseEpoch)
	}
	worker := cmp.Or(report.Worker, t.Worker)
	machine := s.allocator.SiteOf(worker, id).Machine
	if machine == "" {
		return "", problem.New(problem.Unavailable, "worker %s is not registered: it registers again by itself after a restart of the server", worker)
	}
	return machine, nil
}

// importArchitectures makes what came from elsewhere durable.
func (s *Service) importArchitectures(ctx context.Context, change journal.Change, reply *protocol.ArchitecturesImported) error {
	_, err := s.sessions.Apply(ctx, change, reply)
	return err
}

// recordInference writes the architecture, and what it means for the trial and for
// others of the same architecture on such a machine.
func (s *Service) recordInference(ctx context.Context, e inference.Result, answer *protocol.ArchitectureReply) error {
	r, t, err := s.leased(ctx, e.Trial, e.Lease)
	if err != nil {
		return err
	}
	defer r.Leave()
	tx := r.Begin()
	tx.Change.Architectures = []emu.Architecture{e.Architecture}
	tx.Then(e.Then)
	if e.Precision != nil {
		tx.Stage(t.InPrecision(*e.Precision))
		return s.sessions.Commit(ctx, tx, answer)
	}
	for _, other := range r.Trials {
		same := other.Number == t.Number || other.Inference != nil && other.Inference.Architecture == e.Inference.Architecture && other.Inference.Machine == e.Inference.Machine
		if same {
			session.Infer(tx, other, e.Inference)
		}
	}
	return s.sessions.Commit(ctx, tx, answer)
}

// wanted is what studies in memory want to know of a device, of any if it has no name, the
// newest study first.
func (s *Service) wanted(name string) (list []inference.Wanted) {
	var created []time.Time
	for r := range s.sessions.Each() {
		def := r.Study.Definition
		if def.Inference == nil || name != "" && !slices.Contains(def.Inference.Names(), name) {
			continue
		}
		one := inference.WantedBy(r.Study, r.Trials)
		at, _ := slices.BinarySearchFunc(created, r.Study.Created, func(a, b time.Time) int { return b.Compare(a) })
		created, list = slices.Insert(created, at, r.Study.Created), slices.Insert(list, at, one)
	}
	return list
}

// leaders are the studies in memory that have an inference section, each with its recommended
// trial, if that has a model.
func (s *Service) leaders() (list []journal.View) {
	for r := range s.sessions.Each() {
		if r.Study.Definition.Inference == nil {
			continue
		}
		number := ranking.LeaderOf(journal.View{Study: r.Study, Trials: r.Trials})
		if number != nil && r.Trials[*number].Inference != nil {
			list = append(list, journal.View{Study: r.Study, Trials: []trial.Trial{r.Trials[*number]}})
		}
	}
	return list
}

// refreshInference gives the trials of an architecture what an inference of it takes, and
// their newest result the values that follow from it. The search keeps what it was told.
func (s *Service) refreshInference(ctx context.Context, study string, cost trial.InferenceCost) error {
	ctx = access.WithCaller(ctx, access.Caller{}) // boards see no study
	r, err := s.sessions.Locked(ctx, study)
	if err != nil {
		return err
	}
	defer r.Leave()
	tx := r.Begin()
	for _, one := range r.Trials {
		if one.Inference == nil || one.Inference.Architecture != cost.Architecture || cost.Machine != "" && one.Inference.Machine != cost.Machine {
			continue
		}
		now := cost
		now.Machine = one.Inference.Machine
		session.Infer(tx, one, now)
	}
	if len(tx.Change.Events) == 0 {
		return nil
	}
	return s.sessions.Commit(registry.Unkeyed(ctx), tx, nil)
}

// knowledge exchanges the ground truth with other servers.
type knowledge struct {
	parts
	truth    *groundtruth.Base
	teaching gate.Gate // lets one import, or one forgetting, be made at a time
}

// ImportGroundTruth takes in what another server exported: all of it, or
// nothing if any of it has a fault. Of a record that is here too the newer
// version stays, so that to import the same again changes nothing.
func (s *knowledge) ImportGroundTruth(ctx context.Context, sent protocol.GroundTruth) (protocol.GroundTruthImported, error) {
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
	if ours, err := s.sessions.Apply(ctx, journal.Change{Records: wanted}, &reply); !ours {
		return reply, err
	}
	s.truth.Learn(wanted)
	s.sessions.Notify() // whoever waits for a trial may get another configuration with it
	return reply, nil
}

// ForgetGroundTruth removes what runs taught on a type of machine; on all types
// if it is empty. A run that goes on begins its record anew with its next report.
func (s *knowledge) ForgetGroundTruth(ctx context.Context, machine string) (protocol.GroundTruthForgotten, error) {
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
	if ours, err := s.sessions.Apply(ctx, journal.Change{Forget: &machine}, &reply); !ours {
		return reply, err
	}
	s.truth.Forget(machine)
	s.sessions.Notify()
	return reply, nil
}
