// Package study is the hub: what is being tuned, and what happens next?
//
// [Service] holds the use cases (create, lease, report, finish, promote,
// expire, recommend). Each is one decision by the pure packages below it and
// one [journal.Change] applied by a [journal.Store] in one transaction; no transaction is open
// while a search thinks. The package does no I/O of its own: storage, the clock
// and randomness come in through small interfaces, and it knows neither HTTP
// nor SQL.
//
// Its one invariant: what a caller was told has been stored, and a write under
// an old lease epoch changes nothing.
package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/inference_emu/inference"
	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/groundtruth"
	"github.com/tandem-tune/tandem/study/analysis"
	"github.com/tandem-tune/tandem/study/dataset"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/duties"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/poolview"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/study/tariff"
	"github.com/tandem-tune/tandem/study/team"
	"github.com/tandem-tune/tandem/study/upload"
	"github.com/tandem-tune/tandem/study/warmstart"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/approximation"
	"github.com/tandem-tune/tandem/workers/governor"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/scheduler"
)

// Store keeps the studies, and everything that belongs to none.
type Store interface {
	journal.Store
	journal.SharedStore
}

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
	// Similarity is how runs are grouped into workloads where a study does not say.
	Similarity similarity.Grouping
	// Tariff has prices and carbon intensities; nil: there are none.
	Tariff *tariff.Tariff
	// Users are the names of the users there are; nil: any name may be one's.
	Users func(context.Context) (map[string]bool, error)

	lock sync.Locker // of the allocator; nil: one of its own
}

// What a Service does by other objects: with copies of studies alone, about
// inference, and with the rules of the pool.
type (
	analysed struct{ *analysis.Queries }
	ranked   struct{ *ranking.Queries }
	taught   struct{ groundtruth.Queries }
	inferred struct{ *inference.Service }
	placed   struct{ *inference.Places }
	governed struct{ *governor.Governor }
	viewed   struct{ *poolview.Views }
	stocked  struct{ *dataset.Catalogue }
	teamed   struct{ *team.Directory }
)

// parts are what all use cases work on.
type parts struct {
	store         Store
	options       *Options
	sessions      *registry.Registry
	allocator     *allocator.Allocator
	gpus          *gpushare.Model
	approximation *approximation.Controller
}

// Service holds the use cases. It is safe for concurrent use.
//
// Locks: a study's session is locked before the allocator, which is never locked
// across a call to another object. Within a study decisions are made one at a
// time; their writes wait for the disk together.
type Service struct {
	parts
	scheduler *scheduler.Scheduler
	on        duties.On

	*studies
	*queries
	*leases
	*knowledge
	analysed
	ranked
	taught
	inferred
	placed
	governed
	viewed
	stocked
	teamed
}

// New returns a Service on the stores. Call Start before anything else.
func New(store Store, logs journal.LogStore, options Options) *Service {
	if options.LeaseSeconds <= 0 {
		options.LeaseSeconds = 60
	}
	if options.HeartbeatSeconds <= 0 {
		options.HeartbeatSeconds = 10
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{parts: parts{store: store, options: &options, approximation: approximation.New()}}
	s.gpus = gpushare.New(store, gpushare.Options{Now: options.Now, RefusalTerm: options.leaseTerm(), Logger: options.Logger})
	s.teamed = teamed{team.New(team.Options{Find: func(ctx context.Context, ref string) (journal.Study, error) { return s.sessions.Find(ctx, ref) }, Apply: s.applyRules, Users: options.Users})}
	s.sessions = registry.New(session.Options{Now: options.Now, Store: store, Logger: options.Logger, GPUs: s.gpus, Tariff: options.Tariff, Loaded: s.regrant}, s.Role)
	s.allocator = allocator.New(allocator.Options{Now: options.Now, Term: options.leaseTerm(), Lock: options.lock})
	uploads := upload.New(options.Now)
	s.stocked = stocked{dataset.New(dataset.Options{
		Now: options.Now, Entries: s.poolEntries, Apply: s.applyRules, Sent: uploads.Sent, Uses: s.usesDataset,
		Bound: func(owner string) int64 { return s.allocator.Snapshot().Rules.Quotas[owner].DatasetBytes },
	})}
	s.queries = &queries{s.parts, logs, s.stocked.Catalogue, s.Directory, func(ctx context.Context, want inference.Wanted) (string, error) { return s.Unmeasured(ctx, want) }}
	s.studies = &studies{s.parts, warmstart.Earlier{Look: s.Look, Store: store}}
	s.scheduler = scheduler.New(scheduled{s.sessions, s.waits}, s.allocator, options.Now)
	s.on = duties.On{Sessions: s.sessions, Allocator: s.allocator, Scheduler: s.scheduler, Approximation: s.approximation, Store: store, Logger: options.Logger, Term: options.leaseTerm()}
	truth := groundtruth.New(store, options.Similarity)
	s.knowledge = &knowledge{s.parts, truth, gate.New()}
	s.leases = &leases{
		parts: s.parts, logs: logs, scheduler: s.scheduler, truth: truth, Uploads: uploads,
		sharing: &sharing{s.parts, gate.New()}, turns: make(map[string]gate.Gate),
	}
	s.serve(truth)
	return s
}

// serve makes what uses the sessions through their copies alone, or not at all.
func (s *Service) serve(truth *groundtruth.Base) {
	now := s.options.Now
	s.governed = governed{governor.New(s.allocator, governor.Options{
		Now: now, NewID: func() string { return newID(s.options.Random) }, Users: s.options.Users, Priced: s.options.Tariff.Priced(), Find: s.sessions.Find, Apply: s.applyRules, Changed: s.sessions.Notify,
	})}
	s.viewed = viewed{poolview.New(poolview.Options{Sessions: s.sessions, Allocator: s.allocator, Scheduler: s.scheduler, GPUs: s.gpus})}
	s.inferred = inferred{inference.New(s.store, inference.Options{Holder: s.holder, RanOn: s.ranOn, Record: s.recordInference, Import: s.importArchitectures, Wanted: s.wanted, Refresh: s.refreshInference, Leaders: s.leaders, Entries: s.poolEntries, Apply: s.applyRules, Look: s.Look, Gate: gate.New(), Now: now})}
	s.placed = placed{inference.NewPlaces(s.inferred.Service)}
	s.taught = taught{truth.Queries()}
	s.ranked = ranked{ranking.New(s.store, ranking.Options{Look: s.Look, Deployments: s.Deployments, Now: now})}
	s.analysed = analysed{analysis.New(s.Look, ranking.LeaderOf)}
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
	var sections []definition.Inference
	for _, stored := range studies {
		if section := stored.Definition.Inference; section != nil {
			sections = append(sections, *section)
		}
		if stored.Status.Over() {
			continue
		}
		r, err := s.sessions.Session(ctx, stored.ID)
		if err != nil {
			return fmt.Errorf("load study %s: %w", stored.Definition.Name, err)
		}
		if err := r.ResumeTime(ctx); err != nil {
			return fmt.Errorf("go on with study %s: %w", stored.Definition.Name, err)
		}
	}
	s.resumeMigrations()
	go func() {
		if err := s.Warm(ctx, sections); err != nil && ctx.Err() == nil {
			s.options.Logger.Warn("what was measured of devices could not be fitted yet; requests do it", "reason", err)
		}
	}()
	return nil
}

// Tick does what time alone makes due: it takes trials back from silent
// workers, ends studies whose time is up, lets trials make way for others, keeps
// the rules of the pool, and now and then has running trials move to a better
// machine. The caller runs it every second.
func (s *Service) Tick(ctx context.Context) error {
	now := s.options.Now()
	before, expired := s.allocator.Tick(now)
	s.gpus.Connect(s.allocator.GPUTypes())

	var failures []error
	for _, lease := range expired {
		s.options.Logger.Warn("lease expired", "trial", lease.Trial, "worker", lease.Worker)
		if err := s.expire(ctx, lease); err != nil {
			failures = append(failures, fmt.Errorf("expire the lease of trial %s: %w", lease.Trial, err))
		}
	}
	duties.Wake{On: s.on}.Do(now)
	s.ForgetUploads()
	duties.Approximation{On: s.on}.Do(now)
	duties.Preemption{On: s.on}.Do(now)
	failures = append(failures, s.Keep(ctx, before, now, false), duties.Approximation{On: s.on}.Save(ctx, now, false))
	s.allocator.WakeSkipped(now)
	duties.Migration{On: s.on}.Do(ctx)
	failures = append(failures, duties.Deadlines{On: s.on}.Do(ctx, now), duties.Rest{On: s.on}.Do(ctx, now))
	duties.Eviction{On: s.on}.Do(now)
	return errors.Join(failures...)
}

// Close stores a snapshot of every search, so that the next start replays
// nothing and may be another version, and the studies' time so far.
func (s *Service) Close(ctx context.Context) error {
	now := s.options.Now()
	failures := []error{s.Keep(ctx, now, now, true), s.saveGPUs(ctx, true), duties.Approximation{On: s.on}.Save(ctx, now, true)}
	for r := range s.sessions.Each() {
		if err := r.Close(ctx); err != nil {
			failures = append(failures, fmt.Errorf("close study %s: %w", r.Study.Definition.Name, err))
		}
	}
	return errors.Join(failures...)
}

func (o *Options) leaseTerm() time.Duration {
	return time.Duration(o.LeaseSeconds * float64(time.Second))
}

func (o *Options) timing() protocol.Timing {
	return protocol.Timing{LeaseSeconds: o.LeaseSeconds, HeartbeatSeconds: o.HeartbeatSeconds}
}

// Receipt returns the answer of an earlier call with the key, if there is one.
func (s *Service) Receipt(ctx context.Context, key, request string) (json.RawMessage, bool, error) {
	return s.sessions.Receipt(ctx, key, request)
}

// loadPool reads what is stored of the pool and of what trainings on it took.
func (s *Service) loadPool(ctx context.Context) error {
	for _, from := range []struct {
		kinds []string
		load  func([]journal.PoolEntry) error
	}{
		{allocator.Kinds(), s.allocator.Load}, {gpushare.Kinds(), s.gpus.Load}, {team.Kinds(), s.Load}, {inference.Kinds(), s.Remember},
		{[]string{approximation.ResponsesEntry}, s.approximation.Load},
	} {
		var entries []journal.PoolEntry
		for _, kind := range from.kinds {
			some, err := s.store.PoolEntries(ctx, kind)
			if err != nil {
				return fmt.Errorf("load what is kept of the pool: %w", err)
			}
			entries = append(entries, some...)
		}
		if err := from.load(entries); err != nil {
			return problem.New(problem.Internal, "load what is kept of the pool: %w", err)
		}
	}
	return nil
}

func (s *Service) poolEntries(ctx context.Context, kind string) ([]journal.PoolEntry, error) {
	return s.store.PoolEntries(ctx, kind)
}

// usesDataset are the names of the owner's studies that are not over and use the data set.
func (s *Service) usesDataset(owner, artifact string) (names []string) {
	for r := range s.sessions.Each() {
		if r.Owner() == owner && !r.Study.Status.Over() && r.Study.Definition.UsesDataset(artifact) {
			names = append(names, r.Study.Definition.Name)
		}
	}
	return names
}

// applyRules stores entries of the pool's rules, with the answer under the call's key;
// nil: without one.
func (s *Service) applyRules(ctx context.Context, entries []journal.PoolEntry, answer any) (ours bool, err error) {
	if answer == nil {
		ctx, answer = registry.Unkeyed(ctx), new(struct{})
	}
	return s.sessions.Apply(ctx, journal.Change{Pool: entries}, answer)
}
