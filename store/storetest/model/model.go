// Package model is a store so simple that it is right by inspection, and what a
// store shows of itself, for the tests of real ones.
package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

// Model is a store so simple that it is right by inspection: plain values, and
// a change is tried on a copy.
type Model struct {
	Studies       []journal.Study // in order of insertion
	Trials        map[trial.ID]trial.Trial
	reports       map[trial.ID][]trial.Report
	Events        []journal.Event
	snapshots     map[string]journal.Snapshot
	Receipts      map[string]journal.Receipt
	records       map[string]similarity.Record
	Architectures map[string]emu.Architecture
	pool          []journal.PoolEntry // in order of kind and name
	letters       map[letter]byte
	tokens        []access.Token // in order of insertion
}

// letter is the place of one byte of a log.
type letter struct {
	id     trial.ID
	epoch  trial.LeaseEpoch
	offset int64
}

// New is an empty store.
func New() Model {
	return Model{
		Trials: map[trial.ID]trial.Trial{}, reports: map[trial.ID][]trial.Report{}, snapshots: map[string]journal.Snapshot{},
		Receipts: map[string]journal.Receipt{}, letters: map[letter]byte{}, records: map[string]similarity.Record{},
		Architectures: map[string]emu.Architecture{},
	}
}

func (m Model) copied() Model {
	m.Studies, m.Events, m.tokens = slices.Clone(m.Studies), slices.Clone(m.Events), slices.Clone(m.tokens)
	m.Trials, m.reports, m.snapshots = maps.Clone(m.Trials), maps.Clone(m.reports), maps.Clone(m.snapshots)
	m.Receipts, m.letters, m.records = maps.Clone(m.Receipts), maps.Clone(m.letters), maps.Clone(m.records)
	m.Architectures = maps.Clone(m.Architectures)
	m.pool = slices.Clone(m.pool)
	return m
}

// Apply returns the model with the change, or why it is refused.
func (m Model) Apply(change journal.Change) (Model, error) {
	if err := m.behind(change.Behind); err != nil {
		return m, err
	}
	after := m.copied()
	if err := after.applyStudy(change); err != nil {
		return m, err
	}
	for _, write := range change.Trials {
		if err := after.writeTrial(write); err != nil {
			return m, err
		}
	}
	for _, report := range change.Reports {
		if _, there := after.Trials[report.Trial]; !there {
			return m, record.NoTrial(report.Trial)
		}
		again := func(r trial.Report) bool { return r.Rung == report.Rung && r.Epoch == report.Epoch }
		if kept := after.reports[report.Trial]; !slices.ContainsFunc(kept, again) {
			after.reports[report.Trial] = append(slices.Clone(kept), report)
		}
	}
	for _, event := range change.Events {
		taken := func(e journal.Event) bool { return e.Study == event.Study && e.Sequence == event.Sequence }
		switch {
		case slices.ContainsFunc(after.Events, taken):
			return m, record.SequenceTaken(event)
		case after.Study(event.Study) < 0:
			return m, record.NoStudy(event.Study)
		}
		after.Events = append(after.Events, event)
	}
	return after.applyRest(m, change)
}

// behind refuses what was not decided on the study's newest event.
func (m Model) behind(p *journal.Position) error {
	if p == nil {
		return nil
	}
	if m.Study(p.Study) < 0 {
		return record.NoStudy(p.Study)
	}
	newest := int64(0)
	for _, event := range m.Events {
		if event.Study == p.Study {
			newest = max(newest, event.Sequence)
		}
	}
	if newest != p.Sequence {
		return record.NotBehind(*p, newest)
	}
	return nil
}

func (m *Model) applyStudy(change journal.Change) error {
	if one := change.Insert; one != nil {
		if slices.ContainsFunc(m.Studies, func(s journal.Study) bool { return s.ID == one.ID || s.Reference() == one.Reference() }) {
			return record.StudyTaken(*one)
		}
		m.Studies = append(m.Studies, *one)
	}
	if one := change.Update; one != nil {
		at := m.Study(one.ID)
		if at < 0 {
			return record.NoStudy(one.ID)
		}
		kept := &m.Studies[at]
		if change.Transfer {
			if slices.ContainsFunc(m.Studies, func(s journal.Study) bool { return s.ID != one.ID && s.Reference() == one.Reference() }) {
				return record.StudyTaken(*one)
			}
			kept.Owner, kept.Definition.Name = one.Owner, one.Definition.Name
		}
		kept.Status, kept.Reason, kept.Elapsed, kept.Since, kept.Finished, kept.Annotation = one.Status, one.Reason, one.Elapsed, one.Since, one.Finished, one.Annotation
		kept.Changes = one.Changes
	}
	if id := change.Delete; id != "" {
		at := m.Study(id)
		if at < 0 {
			return record.NoStudy(id)
		}
		m.Studies = slices.Delete(m.Studies, at, at+1)
		m.forget(id)
	}
	return nil
}

// forget removes what belongs to the study.
func (m *Model) forget(id string) {
	ours := func(t trial.ID) bool { return m.Trials[t].Study == id }
	maps.DeleteFunc(m.reports, func(t trial.ID, _ []trial.Report) bool { return ours(t) })
	maps.DeleteFunc(m.letters, func(l letter, _ byte) bool { return ours(l.id) })
	maps.DeleteFunc(m.Trials, func(t trial.ID, _ trial.Trial) bool { return ours(t) })
	m.Events = slices.DeleteFunc(m.Events, func(e journal.Event) bool { return e.Study == id })
	delete(m.snapshots, id)
}

func (m *Model) writeTrial(write journal.TrialWrite) error {
	t := write.Trial
	kept, there := m.Trials[t.ID]
	if write.Guard != nil {
		switch {
		case !there || kept.Study != t.Study || kept.Number != t.Number:
			return record.NoTrial(t.ID)
		case kept.State != write.Guard.State || kept.LeaseEpoch != write.Guard.LeaseEpoch:
			return record.GuardBroken(t.ID, *write.Guard)
		}
		m.Trials[t.ID] = t
		return nil
	}
	for _, other := range m.Trials {
		there = there || other.Study == t.Study && other.Number == t.Number
	}
	switch {
	case there:
		return record.TrialTaken(t)
	case m.Study(t.Study) < 0:
		return record.NoStudy(t.Study)
	}
	m.Trials[t.ID] = t
	return nil
}

func (m Model) applyRest(before Model, change journal.Change) (Model, error) {
	if one := change.Snapshot; one != nil {
		if m.Study(one.Study) < 0 {
			return before, record.NoStudy(one.Study)
		}
		if kept, there := m.snapshots[one.Study]; !there || kept.Sequence <= one.Sequence {
			m.snapshots[one.Study] = *one
		}
	}
	m.learn(change)
	if one := change.Receipt; one != nil {
		if _, taken := m.Receipts[one.Key]; taken {
			return before, record.KeyTaken(one.Key)
		}
		m.Receipts[one.Key] = *one
	}
	return m, nil
}

// learn forgets and writes records, and writes architectures and entries of the
// pool; it is never refused.
func (m *Model) learn(change journal.Change) {
	if machine := change.Forget; machine != nil {
		maps.DeleteFunc(m.records, func(_ string, r similarity.Record) bool { return *machine == "" || r.Machine == *machine })
	}
	for _, one := range change.Records {
		m.records[one.ID] = one
	}
	for _, one := range change.Architectures { // never as many as are kept
		m.Architectures[one.Key] = one
	}
	for _, one := range change.Pool {
		m.pool = slices.DeleteFunc(m.pool, func(old journal.PoolEntry) bool { return old.Kind == one.Kind && old.Name == one.Name })
		if len(one.Document) > 0 {
			m.pool = append(m.pool, one)
		}
	}
	for _, one := range change.Records {
		list := m.truth(one.Machine)
		for _, old := range list[:max(0, len(list)-journal.MaxRecords)] {
			delete(m.records, old.ID)
		}
	}
}

// truth returns the records of the type of machine, of all types if it is
// empty, the oldest first.
func (m Model) truth(machine string) []similarity.Record {
	list := slices.DeleteFunc(slices.Collect(maps.Values(m.records)), func(r similarity.Record) bool {
		return machine != "" && r.Machine != machine
	})
	slices.SortFunc(list, func(a, b similarity.Record) int { return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.ID, b.ID)) })
	return list
}

// Study is the place of a study, negative if there is none.
func (m Model) Study(id string) int {
	return slices.IndexFunc(m.Studies, func(s journal.Study) bool { return s.ID == id })
}

// Write appends to a log, which stays below its cap here.
func (m *Model) Write(id trial.ID, epoch trial.LeaseEpoch, offset int64, text string) error {
	t, there := m.Trials[id]
	switch {
	case !there:
		return record.NoTrial(id)
	case t.LeaseEpoch != epoch:
		return record.LogClosed(id, epoch)
	}
	for i := range len(text) {
		at := letter{id, epoch, offset + int64(i)}
		if _, there := m.letters[at]; !there {
			m.letters[at] = text[i]
		}
	}
	return nil
}

// InsertToken adds a token.
func (m *Model) InsertToken(token access.Token) error {
	if m.token(token.ID) >= 0 {
		return record.TokenTaken(token.ID)
	}
	m.tokens = append(m.tokens, token)
	return nil
}

// DeleteToken removes a token.
func (m *Model) DeleteToken(id string) error {
	at := m.token(id)
	if at < 0 {
		return record.NoToken(id)
	}
	m.tokens = slices.Delete(m.tokens, at, at+1)
	return nil
}

// BindToken makes a token the machine's that belongs to none.
func (m *Model) BindToken(id, worker string) error {
	at := m.token(id)
	if at < 0 {
		return record.NoToken(id)
	}
	if bound := m.tokens[at].Worker; bound != "" && bound != worker {
		return record.TokenBound(id, bound)
	}
	m.tokens[at].Worker = worker
	return nil
}

// UseToken notes when a token was last used.
func (m *Model) UseToken(id string, used time.Time) error {
	at := m.token(id)
	if at < 0 {
		return record.NoToken(id)
	}
	if before := m.tokens[at].Used; before == nil || before.Before(used) {
		m.tokens[at].Used = &used
	}
	return nil
}

func (m Model) token(id string) int {
	return slices.IndexFunc(m.tokens, func(t access.Token) bool { return t.ID == id })
}

// Purge deletes the receipts older than the time and returns how many.
func (m *Model) Purge(before time.Time) int {
	count := len(m.Receipts)
	maps.DeleteFunc(m.Receipts, func(_ string, r journal.Receipt) bool { return r.At.Before(before) })
	return count - len(m.Receipts)
}

// Picture is what a store with the model's content shows.
func (m Model) Picture() Picture {
	p := Blank()
	p.Studies, p.Tokens = slices.Clone(m.Studies), slices.Clone(m.tokens)
	slices.Reverse(p.Studies)
	slices.SortStableFunc(p.Studies, func(a, b journal.Study) int { return b.Created.Compare(a.Created) })
	slices.SortStableFunc(p.Tokens, func(a, b access.Token) int { return a.Created.Compare(b.Created) })
	for id, t := range m.Trials {
		p.Trials[t.Study] = append(p.Trials[t.Study], t)
		p.Logs[id] = m.log(id)
	}
	for _, list := range p.Trials {
		slices.SortFunc(list, func(a, b trial.Trial) int { return cmp.Compare(a.Number, b.Number) })
	}
	events := slices.SortedFunc(slices.Values(m.Events), func(a, b journal.Event) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, event := range events {
		p.Events[event.Study] = append(p.Events[event.Study], event)
		if t, there := m.Trials[event.Trial]; there && t.Study == event.Study {
			p.Told[event.Trial] = append(p.Told[event.Trial], event)
		}
	}
	for _, one := range m.records {
		p.Truth[one.Machine] = m.truth(one.Machine)
	}
	p.All = m.truth("")
	p.Architectures = slices.SortedFunc(maps.Values(m.Architectures), func(a, b emu.Architecture) int {
		return cmp.Or(b.Seen.Compare(a.Seen), cmp.Compare(b.Key, a.Key))
	})
	slices.SortFunc(m.pool, func(a, b journal.PoolEntry) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	for _, one := range m.pool {
		p.Pool[one.Kind] = append(p.Pool[one.Kind], one)
	}
	p.Reports, p.Snapshots, p.Receipts = maps.Clone(m.reports), m.snapshots, m.Receipts
	p.tidy()
	return p
}

func (m Model) log(id trial.ID) string {
	var places []letter
	for at := range m.letters {
		if at.id == id {
			places = append(places, at)
		}
	}
	slices.SortFunc(places, func(a, b letter) int {
		return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.offset, b.offset))
	})
	var text strings.Builder
	for _, at := range places {
		text.WriteByte(m.letters[at])
	}
	return text.String()
}
