package storetest

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

// model is a store so simple that it is right by inspection: plain values, and
// a change is tried on a copy.
type model struct {
	studies       []journal.Study // in order of insertion
	trials        map[trial.ID]trial.Trial
	reports       map[trial.ID][]trial.Report
	events        []journal.Event
	snapshots     map[string]journal.Snapshot
	receipts      map[string]journal.Receipt
	records       map[string]similarity.Record
	architectures map[string]emu.Architecture
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

func newModel() model {
	return model{
		trials: map[trial.ID]trial.Trial{}, reports: map[trial.ID][]trial.Report{}, snapshots: map[string]journal.Snapshot{},
		receipts: map[string]journal.Receipt{}, letters: map[letter]byte{}, records: map[string]similarity.Record{},
		architectures: map[string]emu.Architecture{},
	}
}

func (m model) copied() model {
	m.studies, m.events, m.tokens = slices.Clone(m.studies), slices.Clone(m.events), slices.Clone(m.tokens)
	m.trials, m.reports, m.snapshots = maps.Clone(m.trials), maps.Clone(m.reports), maps.Clone(m.snapshots)
	m.receipts, m.letters, m.records = maps.Clone(m.receipts), maps.Clone(m.letters), maps.Clone(m.records)
	m.architectures = maps.Clone(m.architectures)
	m.pool = slices.Clone(m.pool)
	return m
}

// apply returns the model with the change, or why it is refused.
func (m model) apply(change journal.Change) (model, error) {
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
		if _, there := after.trials[report.Trial]; !there {
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
		case slices.ContainsFunc(after.events, taken):
			return m, record.SequenceTaken(event)
		case after.study(event.Study) < 0:
			return m, record.NoStudy(event.Study)
		}
		after.events = append(after.events, event)
	}
	return after.applyRest(m, change)
}

// behind refuses what was not decided on the study's newest event.
func (m model) behind(p *journal.Position) error {
	if p == nil {
		return nil
	}
	if m.study(p.Study) < 0 {
		return record.NoStudy(p.Study)
	}
	newest := int64(0)
	for _, event := range m.events {
		if event.Study == p.Study {
			newest = max(newest, event.Sequence)
		}
	}
	if newest != p.Sequence {
		return record.NotBehind(*p, newest)
	}
	return nil
}

func (m *model) applyStudy(change journal.Change) error {
	if one := change.Insert; one != nil {
		if slices.ContainsFunc(m.studies, func(s journal.Study) bool { return s.ID == one.ID || s.Reference() == one.Reference() }) {
			return record.StudyTaken(*one)
		}
		m.studies = append(m.studies, *one)
	}
	if one := change.Update; one != nil {
		at := m.study(one.ID)
		if at < 0 {
			return record.NoStudy(one.ID)
		}
		kept := &m.studies[at]
		kept.Status, kept.Reason, kept.Elapsed, kept.Since, kept.Finished, kept.Annotation = one.Status, one.Reason, one.Elapsed, one.Since, one.Finished, one.Annotation
	}
	if id := change.Delete; id != "" {
		at := m.study(id)
		if at < 0 {
			return record.NoStudy(id)
		}
		m.studies = slices.Delete(m.studies, at, at+1)
		m.forget(id)
	}
	return nil
}

// forget removes what belongs to the study.
func (m *model) forget(id string) {
	ours := func(t trial.ID) bool { return m.trials[t].Study == id }
	maps.DeleteFunc(m.reports, func(t trial.ID, _ []trial.Report) bool { return ours(t) })
	maps.DeleteFunc(m.letters, func(l letter, _ byte) bool { return ours(l.id) })
	maps.DeleteFunc(m.trials, func(t trial.ID, _ trial.Trial) bool { return ours(t) })
	m.events = slices.DeleteFunc(m.events, func(e journal.Event) bool { return e.Study == id })
	delete(m.snapshots, id)
}

func (m *model) writeTrial(write journal.TrialWrite) error {
	t := write.Trial
	kept, there := m.trials[t.ID]
	if write.Guard != nil {
		switch {
		case !there || kept.Study != t.Study || kept.Number != t.Number:
			return record.NoTrial(t.ID)
		case kept.State != write.Guard.State || kept.LeaseEpoch != write.Guard.LeaseEpoch:
			return record.GuardBroken(t.ID, *write.Guard)
		}
		m.trials[t.ID] = t
		return nil
	}
	for _, other := range m.trials {
		there = there || other.Study == t.Study && other.Number == t.Number
	}
	switch {
	case there:
		return record.TrialTaken(t)
	case m.study(t.Study) < 0:
		return record.NoStudy(t.Study)
	}
	m.trials[t.ID] = t
	return nil
}

func (m model) applyRest(before model, change journal.Change) (model, error) {
	if one := change.Snapshot; one != nil {
		if m.study(one.Study) < 0 {
			return before, record.NoStudy(one.Study)
		}
		if kept, there := m.snapshots[one.Study]; !there || kept.Sequence <= one.Sequence {
			m.snapshots[one.Study] = *one
		}
	}
	m.learn(change)
	if one := change.Receipt; one != nil {
		if _, taken := m.receipts[one.Key]; taken {
			return before, record.KeyTaken(one.Key)
		}
		m.receipts[one.Key] = *one
	}
	return m, nil
}

// learn forgets and writes records, and writes architectures and entries of the
// pool; it is never refused.
func (m *model) learn(change journal.Change) {
	if machine := change.Forget; machine != nil {
		maps.DeleteFunc(m.records, func(_ string, r similarity.Record) bool { return *machine == "" || r.Machine == *machine })
	}
	for _, one := range change.Records {
		m.records[one.ID] = one
	}
	for _, one := range change.Architectures { // never as many as are kept
		m.architectures[one.Key] = one
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
func (m model) truth(machine string) []similarity.Record {
	list := slices.DeleteFunc(slices.Collect(maps.Values(m.records)), func(r similarity.Record) bool {
		return machine != "" && r.Machine != machine
	})
	slices.SortFunc(list, func(a, b similarity.Record) int { return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.ID, b.ID)) })
	return list
}

func (m model) study(id string) int {
	return slices.IndexFunc(m.studies, func(s journal.Study) bool { return s.ID == id })
}

// write appends to a log, which stays below its cap here.
func (m *model) write(id trial.ID, epoch trial.LeaseEpoch, offset int64, text string) error {
	t, there := m.trials[id]
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

func (m *model) insertToken(token access.Token) error {
	if m.token(token.ID) >= 0 {
		return record.TokenTaken(token.ID)
	}
	m.tokens = append(m.tokens, token)
	return nil
}

func (m *model) deleteToken(id string) error {
	at := m.token(id)
	if at < 0 {
		return record.NoToken(id)
	}
	m.tokens = slices.Delete(m.tokens, at, at+1)
	return nil
}

func (m *model) bindToken(id, worker string) error {
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

func (m *model) useToken(id string, used time.Time) error {
	at := m.token(id)
	if at < 0 {
		return record.NoToken(id)
	}
	if before := m.tokens[at].Used; before == nil || before.Before(used) {
		m.tokens[at].Used = &used
	}
	return nil
}

func (m model) token(id string) int {
	return slices.IndexFunc(m.tokens, func(t access.Token) bool { return t.ID == id })
}

func (m *model) purge(before time.Time) int {
	count := len(m.receipts)
	maps.DeleteFunc(m.receipts, func(_ string, r journal.Receipt) bool { return r.At.Before(before) })
	return count - len(m.receipts)
}

// picture is what a store with the model's content shows.
func (m model) picture() picture {
	p := blank()
	p.Studies, p.Tokens = slices.Clone(m.studies), slices.Clone(m.tokens)
	slices.Reverse(p.Studies)
	slices.SortStableFunc(p.Studies, func(a, b journal.Study) int { return b.Created.Compare(a.Created) })
	slices.SortStableFunc(p.Tokens, func(a, b access.Token) int { return a.Created.Compare(b.Created) })
	for id, t := range m.trials {
		p.Trials[t.Study] = append(p.Trials[t.Study], t)
		p.Logs[id] = m.log(id)
	}
	for _, list := range p.Trials {
		slices.SortFunc(list, func(a, b trial.Trial) int { return cmp.Compare(a.Number, b.Number) })
	}
	events := slices.SortedFunc(slices.Values(m.events), func(a, b journal.Event) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, event := range events {
		p.Events[event.Study] = append(p.Events[event.Study], event)
		if t, there := m.trials[event.Trial]; there && t.Study == event.Study {
			p.Told[event.Trial] = append(p.Told[event.Trial], event)
		}
	}
	for _, one := range m.records {
		p.Truth[one.Machine] = m.truth(one.Machine)
	}
	p.All = m.truth("")
	p.Architectures = slices.SortedFunc(maps.Values(m.architectures), func(a, b emu.Architecture) int {
		return cmp.Or(b.Seen.Compare(a.Seen), cmp.Compare(b.Key, a.Key))
	})
	slices.SortFunc(m.pool, func(a, b journal.PoolEntry) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	for _, one := range m.pool {
		p.Pool[one.Kind] = append(p.Pool[one.Kind], one)
	}
	p.Reports, p.Snapshots, p.Receipts = maps.Clone(m.reports), m.snapshots, m.receipts
	p.tidy()
	return p
}

func (m model) log(id trial.ID) string {
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
