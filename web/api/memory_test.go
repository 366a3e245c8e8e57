package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

// memory is a small store in memory: enough of study.Store, study.LogStore,
// auth.Store and api.Artifacts to run the real use cases behind real HTTP.
type memory struct {
	mutex     sync.Mutex
	studies   []study.Study
	trials    map[string][]trial.Trial
	reports   []trial.Report
	events    []study.Event
	snapshots map[string]study.Snapshot
	receipts  map[string]study.Receipt
	logs      map[trial.ID]string
	tokens    []auth.Token
	lookUps   int // of tokens
	blobs     map[string][]byte
}

func newMemory() *memory {
	return &memory{
		trials: map[string][]trial.Trial{}, snapshots: map[string]study.Snapshot{}, receipts: map[string]study.Receipt{},
		logs: map[trial.ID]string{}, blobs: map[string][]byte{},
	}
}

func missing(what string) error { return problem.New(problem.NotFound, "there is no %s", what) }

func (m *memory) Apply(_ context.Context, change study.Change) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if err := m.check(change); err != nil {
		return err
	}
	if change.Insert != nil {
		m.studies = append(m.studies, *change.Insert)
	}
	for i := range m.studies {
		if change.Update != nil && m.studies[i].ID == change.Update.ID {
			m.studies[i] = *change.Update
		}
	}
	for _, write := range change.Trials {
		list := m.trials[write.Trial.Study]
		if write.Trial.Number < len(list) {
			list[write.Trial.Number] = write.Trial
		} else {
			m.trials[write.Trial.Study] = append(list, write.Trial)
		}
	}
	m.reports = append(m.reports, change.Reports...)
	m.events = append(m.events, change.Events...)
	if change.Snapshot != nil {
		m.snapshots[change.Snapshot.Study] = *change.Snapshot
	}
	if change.Receipt != nil {
		m.receipts[change.Receipt.Key] = *change.Receipt
	}
	if change.Delete != "" {
		m.studies = slices.DeleteFunc(m.studies, func(s study.Study) bool { return s.ID == change.Delete })
		m.events = slices.DeleteFunc(m.events, func(e study.Event) bool { return e.Study == change.Delete })
		delete(m.trials, change.Delete)
	}
	return nil
}

func (m *memory) check(change study.Change) error {
	if change.Receipt != nil {
		if _, taken := m.receipts[change.Receipt.Key]; taken {
			return problem.New(problem.Conflict, "the key is taken")
		}
	}
	if change.Insert != nil {
		for _, other := range m.studies {
			if other.Definition.Name == change.Insert.Definition.Name {
				return problem.New(problem.Conflict, "the name is taken")
			}
		}
	}
	for _, write := range change.Trials {
		if write.Guard == nil {
			continue
		}
		stored := m.trials[write.Trial.Study][write.Trial.Number]
		if stored.LeaseEpoch != write.Guard.LeaseEpoch || stored.State != write.Guard.State {
			return problem.New(problem.LeaseLost, "the trial moved on")
		}
	}
	return nil
}

func (m *memory) Study(_ context.Context, ref string) (study.Study, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, one := range m.studies {
		if one.ID == ref || one.Definition.Name == ref {
			return one, nil
		}
	}
	return study.Study{}, missing("study " + ref)
}

func (m *memory) Studies(context.Context) ([]study.Study, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	list := slices.Clone(m.studies)
	slices.Reverse(list)
	return list, nil
}

func (m *memory) Trials(_ context.Context, id string) ([]trial.Trial, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Clone(m.trials[id]), nil
}

func (m *memory) Trial(_ context.Context, id trial.ID) (trial.Trial, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, list := range m.trials {
		for _, one := range list {
			if one.ID == id {
				return one, nil
			}
		}
	}
	return trial.Trial{}, missing("trial " + string(id))
}

func (m *memory) Reports(_ context.Context, id trial.ID) ([]trial.Report, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var list []trial.Report
	for _, report := range m.reports {
		if report.Trial == id {
			list = append(list, report)
		}
	}
	return list, nil
}

func (m *memory) Events(_ context.Context, id string, after int64, limit int) ([]study.Event, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var list []study.Event
	for _, event := range m.events {
		if event.Study == id && event.Sequence > after && len(list) < limit {
			list = append(list, event)
		}
	}
	return list, nil
}

func (m *memory) TrialEvents(_ context.Context, id string, of trial.ID) ([]study.Event, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var list []study.Event
	for _, event := range m.events {
		if event.Study == id && event.Trial == of {
			list = append(list, event)
		}
	}
	return list, nil
}

func (m *memory) Snapshot(_ context.Context, id string) (study.Snapshot, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	snapshot, ok := m.snapshots[id]
	if !ok {
		return snapshot, missing("snapshot")
	}
	return snapshot, nil
}

func (m *memory) Receipt(_ context.Context, key string) (study.Receipt, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	receipt, ok := m.receipts[key]
	if !ok {
		return receipt, missing("receipt")
	}
	return receipt, nil
}

func (m *memory) AppendLog(_ context.Context, id trial.ID, _ trial.LeaseEpoch, offset int64, text string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if offset == int64(len(m.logs[id])) {
		m.logs[id] += text
	}
	return nil
}

func (m *memory) Log(_ context.Context, id trial.ID) (string, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.logs[id], nil
}

func (m *memory) InsertToken(_ context.Context, token auth.Token) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.tokens = append(m.tokens, token)
	return nil
}

func (m *memory) Token(_ context.Context, id string) (auth.Token, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.lookUps++
	for _, token := range m.tokens {
		if token.ID == id {
			return token, nil
		}
	}
	return auth.Token{}, missing("token " + id)
}

func (m *memory) Tokens(context.Context) ([]auth.Token, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Clone(m.tokens), nil
}

func (m *memory) DeleteToken(_ context.Context, id string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	before := len(m.tokens)
	m.tokens = slices.DeleteFunc(m.tokens, func(t auth.Token) bool { return t.ID == id })
	if len(m.tokens) == before {
		return missing("token " + id)
	}
	return nil
}

func (m *memory) Put(_ context.Context, hash string, from io.Reader, limit int64) (int64, error) {
	data, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err != nil {
		return 0, err
	}
	if int64(len(data)) > limit {
		return 0, problem.New(problem.Exhausted, "an artifact has at most %d bytes", limit)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != hash {
		return 0, problem.New(problem.Invalid, "the bytes have another SHA-256 than %s", hash)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.blobs[hash] = data
	return int64(len(data)), nil
}

func (m *memory) Open(hash string) (io.ReadCloser, int64, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	data, ok := m.blobs[hash]
	if !ok {
		return nil, 0, missing("artifact " + hash)
	}
	return io.NopCloser(bytes.NewReader(data)), int64(len(data)), nil
}

// secretIn reports whether the store holds the text anywhere a token is kept.
func (m *memory) secretIn(text string) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, token := range m.tokens {
		if strings.Contains(string(token.Hash[:]), text) || strings.Contains(token.ID+token.Name, text) {
			return true
		}
	}
	return false
}
