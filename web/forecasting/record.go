package forecasting

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/workers/demand"
)

const (
	demandEntry = "demand"
	// recordedSpan is what an entry of the recorded demand has, and spanLayout names it
	// in the store, in UTC. An entry is written again with every minute of it, so its
	// size is what a minute costs: some 60 KiB with as many owners as a minute has.
	// Earlier versions kept an hour, whose names come before those of its parts.
	recordedSpan = 10 * time.Minute
	spanLayout   = "2006-01-02T15:04"
	// mostLate bounds how many entries are kept for a store that takes none: a day's.
	mostLate = 144
)

// recordedMinutes are some minutes of demand as they are stored.
type recordedMinutes struct {
	Minutes []demand.Minute `json:"minutes"`
}

// Store keeps entries of the pool.
type Store interface {
	PoolEntries(ctx context.Context, kind string) ([]journal.PoolEntry, error)
	Apply(ctx context.Context, change journal.Change) error
}

// Record keeps the minutes of demand in the store, an entry for ten of them.
// So they are in its backups, and go with it from one server to the next. It is safe
// for concurrent use.
type Record struct {
	store Store

	mutex sync.Mutex
	spans map[string]bool // those that are stored
	span  string          // the newest, and its minutes
	last  recordedMinutes
	// late are those that could not be stored, the newest among them.
	late map[string]recordedMinutes
}

// NewRecord returns the record in a store.
func NewRecord(store Store) *Record { return &Record{store: store} }

// Read returns the minutes that are kept, by time.
func (d *Record) Read(ctx context.Context, now time.Time) ([]demand.Minute, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	var minutes []demand.Minute
	d.spans = make(map[string]bool)
	entries, err := d.store.PoolEntries(ctx, demandEntry)
	if err != nil {
		return nil, fmt.Errorf("read the recorded demand: %w", err)
	}
	for _, entry := range entries {
		if err := journal.Decode(entry, func(stored recordedMinutes) {
			d.spans[entry.Name], d.span, d.last = true, entry.Name, stored
			minutes = append(minutes, stored.Minutes...)
		}); err != nil {
			return nil, problem.New(problem.Internal, "read the recorded demand of %s: %w", entry.Name, err)
		}
	}
	oldest := now.Add(-demand.Kept)
	return slices.DeleteFunc(minutes, func(one demand.Minute) bool { return one.At.Before(oldest) }), nil
}

// Append keeps a minute, which is later than those before, and lets go of what is
// older than [demand.Kept] by then. After an error the minute is kept with the next
// one, for a day.
func (d *Record) Append(ctx context.Context, one demand.Minute) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	span := nameOfSpan(one.At)
	if span != d.span {
		d.span, d.last = span, recordedMinutes{}
	}
	d.last.Minutes = append(d.last.Minutes, one)
	if d.late == nil {
		d.late = make(map[string]recordedMinutes)
	}
	d.late[span] = d.last
	if len(d.late) > mostLate {
		delete(d.late, slices.Min(slices.Collect(maps.Keys(d.late))))
	}
	var entries []journal.PoolEntry
	for _, name := range slices.Sorted(maps.Keys(d.late)) {
		entries = append(entries, journal.Entry(demandEntry, name, d.late[name]))
	}
	oldest := nameOfSpan(one.At.Add(-demand.Kept))
	for _, stored := range slices.Sorted(maps.Keys(d.spans)) {
		if stored < oldest {
			entries = append(entries, journal.PoolEntry{Kind: demandEntry, Name: stored})
		}
	}
	if err := d.store.Apply(ctx, journal.Change{Pool: entries}); err != nil {
		return fmt.Errorf("keep a minute of demand: %w", err)
	}
	if d.spans == nil {
		d.spans = make(map[string]bool)
	}
	for name := range d.late {
		d.spans[name] = true
	}
	clear(d.late)
	maps.DeleteFunc(d.spans, func(stored string, _ bool) bool { return stored < oldest })
	return nil
}

// nameOfSpan names the entry that has the minute.
func nameOfSpan(at time.Time) string { return at.UTC().Truncate(recordedSpan).Format(spanLayout) }
