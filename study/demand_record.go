package study

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/workers/demand"
)

const (
	demandEntry = "demand"
	// hourLayout names the hours of the recorded demand in the store, in UTC.
	hourLayout = "2006-01-02T15"
)

// recordedHour is an hour of demand as it is stored.
type recordedHour struct {
	Minutes []demand.Minute `json:"minutes"`
}

// DemandRecord keeps the minutes of demand in the store, an entry for each hour.
// So they are in its backups, and go with it from one server to the next. It is safe
// for concurrent use.
type DemandRecord struct {
	store Store

	mutex sync.Mutex
	hours map[string]bool // those that are stored
	hour  string          // the newest, and its minutes
	last  recordedHour
}

// NewDemandRecord makes one on a store.
func NewDemandRecord(store Store) *DemandRecord { return &DemandRecord{store: store} }

// Read returns the minutes that are kept, by time.
func (d *DemandRecord) Read(ctx context.Context, now time.Time) ([]demand.Minute, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	var minutes []demand.Minute
	d.hours = make(map[string]bool)
	err := eachEntry(ctx, d.store, demandEntry, func(hour string, stored recordedHour) {
		d.hours[hour], d.hour, d.last = true, hour, stored
		minutes = append(minutes, stored.Minutes...)
	})
	if err != nil {
		return nil, fmt.Errorf("read the recorded demand: %w", err)
	}
	oldest := now.Add(-demand.Kept)
	return slices.DeleteFunc(minutes, func(one demand.Minute) bool { return one.At.Before(oldest) }), nil
}

// Append keeps a minute, which is later than those before, and lets go of hours that
// are older than [demand.Kept] by then. After an error the minute is kept with the
// next one of its hour.
func (d *DemandRecord) Append(ctx context.Context, one demand.Minute) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	hour := one.At.UTC().Format(hourLayout)
	if hour != d.hour {
		d.hour, d.last = hour, recordedHour{}
	}
	d.last.Minutes = append(d.last.Minutes, one)
	entries := []PoolEntry{poolEntry(demandEntry, hour, d.last)}
	oldest := one.At.UTC().Add(-demand.Kept).Format(hourLayout)
	for _, stored := range slices.Sorted(maps.Keys(d.hours)) {
		if stored < oldest {
			entries = append(entries, PoolEntry{Kind: demandEntry, Name: stored})
		}
	}
	if err := d.store.Apply(ctx, Change{Pool: entries}); err != nil {
		return fmt.Errorf("keep a minute of demand: %w", err)
	}
	if d.hours == nil {
		d.hours = make(map[string]bool)
	}
	d.hours[hour] = true
	maps.DeleteFunc(d.hours, func(stored string, _ bool) bool { return stored < oldest })
	return nil
}
