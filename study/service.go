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
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/poolview"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/study/upload"
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

	lock sync.Locker // of the allocator; nil: one of its own
}

// What a Service does by other objects: with copies of studies alone, about
// inference, and with the rules of the pool.
type (
	analysed struct{ *analysis.Queries }
	ranked   struct{ *ranking.Queries }
	taught   struct{ groundtruth.Queries }
	inferred struct{ *inference.Service }
	governed struct{ *governor.Governor }
	viewed   struct{ *poolview.Views }
)

// Service holds the use cases. It is safe for concurrent use.
//
// Locks: a study's session is locked before the allocator, which is never locked
// across a call to another object. Within a study decisions are made one at a
// time; their writes wait for the disk together.
type Service struct {
	store   Store
	logs    journal.LogStore
	options Options
	truth   *groundtruth.Base

	sessions *registry.Registry
	mutex    sync.Mutex           // guards turns
	turns    map[string]gate.Gate // of elastic workers, by their id

	// analyses lets one surrogate or trajectory be computed at a time.
	analyses gate.Gate
	analysed
	ranked
	taught
	// teaching lets one import, or one forgetting, of ground truth be made at a time.
	teaching gate.Gate
	inferred

	uploads *upload.Uploads // what was sent, and may be committed

	approximation *approximation.Controller
	gpus          *gpushare.Model
	// learning lets one model of GPUs be fitted at a time.
	learning gate.Gate

	governed
	viewed

	allocator *allocator.Allocator
	// scheduler is locked before a session.
	scheduler *scheduler.Scheduler
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
	s := &Service{
		store: store, logs: logs, options: options, truth: groundtruth.New(store, options.Similarity),
		turns: make(map[string]gate.Gate), analyses: gate.New(), teaching: gate.New(), approximation: approximation.New(), learning: gate.New(), uploads: upload.New(options.Now),
	}
	s.gpus = gpushare.New(store, gpushare.Options{Now: options.Now, RefusalTerm: s.leaseTerm(), Logger: options.Logger})
	s.sessions = registry.New(session.Options{Now: options.Now, Store: store, Logger: options.Logger, GPUs: s.gpus, Loaded: s.regrant})
	s.allocator = allocator.New(allocator.Options{Now: options.Now, Term: s.leaseTerm(), Lock: options.lock})
	s.governed = governed{governor.New(s.allocator, governor.Options{
		Now: options.Now, NewID: s.newID, Users: options.Users, Find: s.sessions.Find, Apply: s.applyRules, Changed: s.sessions.Notify, Autoscale: options.Autoscale,
	})}
	s.scheduler = scheduler.New(scheduled{s}, s.allocator, options.Now)
	s.viewed = viewed{poolview.New(poolview.Options{Sessions: s.sessions, Allocator: s.allocator, Scheduler: s.scheduler, GPUs: s.gpus, Autoscale: s.Governor.Autoscale})}
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
		r, err := s.sessions.Session(ctx, stored.ID)
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
	for r := range s.sessions.Each() {
		if err := r.Close(ctx); err != nil {
			failures = append(failures, fmt.Errorf("close study %s: %w", r.Study.Definition.Name, err))
		}
	}
	return errors.Join(failures...)
}

func (s *Service) leaseTerm() time.Duration {
	return time.Duration(s.options.LeaseSeconds * float64(time.Second))
}

func (s *Service) timing() protocol.Timing {
	return protocol.Timing{LeaseSeconds: s.options.LeaseSeconds, HeartbeatSeconds: s.options.HeartbeatSeconds}
}

// Receipt returns the answer of an earlier call with the key, if there is one.
func (s *Service) Receipt(ctx context.Context, key, request string) (json.RawMessage, bool, error) {
	return s.sessions.Receipt(ctx, key, request)
}

// Uploaded notes that the caller has sent all bytes of an artifact, which is stored.
func (s *Service) Uploaded(ctx context.Context, sha256 string, bytes int64) {
	s.uploads.Note(ctx, sha256, bytes)
}

// loadPool reads what is stored of the pool and of what trainings on it took.
func (s *Service) loadPool(ctx context.Context) error {
	for _, from := range []struct {
		kinds []string
		load  func([]journal.PoolEntry) error
	}{
		{allocator.Kinds(), s.allocator.Load}, {gpushare.Kinds(), s.gpus.Load},
		{[]string{approximation.ResponsesEntry, approximation.HistoryEntry}, s.approximation.Load},
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

// applyRules stores entries of the pool's rules, with the answer under the call's key;
// nil: without one.
func (s *Service) applyRules(ctx context.Context, entries []journal.PoolEntry, answer any) (ours bool, err error) {
	if answer == nil {
		ctx, answer = registry.Unkeyed(ctx), new(struct{})
	}
	return s.sessions.Apply(ctx, journal.Change{Pool: entries}, answer)
}
