// Package groundtruth is PipeTune's ground truth: what earlier runs measured on
// each type of machine, from which later trials take their system parameters
// (Rocha, section 6.3).
//
// A Base holds in memory what the store has. It does not write: who changes the
// store calls Learn or Forget once the change is durable.
package groundtruth

import (
	"context"
	"sync"

	"github.com/tandem-tune/tandem/similarity"
)

// MaxRecords is how many records of one type of machine are kept: beyond it the
// oldest are dropped.
const MaxRecords = 2000

// maxRuns bounds the records of running trials that are kept at hand; one that
// is not is found in the memory.
const maxRuns = 4096

// Store reads records that are durable.
type Store interface {
	// Records returns those of a type of machine, or of all types if it is empty,
	// the oldest first.
	Records(ctx context.Context, machine string) ([]similarity.Record, error)
	// RecordTypes names the types of machines that there are records of.
	RecordTypes(ctx context.Context) ([]string, error)
}

// Base is the ground truth of all types of machines. It is safe for concurrent
// use. Its lock is never held while the store is read.
type Base struct {
	store  Store
	method similarity.Grouping

	mutex   sync.Mutex
	types   map[string]*Machine
	changes int // counts what was learned and forgotten of types that are not in memory
}

// New returns the ground truth that the store has. The method groups records
// where a study names none.
func New(store Store, method similarity.Grouping) *Base {
	return &Base{store: store, method: method, types: make(map[string]*Machine)}
}

// Machine returns what is known of the type of machine, and reads it from the
// store if need be.
func (b *Base) Machine(ctx context.Context, name string) (*Machine, error) {
	for {
		b.mutex.Lock()
		known, ok := b.types[name]
		changes := b.changes
		b.mutex.Unlock()
		if ok {
			return known, nil
		}
		if known, err := b.load(ctx, name, changes); known != nil || err != nil {
			return known, err
		}
	}
}

// load reads what is known of the type of machine. It returns nil if something
// was learned or forgotten meanwhile, which may be missing in what was read.
func (b *Base) load(ctx context.Context, name string, changes int) (*Machine, error) {
	records, err := b.store.Records(ctx, name)
	if err != nil {
		return nil, err
	}
	loaded := newMachine(b.method)
	for _, record := range records {
		loaded.put(record)
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if known, ok := b.types[name]; ok { // another caller was faster
		return known, nil
	}
	if b.changes != changes {
		return nil, nil
	}
	b.types[name] = loaded
	return loaded, nil
}

// Learn takes in records that are durable.
func (b *Base) Learn(records []similarity.Record) {
	for _, record := range records {
		b.mutex.Lock()
		known, ok := b.types[record.Machine]
		if !ok {
			b.changes++
		}
		b.mutex.Unlock()
		if ok { // else it is read when it is needed
			known.learn(record)
		}
	}
}

// Forget drops the type of machine, or all types if it is empty, once it is gone
// from the store.
func (b *Base) Forget(name string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.changes++
	if name == "" {
		clear(b.types)
		return
	}
	delete(b.types, name)
}
