// Package memory keeps studies, logs and tokens in memory, with every rule of
// the durable stores: it passes the same conformance suite. Tests, simulations
// and trial runs of the server use it.
//
// Its one invariant: nothing a caller holds is shared with the store. Values
// are kept in the text the durable stores keep, so that they also come back
// the same way. It must not know the service, HTTP or a disk.
package memory

import (
	"bytes"
	"context"
	"sync"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

var (
	_ journal.Store       = (*Store)(nil)
	_ journal.SharedStore = (*Store)(nil)
	_ journal.LogStore    = (*Store)(nil)
	_ access.Store        = (*Store)(nil)
)

// Store is the store. It is safe for concurrent use and has no Close.
type Store struct {
	mutex sync.RWMutex
	// order counts studies, so that equal times of creation keep theirs.
	order      int
	studies    map[string]*studyRecord
	names      map[string]string // study id by reference
	trials     map[trial.ID]*entry
	receipts   map[string]journal.Receipt
	records    map[string]lesson    // by id
	blueprints map[string]blueprint // by key
	pool       map[poolKey][]byte   // documents

	tokens
}

// studyRecord is a study with what belongs to it.
type studyRecord struct {
	order    int
	name     string
	document string
	trials   map[int]*entry
	events   []journal.Event // by sequence
	snapshot *journal.Snapshot
}

// entry is a trial with what belongs to it.
type entry struct {
	study    string
	number   int
	state    trial.State
	epoch    trial.LeaseEpoch
	document string
	reports  []string
	reported map[[2]int]bool // by rung and epoch
	log      record.Log
	leases   map[trial.LeaseEpoch][]record.Piece // by start
}

// New returns an empty store.
func New() *Store {
	return &Store{
		studies: make(map[string]*studyRecord), names: make(map[string]string),
		trials: make(map[trial.ID]*entry), receipts: make(map[string]journal.Receipt), records: make(map[string]lesson), blueprints: make(map[string]blueprint), pool: make(map[poolKey][]byte),
	}
}

// Apply makes the change as a whole or not at all, in the order of its fields.
func (s *Store) Apply(ctx context.Context, change journal.Change) error {
	if err := alive(ctx); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var undo undoing
	if err := s.apply(&undo, change); err != nil {
		undo.run()
		return err
	}
	return nil
}

// Submit is Apply: in memory there is nothing to wait for.
func (s *Store) Submit(ctx context.Context, change journal.Change) *journal.Outcome {
	outcome := journal.NewOutcome()
	outcome.Settle(s.Apply(ctx, change))
	return outcome
}

func (s *Store) apply(undo *undoing, change journal.Change) error {
	if change.Behind != nil {
		if err := s.checkNewest(*change.Behind); err != nil {
			return err
		}
	}
	if err := s.applyStudy(undo, change); err != nil {
		return err
	}
	for _, write := range change.Trials {
		if err := s.writeTrial(undo, write); err != nil {
			return err
		}
	}
	for _, report := range change.Reports {
		if err := s.insertReport(undo, report); err != nil {
			return err
		}
	}
	for _, event := range change.Events {
		if err := s.insertEvent(undo, event); err != nil {
			return err
		}
	}
	if change.Snapshot != nil {
		if err := s.putSnapshot(undo, *change.Snapshot); err != nil {
			return err
		}
	}
	if change.Forget != nil {
		s.forgetRecords(undo, *change.Forget)
	}
	if err := s.writeRecords(undo, change.Records); err != nil {
		return err
	}
	if err := s.writeArchitectures(undo, change.Architectures); err != nil {
		return err
	}
	s.writePool(undo, change.Pool)
	if change.Receipt != nil {
		return s.insertReceipt(undo, *change.Receipt)
	}
	return nil
}

func (s *Store) applyStudy(undo *undoing, change journal.Change) error {
	if change.Insert != nil {
		if err := s.insertStudy(undo, *change.Insert); err != nil {
			return err
		}
	}
	if change.Update != nil {
		if err := s.updateStudy(undo, *change.Update, change.Transfer); err != nil {
			return err
		}
	}
	if change.Delete != "" {
		return s.deleteStudy(undo, change.Delete)
	}
	return nil
}

// undoing holds what takes back the parts of a change that were made.
type undoing []func()

func (u *undoing) add(step func()) { *u = append(*u, step) }

func (u undoing) run() {
	for i := len(u) - 1; i >= 0; i-- {
		u[i]()
	}
}

func alive(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return problem.New(problem.Unavailable, "the caller gave up: %w", err)
	}
	return nil
}

// raw copies raw JSON; what is empty becomes nil, as in every store.
func raw(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return bytes.Clone(data)
}
