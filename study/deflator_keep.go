package study

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/workers/deflate"
)

const (
	// historyEntry is the kind of what is stored of the trainings of a priority,
	// under its number.
	historyEntry = "history"
	// saveHistoriesEvery is how often that is done: so much of it may be lost when a
	// server is killed.
	saveHistoriesEvery = 30 * time.Second
	// forgetHistoriesAfter is how long a history is kept without a new training.
	forgetHistoriesAfter = 7 * 24 * time.Hour
	// mostHistories bounds how many are stored: of those with the newest trainings.
	mostHistories = 32
)

// loadHistories reads what was met with before the server was started.
func (s *Service) loadHistories(ctx context.Context) error {
	var failed error
	met := map[int]deflate.History{}
	if err := eachEntry(ctx, s.store, historyEntry, func(name string, history deflate.History) {
		priority, err := strconv.Atoi(name)
		if err != nil {
			failed = problem.New(problem.Internal, "read the history %q of the pool: its name must be a priority, a whole number", name)
			return
		}
		met[priority] = history
	}); err != nil {
		return err
	}
	s.deflator.mutex.Lock()
	defer s.deflator.mutex.Unlock()
	s.deflator.met = met
	return failed
}

// keepHistories stores what was met with since it was last done, if that is due.
func (s *Service) keepHistories(ctx context.Context, now time.Time, closing bool) error {
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

// dueEntries are the histories to store, and those to forget.
func (d *deflator) dueEntries(now time.Time, closing bool) []PoolEntry {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if len(d.unsaved) == 0 || !closing && now.Sub(d.saved) < saveHistoriesEvery {
		return nil
	}
	newest := slices.SortedFunc(maps.Keys(d.met), func(a, b int) int {
		return cmp.Compare(d.met[b].Newest(), d.met[a].Newest())
	})
	for i, priority := range newest {
		if i >= mostHistories || inSeconds(now)-d.met[priority].Newest() > forgetHistoriesAfter.Seconds() {
			delete(d.met, priority)
			d.unsaved[priority] = true
		}
	}
	var entries []PoolEntry
	for _, priority := range slices.Sorted(maps.Keys(d.unsaved)) {
		entry := PoolEntry{Kind: historyEntry, Name: strconv.Itoa(priority)} // to be forgotten
		if history, kept := d.met[priority]; kept {
			entry = poolEntry(historyEntry, entry.Name, history)
		}
		entries = append(entries, entry)
	}
	clear(d.unsaved)
	d.saved = now
	return entries
}

// again has the entries stored, or forgotten, the next time.
func (d *deflator) again(entries []PoolEntry) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, entry := range entries {
		if priority, err := strconv.Atoi(entry.Name); err == nil {
			d.unsaved[priority] = true
		}
	}
}
