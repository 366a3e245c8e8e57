package study

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// responsesEntry is the kind of what is stored of the trainings of a study, under
	// its id.
	responsesEntry = "responses"
	// historyEntry is what older servers stored, under a priority.
	historyEntry = "history"
	// saveResponsesEvery is how often that is done: so much of it may be lost when a
	// server is killed.
	saveResponsesEvery = 30 * time.Second
	// forgetResponsesAfter is for how long they are kept without anything new.
	forgetResponsesAfter = 7 * 24 * time.Hour
	// mostResponses bounds of how many studies they are stored: of those with the
	// newest.
	mostResponses = 256
)

// loadResponses reads what was learned before the server was started.
func (s *Service) loadResponses(ctx context.Context) error {
	known := map[string]responseRecord{}
	if err := eachEntry(ctx, s.store, responsesEntry, func(study string, one responseRecord) { known[study] = one }); err != nil {
		return err
	}
	outdated, err := s.store.PoolEntries(ctx, historyEntry)
	if err != nil {
		return fmt.Errorf("load what is kept of the pool: %w", err)
	}
	for i := range outdated {
		outdated[i].Document = nil
	}
	s.deflator.mutex.Lock()
	defer s.deflator.mutex.Unlock()
	s.deflator.known, s.deflator.outdated = known, outdated
	return nil
}

// keepResponses stores what was learned since it was last done, if that is due.
func (s *Service) keepResponses(ctx context.Context, now time.Time, closing bool) error {
	entries := s.deflator.dueEntries(now, closing)
	if len(entries) == 0 {
		return nil
	}
	if err := s.store.Apply(ctx, Change{Pool: entries}); err != nil {
		s.deflator.again(entries)
		return fmt.Errorf("store how long trainings take: %w", err)
	}
	return nil
}

// dueEntries are the records to store, and those to forget.
func (d *deflator) dueEntries(now time.Time, closing bool) []PoolEntry {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if len(d.unsaved)+len(d.outdated) == 0 || !closing && now.Sub(d.saved) < saveResponsesEvery {
		return nil
	}
	newest := slices.SortedFunc(maps.Keys(d.known), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.known[b].newest(), d.known[a].newest()), cmp.Compare(a, b))
	})
	for i, study := range newest {
		if i >= mostResponses || inSeconds(now)-d.known[study].newest() > forgetResponsesAfter.Seconds() {
			delete(d.known, study)
			d.unsaved[study] = true
		}
	}
	entries := d.outdated
	for _, study := range slices.Sorted(maps.Keys(d.unsaved)) {
		entry := PoolEntry{Kind: responsesEntry, Name: study} // to be forgotten
		if known, kept := d.known[study]; kept {
			entry = poolEntry(responsesEntry, study, known)
		}
		entries = append(entries, entry)
	}
	clear(d.unsaved)
	d.outdated, d.saved = nil, now
	return entries
}

// again has the entries stored, or forgotten, the next time.
func (d *deflator) again(entries []PoolEntry) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.saved = time.Time{}
	for _, entry := range entries {
		if entry.Kind == historyEntry {
			d.outdated = append(d.outdated, entry)
		} else {
			d.unsaved[entry.Name] = true
		}
	}
}
