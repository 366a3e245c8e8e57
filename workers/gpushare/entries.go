package gpushare

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/journal"
)

// The kinds of what is stored.
const (
	profileEntry    = "gpu_profile" // a training that was seen alone
	epochTimesEntry = "gpu_paces"   // epoch times there, alone and shared
)

// saveEpochTimesEvery is how often epoch times are stored, all of them at once, which
// are some 100 KiB: a server that is killed loses at most so much of them.
const saveEpochTimesEvery = 5 * time.Minute

// Kinds are the kinds of entries, in the order in which they are to be loaded.
func Kinds() []string { return []string{profileEntry, epochTimesEntry} }

// entryName is an entry of the store: a training's of a type of GPU, or the type's.
type entryName struct{ kind, gpu, training string }

func (n entryName) entry() string {
	if n.kind != profileEntry {
		return n.gpu
	}
	name, _ := json.Marshal([]string{n.gpu, n.training})
	return string(name)
}

// nameOf is the name of a stored entry.
func nameOf(entry journal.PoolEntry) entryName {
	name := entryName{kind: entry.Kind, gpu: entry.Name}
	var parts []string
	if entry.Kind == profileEntry && json.Unmarshal([]byte(entry.Name), &parts) == nil && len(parts) == 2 {
		name.gpu, name.training = parts[0], parts[1]
	}
	return name
}

// storedProfile is a profile with the type of GPU that it is of.
type storedProfile struct {
	GPU string `json:"gpu"`
	Profile
}

// Load takes in what was stored. Models are fitted again from the trainings that they
// were made from.
func (m *Model) Load(entries []journal.PoolEntry) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, entry := range entries {
		if err := m.load(entry); err != nil {
			return problem.New(problem.Internal, "read the %s %q of the pool: %w", entry.Kind, entry.Name, err)
		}
	}
	return nil
}

func (m *Model) load(entry journal.PoolEntry) error {
	switch entry.Kind {
	case profileEntry:
		return journal.Decode(entry, func(one storedProfile) {
			if gpu := m.gpu(one.GPU); gpu != nil {
				gpu.See(one.Profile)
			}
		})
	case epochTimesEntry:
		return journal.Decode(entry, func(one EpochTimes) {
			if gpu := m.gpu(entry.Name); gpu != nil {
				gpu.RestoreEpochTimes(one)
			}
		})
	}
	return nil
}

// Entries are what is to be stored since it was last asked, sorted; one without a
// document is to be removed. Epoch times are among them now and then, and when the
// server closes.
func (m *Model) Entries(now time.Time, closing bool) ([]journal.PoolEntry, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	timesToo := closing || now.Sub(m.epochTimesSaved).Abs() >= saveEpochTimesEvery
	var entries []journal.PoolEntry
	stored := map[entryName]bool{}
	for name := range m.unsaved {
		if name.kind == epochTimesEntry && !timesToo {
			continue
		}
		document, err := m.document(name)
		if err != nil {
			return nil, err
		}
		stored[name] = true
		entries = append(entries, journal.PoolEntry{Kind: name.kind, Name: name.entry(), Document: document})
	}
	if timesToo {
		m.epochTimesSaved = now
	}
	maps.DeleteFunc(m.unsaved, func(name entryName, _ bool) bool { return stored[name] })
	slices.SortFunc(entries, func(a, b journal.PoolEntry) int {
		return slices.Compare([]string{a.Kind, a.Name}, []string{b.Kind, b.Name})
	})
	return entries, nil
}

// Again has the entries stored the next time.
func (m *Model) Again(entries []journal.PoolEntry) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, entry := range entries {
		m.unsaved[nameOf(entry)] = true
	}
	m.epochTimesSaved = time.Time{}
}

// document is an entry as it is now; empty where there is none any more. The lock
// is held.
func (m *Model) document(name entryName) (json.RawMessage, error) {
	gpu, known := m.gpus[name.gpu]
	if !known {
		return nil, nil
	}
	var value any
	switch name.kind {
	case profileEntry:
		profile, kept := gpu.Profile(name.training)
		if !kept {
			return nil, nil
		}
		value = storedProfile{name.gpu, profile}
	default:
		value = gpu.EpochTimes()
	}
	document, err := json.Marshal(value)
	if err != nil {
		return nil, problem.New(problem.Internal, "encode the %s of %s: %w", name.kind, name.gpu, err)
	}
	return document, nil
}
