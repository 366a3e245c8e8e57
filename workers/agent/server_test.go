package agent_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/trial/series"
	"github.com/tandem-tune/tandem/workers/agent"
)

// server is a small real server in memory: trials that climb a ladder, leases
// with epochs, artifacts by hash. It can be away, and it can forget workers.
type server struct {
	machine  protocol.Machine // of the last worker that registered
	features []protocol.Feature
	launch   string
	measures []protocol.Measure
	probes   []protocol.Probe
	load     *protocol.Load // the last one that was told
	elastic  bool           // it says so
	timing   protocol.Timing
	identity protocol.Identity     // of the token
	denies   error                 // it is answered instead
	each     func(*protocol.Lease) // is done with a trial before it can be leased

	mutex         sync.Mutex
	changed       chan struct{} // closed and replaced at each change
	away          bool
	slow          time.Duration // that it takes for a report
	leaves        bool          // it goes away when it has granted a lease
	keeps         bool          // it refuses heartbeats, and keeps their leases
	over          bool          // its study is finished
	refused       int           // calls while it was away
	attempts      []protocol.Report
	workers       map[string]int
	registered    int
	left          int
	beats         int
	asked         int                       // how often a trial was asked for
	swallows      int                       // answers with a lease that get lost
	swallowed     int                       // those that did
	since         func()                    // what happens when one does
	given         map[string]protocol.Lease // by the call's key
	quiet         float64                   // the longest silence that a heartbeat told of
	trials        []*task
	artifacts     map[string][]byte
	forgets       int    // commits before which it is started anew
	sends         func() // before an artifact arrives
	refuses       error  // what it answers artifacts
	writes        []write
	cells         []protocol.InferenceCell // to run for each architecture
	architectures []protocol.ArchitectureReport
	inferences    []protocol.InferenceReport
}

var _ agent.Server = (*server)(nil)

func newServer() *server {
	return &server{
		identity: protocol.Identity{Name: "test", Scope: "worker"},
		timing:   protocol.Timing{LeaseSeconds: 60, HeartbeatSeconds: 0.1},
		changed:  make(chan struct{}), workers: map[string]int{}, given: map[string]protocol.Lease{}, artifacts: map[string][]byte{},
	}
}

// add queues a trial that climbs the rungs, each so many epochs.
func (s *server) add(command []string, environment map[string]string, rungs ...int) *task {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	number := len(s.trials)
	t := &task{rungs: rungs, queued: true, log: map[trial.LeaseEpoch]string{}, lease: protocol.Lease{
		Trial: trial.ID(fmt.Sprintf("s1-%d", number)), Study: "story", StudyID: "s1", Number: number,
		Command: command, Environment: environment, Seed: 7, Objectives: []string{"accuracy"}, Timing: s.timing,
	}}
	if s.each != nil {
		s.each(&t.lease)
	}
	s.trials = append(s.trials, t)
	s.announce()
	return t
}

func (s *server) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// change does something to the server's state.
func (s *server) change(what func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	what()
	s.announce()
}

// await returns when the condition holds.
func (s *server) await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		s.mutex.Lock()
		holds, changed := condition(), s.changed
		s.mutex.Unlock()
		if holds {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			s.mutex.Lock()
			defer s.mutex.Unlock()
			for _, t2 := range s.trials {
				t.Logf("%+v", *t2)
			}
			t.Fatalf("waited in vain until %s; writes: %+v", what, s.writes)
		}
	}
}

func (s *server) here() error {
	if s.away {
		s.refused++
		s.announce()
		return problem.New(problem.Unavailable, "the server is away")
	}
	return nil
}

func (s *server) Identity(context.Context) (protocol.Identity, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.here(); err != nil {
		return protocol.Identity{}, err
	}
	return s.identity, s.denies
}

func (s *server) Register(_ context.Context, registration protocol.WorkerRegistration) (protocol.Timing, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.here(); err != nil {
		return protocol.Timing{}, err
	}
	s.workers[registration.ID] = registration.Slots
	s.machine, s.elastic, s.launch = registration.Machine, registration.Elastic, registration.Launch
	s.measures, s.probes, s.features = registration.Measures, registration.Probes, registration.Features
	s.registered++
	s.announce()
	return s.timing, nil
}

func (s *server) known(worker string) error {
	if err := s.here(); err != nil {
		return err
	}
	if _, ok := s.workers[worker]; !ok {
		return problem.New(problem.NotFound, "worker %q is not registered", worker)
	}
	return nil
}

func (s *server) Unregister(_ context.Context, worker string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.known(worker); err != nil {
		return err
	}
	delete(s.workers, worker)
	s.left++
	s.announce()
	return nil
}

func (s *server) Heartbeat(_ context.Context, worker string, beat protocol.Heartbeat) (protocol.HeartbeatReply, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.known(worker); err != nil {
		return protocol.HeartbeatReply{}, err
	}
	s.beats++
	if s.keeps {
		s.announce()
		return protocol.HeartbeatReply{}, protocol.Kept{Refusal: problem.New(problem.Unavailable, "no room for a heartbeat")}
	}
	if beat.Load != nil {
		s.load = beat.Load
		s.announce()
	}
	reply := protocol.HeartbeatReply{Directives: map[trial.ID]protocol.Directive{}}
	for _, held := range beat.Leases {
		t, err := s.held(held.Trial, held.LeaseEpoch)
		s.quiet = max(s.quiet, held.QuietSeconds)
		if err != nil {
			reply.Lost = append(reply.Lost, held.Trial)
			s.writes = append(s.writes, write{"heartbeat", held.Trial, held.LeaseEpoch, err})
		} else if t.directive.Action != "" {
			reply.Directives[held.Trial] = t.directive
		}
		if err == nil && t.hurried {
			reply.Hurried = append(reply.Hurried, held.Trial)
		}
	}
	s.announce()
	return reply, nil
}

func (s *server) Lease(ctx context.Context, request protocol.LeaseRequest) (protocol.LeaseReply, error) {
	s.change(func() { s.asked++ })
	wait := time.After(time.Duration(request.WaitSeconds * float64(time.Second)))
	for {
		s.mutex.Lock()
		err := s.known(request.Worker)
		if err == nil && request.Study != "" && request.Study != "story" {
			err = problem.New(problem.NotFound, "no study %q", request.Study)
		}
		var granted *protocol.Lease
		if err == nil {
			granted, err = s.answer(request)
		}
		changed, over := s.changed, s.over
		s.mutex.Unlock()
		if err != nil || granted != nil || over {
			return protocol.LeaseReply{Lease: granted, StudyFinished: over}, err
		}
		select {
		case <-changed:
		case <-wait:
			return protocol.LeaseReply{}, nil
		case <-ctx.Done():
			return protocol.LeaseReply{}, ctx.Err()
		}
	}
}

// answer gives the call what it was given before, or a trial that waits.
func (s *server) answer(request protocol.LeaseRequest) (*protocol.Lease, error) {
	lease, given := s.given[request.Key]
	if !given {
		granted := s.grant(request.Worker)
		if granted == nil {
			return nil, nil
		}
		lease = *granted
		s.given[request.Key] = lease
	}
	if s.swallows > 0 {
		s.swallows--
		s.swallowed++
		if s.since != nil {
			s.since()
		}
		s.announce()
		return nil, problem.New(problem.Unavailable, "the answer is lost")
	}
	return &lease, nil
}

func (s *server) grant(worker string) *protocol.Lease {
	for _, t := range s.trials {
		if !t.queued {
			continue
		}
		t.queued, t.holder = false, worker
		t.lease.LeaseEpoch++
		t.lease.Rung, t.lease.Budget = t.rung, budget.Budget{Epochs: t.rungs[t.rung], DataFraction: 0.5}
		t.lease.Checkpoint, t.lease.FirstEpoch = t.checkpoint, 1
		if t.checkpoint != nil {
			t.lease.FirstEpoch = t.checkpoint.Epoch + 1
		}
		t.resumed = append(t.resumed, t.lease.FirstEpoch)
		lease := t.lease
		s.away = s.leaves
		s.announce()
		return &lease
	}
	return nil
}

func (s *server) held(id trial.ID, epoch trial.LeaseEpoch) (*task, error) {
	for _, t := range s.trials {
		if t.lease.Trial != id {
			continue
		}
		if t.holder == "" || t.lease.LeaseEpoch != epoch {
			return nil, problem.New(problem.LeaseLost, "trial %s is under lease %d, not %d", id, t.lease.LeaseEpoch, epoch)
		}
		return t, nil
	}
	return nil, problem.New(problem.NotFound, "no trial %s", id)
}

// fenced runs a write under a lease and notes it.
func (s *server) fenced(call string, id trial.ID, epoch trial.LeaseEpoch, do func(*task) error) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.here(); err != nil {
		return err
	}
	t, err := s.held(id, epoch)
	if err == nil {
		err = do(t)
	}
	s.writes = append(s.writes, write{call, id, epoch, err})
	s.announce()
	return err
}

func (s *server) Report(_ context.Context, id trial.ID, report protocol.Report) (directive protocol.Directive, err error) {
	s.change(func() { s.attempts = append(s.attempts, report) })
	time.Sleep(s.slow)
	err = s.fenced("report", id, report.LeaseEpoch, func(t *task) error {
		if report.Epoch == t.lease.Budget.Epochs && len(report.Metrics) > 0 {
			if _, ok := report.Metrics["accuracy"]; !ok {
				return problem.WithFields("the report is not valid", []problem.Field{{Path: "metrics.accuracy", Message: "the objective is missing"}})
			}
		}
		t.reports = append(t.reports, report)
		directive = protocol.Directive{Action: protocol.Continue}
		if t.directive.Action != "" {
			directive = t.directive
		}
		directive.System = t.systems[report.Epoch]
		if report.Epoch == t.lease.Budget.Epochs {
			directive = protocol.Directive{Action: protocol.Finish}
		}
		return nil
	})
	return directive, err
}

func (s *server) CommitCheckpoint(_ context.Context, id trial.ID, commit protocol.CheckpointCommit) error {
	return s.fenced("checkpoint", id, commit.LeaseEpoch, func(t *task) error {
		if s.forgets > 0 {
			s.forgets--
			delete(s.artifacts, commit.Artifact)
		}
		if _, ok := s.artifacts[commit.Artifact]; !ok {
			return problem.New(problem.Conflict, "send artifact %s first", commit.Artifact)
		}
		t.checkpoint = &trial.Checkpoint{Epoch: commit.Epoch, Rung: t.rung, Artifact: commit.Artifact, Bytes: commit.Bytes}
		return nil
	})
}

func (s *server) Finish(_ context.Context, id trial.ID, request protocol.FinishRequest) (reply protocol.FinishReply, err error) {
	err = s.fenced("finish", id, request.LeaseEpoch, func(t *task) error {
		t.holder = ""
		t.finishes = append(t.finishes, request)
		switch {
		case request.Outcome == protocol.BudgetReached && t.rung+1 < len(t.rungs):
			t.rung++
			t.queued = !t.hold
		case request.Outcome == protocol.Interrupted:
			if t.checkpoint != nil && request.Unusable == t.checkpoint.Artifact {
				t.checkpoint = nil
			}
			t.queued = t.directive.Action == "" && !t.hold
		}
		return nil
	})
	return protocol.FinishReply{State: trial.Paused}, err
}

func (s *server) AppendLog(_ context.Context, id trial.ID, chunk protocol.LogChunk) error {
	if len(chunk.Text) > 64<<10 {
		return problem.New(problem.Exhausted, "too much text at once")
	}
	return s.fenced("log", id, chunk.LeaseEpoch, func(t *task) error {
		text := t.log[chunk.LeaseEpoch]
		if chunk.Offset > int64(len(text)) {
			return problem.New(problem.Invalid, "a gap in the log")
		}
		t.log[chunk.LeaseEpoch] = text[:chunk.Offset] + chunk.Text
		return nil
	})
}

func (s *server) KeepSamples(_ context.Context, id trial.ID, batch protocol.SampleBatch) error {
	return s.fenced("samples", id, batch.LeaseEpoch, func(t *task) (err error) {
		t.samples, err = series.Decode(batch.Data)
		s.announce()
		return err
	})
}

func (s *server) LogArtifact(_ context.Context, id trial.ID, log protocol.ArtifactLog) error {
	return s.fenced("artifact", id, log.LeaseEpoch, func(t *task) error {
		content, ok := s.artifacts[log.Artifact]
		if !ok || s.forgets > 0 {
			s.forgets--
			return problem.New(problem.Conflict, "send artifact %s first", log.Artifact)
		}
		if t.logged == nil {
			t.logged = map[string]string{}
		}
		t.logged[log.Name] = string(content)
		return nil
	})
}

func (s *server) PutArtifact(_ context.Context, hash string, size int64, open func() (io.ReadCloser, error)) error {
	if s.sends != nil {
		s.sends()
	}
	if s.refuses != nil {
		return s.refuses
	}
	body, err := open()
	if err != nil {
		return err
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != hash || int64(len(content)) != size {
		return problem.New(problem.Invalid, "the artifact is damaged")
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.here(); err != nil {
		return err
	}
	s.artifacts[hash] = content
	return nil
}

func (s *server) Artifact(_ context.Context, hash string) (io.ReadCloser, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.here(); err != nil {
		return nil, err
	}
	content, ok := s.artifacts[hash]
	if !ok {
		return nil, problem.New(problem.NotFound, "no artifact %s", hash)
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}
