// Package scheduler decides what should run where (HEATS: Rocha, chapter 3): which
// waiting trial a worker gets, and which running trials migrate or exchange places. It
// asks the allocator who waits and the studies what they have ready. It changes neither:
// callers put into effect what it decides.
package scheduler

import (
	"context"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

// Studies are what the scheduler asks of the studies.
type Studies interface {
	// Candidates are the studies that the caller sees and that may have a trial for a
	// worker. Working are all that may.
	Candidates(caller access.Caller) []pool.Candidate
	Working() map[string]bool
	// View shows the study while it is locked. One that is over, or is not in memory as
	// it should be, is not shown: it is served as workers ask.
	View(ctx context.Context, study string, show func(Study))
	// Changes is closed when anything changes.
	Changes() <-chan struct{}
}

// Study is a study as the scheduler sees it, for as long as the study is locked.
type Study struct {
	ID string
	// Title is what the caller calls it.
	Title string
	// Trains says that workers may train its trials now.
	Trains bool
	// Energy is the weight of energy (H in HEATS), Parallel the bound on trials at once.
	Energy   float64
	Parallel int
	Trials   []trial.Trial
	// Queue are the numbers of queued trials. Resting has until when some are not leased.
	Queue   []int
	Resting map[int]time.Time
	// Startable is how many trials the search may begin, DataFraction their share of the
	// data.
	Startable    int
	DataFraction float64
	// Costs estimates its epochs. Loads counts how often the study was read.
	Costs func() *costmodel.Model
	Loads int
	// Ask is what it asks the pool for: for the trial, or for whichever comes next where
	// that is nil.
	Ask func(*trial.Trial) allocator.Ask
	// Waits says why its next trial does not start.
	Waits func() []protocol.Wait
}

// Scheduler makes plans. It is safe for concurrent use.
type Scheduler struct {
	studies   Studies
	allocator *allocator.Allocator
	now       func() time.Time

	mutex sync.Mutex // taken before those of studies
	// plan is the newest one, for all who ask before anything changes.
	plan    *plan
	changed <-chan struct{}
	// rescheduled is when running trials were last reconsidered.
	rescheduled time.Time
}

// New returns a Scheduler of the studies and the pool.
func New(studies Studies, pool *allocator.Allocator, now func() time.Time) *Scheduler {
	return &Scheduler{studies: studies, allocator: pool, now: now}
}

// Candidates are the studies that the caller sees and that may have a trial for a worker,
// in the pool's order.
func (s *Scheduler) Candidates(caller access.Caller, shares allocator.Shares) []pool.Candidate {
	candidates := s.studies.Candidates(caller)
	if shares.Clearing {
		s.allocator.KeepClearing(s.studies.Working())
	}
	shares.Give(candidates)
	pool.Order(candidates)
	return candidates
}
