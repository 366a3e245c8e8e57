package simulator

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// worker trains one trial at a time.
type worker struct {
	id string // empty: it has to register first
	// lease is the trial it trains, nil between two. epoch is the one it is
	// in, which ends with its next event.
	lease *protocol.Lease
	epoch int
	// measured is the result of that epoch, slow how much slower it trains.
	measured Measurement
	slow     float64
}

// act is what a worker does when its time has come.
func (s *simulation) act(w *worker) error {
	switch {
	case w.id == "":
		s.names++
		w.id = fmt.Sprintf("simulated-%d", s.names)
		if _, err := s.service.RegisterWorker(s.ctx, protocol.WorkerRegistration{ID: w.id, Name: w.id, Slots: 1}); err != nil {
			return err
		}
		return s.ask(w)
	case w.lease == nil:
		return s.ask(w)
	default:
		return s.endEpoch(w)
	}
}

// ask leases a trial and begins its first epoch; with nothing to do it waits
// until something changed.
func (s *simulation) ask(w *worker) error {
	reply, err := s.service.Lease(s.ctx, protocol.LeaseRequest{Worker: w.id, Study: s.study})
	switch {
	case err != nil:
		return err
	case reply.StudyFinished:
		s.over = true
		return nil
	case reply.Lease == nil:
		s.parked = append(s.parked, w)
		return nil
	}
	w.lease, w.slow = reply.Lease, 1
	if s.chance(s.options.Stragglers) {
		s.trace.Straggled++
		w.slow = s.options.Slowdown
	}
	return s.beginEpoch(w, w.lease.FirstEpoch)
}

func (s *simulation) beginEpoch(w *worker, epoch int) error {
	w.epoch = epoch
	if noisy, ok := s.benchmark.(Noisy); ok {
		w.measured = noisy.MeasureSeeded(w.lease.Params, epoch, w.lease.Budget.DataFraction, w.lease.Seed)
	} else {
		w.measured = s.benchmark.Measure(w.lease.Params, epoch, w.lease.Budget.DataFraction)
	}
	if took := w.measured.Seconds; !(took >= 0) || math.IsInf(took, 0) {
		return problem.New(problem.Invalid, "the benchmark says that epoch %d of trial %d took %v seconds: it must be a number, at least 0",
			epoch, w.lease.Number, took)
	}
	w.measured.Seconds *= w.slow
	s.plan(seconds(w.measured.Seconds), w)
	return nil
}

// endEpoch is the end of an epoch, whether anybody hears of it or not.
func (s *simulation) endEpoch(w *worker) error {
	lease := w.lease
	s.trace.Cost += lease.Budget.DataFraction
	switch {
	case s.chance(s.options.Vanishings):
		s.trace.Vanished++
		s.mark(lease, w.epoch)
		w.id, w.lease = "", nil // another worker comes in its place
		s.plan(seconds(s.options.LeaseSeconds), w)
		return nil
	case s.chance(s.options.Failures):
		s.trace.Failed++
		s.mark(lease, w.epoch)
		return s.end(w, protocol.CommandFailed)
	}
	var energy *trial.Energy
	if w.measured.Joules > 0 {
		energy = &trial.Energy{Joules: trial.Float(w.measured.Joules), Method: "estimate: simulated"}
	}
	directive, err := s.service.Report(s.ctx, lease.Trial, protocol.Report{
		Energy: energy, LeaseEpoch: lease.LeaseEpoch, Epoch: w.epoch, Seconds: trial.Float(w.measured.Seconds),
		Metrics: map[string]trial.Float{s.metric: trial.Float(w.measured.Value)},
	})
	if err != nil {
		return err
	}
	ends := directive.Action == protocol.Finish
	if ends {
		if lease.Budget == s.top {
			s.full(w.measured.Value)
		}
		if err := s.recommend(); err != nil {
			return err
		}
	}
	s.mark(lease, w.epoch)
	every := s.options.CheckpointEvery
	if ends || every > 0 && w.epoch%every == 0 && directive.Action != protocol.Stop {
		if err := s.checkpoint(w); err != nil {
			return err
		}
	}
	switch directive.Action {
	case protocol.Continue:
		return s.beginEpoch(w, w.epoch+1)
	case protocol.Finish:
		return s.end(w, protocol.BudgetReached)
	case protocol.Stop:
		s.trace.Stopped++
		return s.end(w, protocol.Interrupted)
	default:
		return s.end(w, protocol.Interrupted)
	}
}

// checkpoint stands for the state of the epoch just trained. No bytes exist:
// the service keeps only their hash.
func (s *simulation) checkpoint(w *worker) error {
	return s.service.CommitCheckpoint(s.ctx, w.lease.Trial, protocol.CheckpointCommit{
		LeaseEpoch: w.lease.LeaseEpoch, Epoch: w.epoch, Artifact: fmt.Sprintf("%032x%032x", w.lease.Number, w.epoch), Bytes: 1,
	})
}

// end gives the lease back and asks for the next one at once, behind those who
// wait already.
func (s *simulation) end(w *worker, outcome protocol.Outcome) error {
	_, err := s.service.Finish(s.ctx, w.lease.Trial, protocol.FinishRequest{LeaseEpoch: w.lease.LeaseEpoch, Outcome: outcome})
	if err != nil {
		return err
	}
	w.lease = nil
	s.wake()
	s.plan(0, w)
	return nil
}

// beat is a worker's heartbeat; one that vanished sends none.
func (s *simulation) beat(w *worker) error {
	if w.id == "" {
		return nil
	}
	var beat protocol.Heartbeat
	if w.lease != nil {
		beat.Leases = []protocol.HeldLease{{Trial: w.lease.Trial, LeaseEpoch: w.lease.LeaseEpoch}}
	}
	_, err := s.service.Heartbeat(s.ctx, w.id, beat)
	return err
}

// full takes in a value that was measured at the full budget.
func (s *simulation) full(value float64) {
	best := s.incumbent.Full
	if better := s.maximize && value > best || !s.maximize && value < best; better || math.IsNaN(best) {
		s.incumbent.Full = value
	}
}

// recommend asks the study for its answer so far.
func (s *simulation) recommend() error {
	answer, err := s.service.Recommendation(s.ctx, s.study)
	if err != nil || answer.Best == nil {
		return err
	}
	s.incumbent.Value = float64(answer.Best.Value)
	if answer.Best.Number != s.incumbent.Incumbent {
		s.incumbent.Incumbent = answer.Best.Number
		s.incumbent.True = s.benchmark.Measure(answer.Best.Params, s.top.Epochs, s.top.DataFraction).Value
	}
	return nil
}

// mark adds a point to the trace.
func (s *simulation) mark(lease *protocol.Lease, epoch int) {
	point := s.incumbent
	point.Seconds, point.Cost, point.Trial, point.Epoch = s.now.Seconds(), s.trace.Cost, lease.Number, epoch
	s.trace.Points = append(s.trace.Points, point)
}
