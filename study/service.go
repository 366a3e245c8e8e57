package study

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/inference_emu/inference"
	"github.com/tandem-tune/tandem/internal/failpoint"
	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/groundtruth"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/analysis"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/approximation"
	"github.com/tandem-tune/tandem/workers/governor"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/scheduler"
)

// Options are what a Service takes from its surroundings.
type Options struct {
	// Now is the clock; its readings must carry a monotonic part.
	Now func() time.Time
	// Random returns 64 random bits, for ids and for seeds nobody chose.
	Random func() uint64
	// LeaseSeconds is how long a lease lives without a heartbeat (60 if 0),
	// HeartbeatSeconds how often workers send one (10 if 0).
	LeaseSeconds, HeartbeatSeconds float64
	Logger                         *slog.Logger
	// Autoscale is how the server drains workers by itself, for people to see.
	Autoscale protocol.PoolAutoscale
	// Similarity is how runs are grouped into workloads where a study does not say.
	Similarity similarity.Grouping
	// Users are the names of the users there are; nil: any name may be one's.
	Users func(context.Context) (map[string]bool, error)
}

// What a Service does by other objects: with copies of studies alone, about
// inference, and with the rules of the pool.
type (
	analysed struct{ *analysis.Queries }
	ranked   struct{ *ranking.Queries }
	taught   struct{ groundtruth.Queries }
	inferred struct{ *inference.Service }
	governed struct{ *governor.Governor }
)

// Service holds the use cases. It is safe for concurrent use.
//
// Locks: a study's session is locked before the allocator, which is never locked
// across a call to another object. Within a study decisions are made one at a
// time; their writes wait for the disk together.
type Service struct {
	store   Store
	logs    LogStore
	options Options
	truth   *groundtruth.Base

	sessionOptions session.Options
	mutex          sync.Mutex // guards sessions, turns, ended and changed
	sessions       map[string]*session.Session
	turns          map[string]gate.Gate         // of elastic workers, by their id
	ended          map[protocol.StudyStatus]int // counts studies that have ended
	changed        chan struct{}                // closed and replaced whenever anything changes

	// analyses lets one surrogate or trajectory be computed at a time.
	analyses gate.Gate
	analysed
	ranked
	taught
	// teaching lets one import, or one forgetting, of ground truth be made at a time.
	teaching gate.Gate
	inferred

	uploads uploads // what was sent, and may be committed

	approximation *approximation.Controller
	gpus          *gpushare.Model
	// learning lets one model of GPUs be fitted at a time.
	learning gate.Gate

	governed

	allocator *allocator.Allocator
	// scheduler is locked before a session.
	scheduler *scheduler.Scheduler
}

// New returns a Service on the stores. Call Start before anything else.
func New(store Store, logs LogStore, options Options) *Service {
	if options.LeaseSeconds <= 0 {
		options.LeaseSeconds = 60
	}
	if options.HeartbeatSeconds <= 0 {
		options.HeartbeatSeconds = 10
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{
		store: store, logs: logs, options: options, truth: groundtruth.New(store, options.Similarity),
		sessions: make(map[string]*session.Session), turns: make(map[string]gate.Gate), changed: make(chan struct{}), analyses: gate.New(), teaching: gate.New(), ended: make(map[protocol.StudyStatus]int), approximation: approximation.New(), learning: gate.New(), uploads: uploads{sent: make(map[string][]upload)},
	}
	s.gpus = gpushare.New(store, gpushare.Options{Now: options.Now, RefusalTerm: s.leaseTerm(), Logger: options.Logger})
	s.sessionOptions = session.Options{Now: options.Now, Store: store, Logger: options.Logger, GPUs: s.gpus, Loaded: s.regrant}
	s.allocator = allocator.New(allocator.Options{Now: options.Now, Term: s.leaseTerm()})
	s.governed = governed{governor.New(s.allocator, governor.Options{
		Now: options.Now, NewID: s.newID, Users: options.Users, Find: s.find, Apply: s.applyRules, Changed: s.notify, Autoscale: options.Autoscale,
	})}
	s.scheduler = scheduler.New(scheduled{s}, s.allocator, options.Now)
	s.inferred = inferred{inference.New(store, inference.Options{Holder: s.holder, Record: s.recordInference, Import: s.importArchitectures, Look: s.Look, Gate: s.analyses, Now: options.Now})}
	s.taught = taught{s.truth.Queries()}
	s.ranked = ranked{ranking.New(store, ranking.Options{Look: s.Look, Deployments: s.Deployments, Now: options.Now})}
	s.analysed = analysed{analysis.New(store, analysis.Options{Look: s.Look, Leader: ranking.LeaderOf, Gate: s.analyses, Now: options.Now})}
	return s
}

// Start loads the studies that are not over and gives every lease that was out
// when the server stopped a whole new term, so that a restart of any length
// costs no live trial. The time without a server does not count as the
// studies' time.
func (s *Service) Start(ctx context.Context) error {
	if err := s.loadPool(ctx); err != nil {
		return err
	}
	studies, err := s.store.Studies(ctx)
	if err != nil {
		return fmt.Errorf("load the studies: %w", err)
	}
	for _, stored := range studies {
		if stored.Status.Over() {
			continue
		}
		r, err := s.session(ctx, stored.ID)
		if err != nil {
			return fmt.Errorf("load study %s: %w", stored.Definition.Name, err)
		}
		if err := r.ResumeTime(ctx); err != nil {
			return fmt.Errorf("go on with study %s: %w", stored.Definition.Name, err)
		}
	}
	s.resumeMigrations()
	return nil
}

// Close stores a snapshot of every search, so that the next start replays
// nothing and may be another version, and the studies' time so far.
func (s *Service) Close(ctx context.Context) error {
	var failures []error
	now := s.options.Now()
	if err := s.Keep(ctx, now, now, true); err != nil {
		failures = append(failures, err)
	}
	if err := s.saveGPUs(ctx, true); err != nil {
		failures = append(failures, err)
	}
	if err := s.keepResponses(ctx, now, true); err != nil {
		failures = append(failures, err)
	}
	for r := range s.each() {
		if err := r.Close(ctx); err != nil {
			failures = append(failures, fmt.Errorf("close study %s: %w", r.Study.Definition.Name, err))
		}
	}
	return errors.Join(failures...)
}

// loaded returns the sessions in memory.
func (s *Service) loaded() []*session.Session {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Collect(maps.Values(s.sessions))
}

// each yields the sessions in memory, each while it is locked. That is never done while
// the service's lock is held, since commits take them the other way round.
func (s *Service) each() iter.Seq[*session.Session] {
	return func(yield func(*session.Session) bool) {
		for _, r := range s.loaded() {
			r.Lock()
			more := yield(r)
			r.Unlock()
			if !more {
				return
			}
		}
	}
}

// inMemory returns the study's session; nil if it is not loaded.
func (s *Service) inMemory(study string) *session.Session {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.sessions[study]
}

// session returns the study's session, loading it when needed. It is the one
// way to a study: what the caller may not see is not found here.
func (s *Service) session(ctx context.Context, ref string) (*session.Session, error) {
	s.mutex.Lock()
	if r, ok := s.sessions[ref]; ok && callerOf(ctx).Sees(r.ID, r.Owner) {
		s.mutex.Unlock()
		return r, nil
	}
	s.mutex.Unlock()
	stored, err := s.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	s.mutex.Lock()
	r, ok := s.sessions[stored.ID]
	if !ok {
		r = session.New(&s.sessionOptions, stored)
		s.sessions[stored.ID] = r
	}
	s.mutex.Unlock()
	r.Lock()
	defer r.Unlock()
	return r, s.refresh(ctx, r)
}

// locked returns the study's session with its lock held and its state fresh.
func (s *Service) locked(ctx context.Context, ref string) (*session.Session, error) {
	r, err := s.session(ctx, ref)
	if err != nil {
		return nil, err
	}
	r.Lock()
	if err := s.refresh(ctx, r); err != nil {
		r.Unlock()
		return nil, err
	}
	r.Used = s.options.Now()
	return r, nil
}

// lockedTrial returns the session of a trial's study, locked, and the trial, to
// whom may write under its lease. A trial that does not exist (its study was
// deleted) is a lost lease, and so is one that somebody else holds.
func (s *Service) lockedTrial(ctx context.Context, id trial.ID) (*session.Session, trial.Trial, error) {
	study, _, ok := strings.Cut(string(id), "-")
	if !ok {
		return nil, trial.Trial{}, problem.New(problem.NotFound, "there is no trial %q", id)
	}
	r, err := s.locked(ctx, study)
	if problem.Is(err, problem.NotFound) {
		lost := error(problem.New(problem.LeaseLost, "trial %s is gone: its study was deleted", id))
		if access.Denied(err) {
			lost = access.Deny(lost)
		}
		return nil, trial.Trial{}, lost
	}
	if err != nil {
		return nil, trial.Trial{}, err
	}
	number, ok := id.Number()
	if !ok || number >= len(r.Trials) {
		r.Unlock()
		return nil, trial.Trial{}, problem.New(problem.NotFound, "there is no trial %q", id)
	}
	t := r.Trials[number]
	if !callerOf(ctx).Holds(t.Holder) {
		r.Unlock()
		return nil, trial.Trial{}, access.Deny(problem.New(problem.LeaseLost, "trial %s is out under a lease of another worker: stop working on it", id))
	}
	return r, t, nil
}

// notify wakes everybody who waits for work or for events.
func (s *Service) notify() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// changes returns a channel that is closed at the next change.
func (s *Service) changes() <-chan struct{} {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.changed
}

func (s *Service) leaseTerm() time.Duration {
	return time.Duration(s.options.LeaseSeconds * float64(time.Second))
}

func (s *Service) timing() protocol.Timing {
	return protocol.Timing{LeaseSeconds: s.options.LeaseSeconds, HeartbeatSeconds: s.options.HeartbeatSeconds}
}

// forget drops a session whose study is not in the store any more.
func (s *Service) forget(r *session.Session) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.sessions[r.Study.ID] == r {
		delete(s.sessions, r.Study.ID)
	}
}

// look returns what a query sees in the study, once all of that is durable.
func look[T any](ctx context.Context, s *Service, ref string, see func(*session.Session) (T, error)) (T, error) {
	for {
		var nothing T
		r, err := s.locked(ctx, ref)
		if err != nil {
			return nothing, err
		}
		seen, err := see(r)
		refused := r.Wait()
		r.Unlock()
		if refused == nil {
			return seen, err
		}
	}
}

// refresh loads the session from the store if it is stale.
func (s *Service) refresh(ctx context.Context, r *session.Session) error {
	err := r.Refresh(ctx)
	if problem.Is(err, problem.NotFound) {
		s.forget(r)
	}
	return err
}

// commit hands the transaction to the store and shows it in memory at once, so
// that the next use case of the study goes on from it and both share the wait
// for the disk; the session's lock is let go for that time. When it returns,
// the change is durable or refused. A refused change takes those behind it
// along: each is written only behind the event it was decided on.
//
// answer points to what the caller will be told; if another request with the same
// Idempotency-Key won the race, it is replaced by the answer that one stored.
func commit(ctx context.Context, s *Service, tx *session.Transaction, answer any) error {
	var err error
	if tx.Change.Receipt, err = receiptOf(ctx, answer, tx.Now); err != nil {
		tx.Abandon()
		return err
	}
	if err := failpoint.Here(failpoint.StudyDecided); err != nil {
		tx.Abandon()
		return err
	}
	if err := tx.Write(ctx); err != nil {
		return overtaken(ctx, s, err, answer)
	}
	for _, follow := range tx.After {
		follow()
	}
	if tx.Study != nil && tx.Study.Status.Over() {
		s.mutex.Lock()
		s.ended[tx.Study.Status]++
		s.mutex.Unlock()
	}
	s.notify()
	return nil
}
