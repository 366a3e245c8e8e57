package approximation

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/study/journal"
)

const (
	// ResponsesEntry is the kind of what is stored of the trainings of a study, under
	// its id.
	ResponsesEntry = "responses"
	// saveResponsesEvery is how often that is done: so much of it may be lost when a
	// server is killed.
	saveResponsesEvery = 30 * time.Second
	// forgetResponsesAfter is for how long they are kept without anything new.
	forgetResponsesAfter = 7 * 24 * time.Hour
	// mostResponses bounds of how many studies they are stored: of those with the
	// newest.
	mostResponses = 256
)

// Load takes in what was learned before the server was started.
func (d *Controller) Load(entries []journal.PoolEntry) (err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, entry := range entries {
		if decodes := journal.Decode(entry, func(one Record) { d.known[entry.Name] = one }); decodes != nil {
			err = decodes
		}
	}
	return err
}

// Entries are the records to store, and those to forget.
func (d *Controller) Entries(now time.Time, closing bool) []journal.PoolEntry {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if len(d.unsaved) == 0 || !closing && now.Sub(d.saved) < saveResponsesEvery {
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
	var entries []journal.PoolEntry
	for _, study := range slices.Sorted(maps.Keys(d.unsaved)) {
		entry := journal.PoolEntry{Kind: ResponsesEntry, Name: study} // to be forgotten
		if known, kept := d.known[study]; kept {
			entry = journal.Entry(ResponsesEntry, study, known)
		}
		entries = append(entries, entry)
	}
	clear(d.unsaved)
	d.saved = now
	return entries
}

// Again has the entries stored, or forgotten, the next time.
func (d *Controller) Again(entries []journal.PoolEntry) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.saved = time.Time{}
	for _, entry := range entries {
		d.unsaved[entry.Name] = true
	}
}
