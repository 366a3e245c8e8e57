package goptunatandem

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/c-bata/goptuna"
	tandem "github.com/tandem-tune/tandem/clients/go"
)

const (
	studyID = goptuna.InMemoryStorageStudyID
	// firstOwn is the id of the first trial of this process. A trial of another one has
	// its number on the server as its id.
	firstOwn = 1 << 30
)

// storage is what goptuna sees of a bridge: the trials of this process in full, those of
// others as the server has them. A study's attributes stay in this process.
type storage struct {
	*Bridge
	*goptuna.InMemoryStorage
}

var _ goptuna.Storage = &storage{}

// CreateNewStudy takes the name of a study that the server does not have.
func (s *storage) CreateNewStudy(name string) (int, error) {
	if name == "" {
		name = "goptuna-" + rand.Text()[:8]
	}
	s.mu.Lock()
	other, shared := s.name, s.shared
	s.mu.Unlock()
	if other != "" && other != name {
		return -1, fmt.Errorf("goptunatandem: the bridge is for study %q already: make another one for %q", other, name)
	}
	if !shared {
		_, err := s.client.Study(s.ctx, serverStudy(name))
		if err == nil {
			return -1, fmt.Errorf("goptunatandem: the server has a study %q already: choose another name, or go on with it by goptuna.StudyOptionLoadIfExists(true)", serverStudy(name))
		}
		if !tandem.IsCode(err, tandem.NotFound) {
			return -1, err
		}
	}
	s.mu.Lock()
	s.name = name
	s.mu.Unlock()
	return studyID, nil
}

// GetStudyIDFromName finds a study to go on with.
func (s *storage) GetStudyIDFromName(name string) (int, error) {
	s.mu.Lock()
	if s.name == "" || s.study == nil {
		s.name = name
	}
	s.shared = true
	s.mu.Unlock()
	release, err := s.take(s.ctx)
	if err != nil {
		return -1, err
	}
	defer release()
	if err := s.look(s.ctx); err != nil {
		return -1, err
	}
	if s.Study() == nil {
		return -1, fmt.Errorf("goptunatandem: the server has no study %q", serverStudy(name))
	}
	return studyID, nil
}

func (s *storage) DeleteStudy(int) error {
	study := s.Study()
	if study == nil {
		return nil
	}
	return study.Delete(s.ctx)
}

func (s *storage) SetStudyDirection(_ int, direction goptuna.StudyDirection) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.study != nil && s.direction != direction {
		return fmt.Errorf("goptunatandem: study %s of the server is to %s: give goptuna's that direction, not %s", s.study.Name, s.direction, direction)
	}
	s.direction = direction
	return nil
}

func (s *storage) GetStudyDirection(int) (goptuna.StudyDirection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.direction, nil
}

func (s *storage) GetStudyIDFromTrialID(int) (int, error) { return studyID, nil }

func (s *storage) GetStudyNameFromID(int) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name, nil
}

func (s *storage) GetAllStudySummaries() ([]goptuna.StudySummary, error) {
	best, err := s.GetBestTrial(studyID)
	if err != nil && !errors.Is(err, goptuna.ErrNoCompletedTrials) {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return []goptuna.StudySummary{{ID: studyID, Name: s.name, Direction: s.direction, BestTrial: best}}, nil
}

// CreateNewTrial makes room for a trial; SampleRelative, which goptuna calls next, asks
// the server for it. Here an error would have goptuna try again without end.
func (s *storage) CreateNewTrial(int) (int, error) {
	return s.add(goptuna.FrozenTrial{State: goptuna.TrialStateRunning, DatetimeStart: time.Now()}), nil
}

func (s *storage) CloneTrial(_ int, base goptuna.FrozenTrial) (int, error) { return s.add(base), nil }

func (b *Bridge) add(base goptuna.FrozenTrial) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	base = copied(base)
	base.ID, base.StudyID, base.Number = firstOwn+len(b.records), studyID, len(b.records)
	b.records = append(b.records, &record{frozen: base})
	return base.ID
}

// forget ends a trial that was not run: the server had none to give.
func (b *Bridge) forget(one *record) {
	if one.end != nil {
		one.end()
	}
	b.mu.Lock()
	one.gone, one.frozen.State, one.frozen.DatetimeComplete = true, goptuna.TrialStateFail, time.Now()
	b.mu.Unlock()
}

func (b *Bridge) find(id int) (*record, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id < firstOwn || id-firstOwn >= len(b.records) {
		return nil, fmt.Errorf("goptunatandem: trial %d is not one of this process: %w", id, goptuna.ErrInvalidTrialID)
	}
	return b.records[id-firstOwn], nil
}

// change changes a trial of this process that has not ended.
func (b *Bridge) change(id int, how func(*goptuna.FrozenTrial) error) error {
	one, err := b.find(id)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if one.frozen.State.IsFinished() {
		return goptuna.ErrTrialCannotBeUpdated
	}
	return how(&one.frozen)
}

func (s *storage) SetTrialValue(id int, value float64) error {
	return s.change(id, func(t *goptuna.FrozenTrial) error { t.Value = value; return nil })
}

func (s *storage) SetTrialIntermediateValue(id, step int, value float64) error {
	return s.change(id, func(t *goptuna.FrozenTrial) error {
		if _, has := t.IntermediateValues[step]; has {
			return fmt.Errorf("goptunatandem: step %d is reported already: report each once", step)
		}
		t.IntermediateValues[step] = value
		return nil
	})
}

func (s *storage) SetTrialParam(id int, name string, value float64, distribution any) error {
	external, err := goptuna.ToExternalRepresentation(distribution, value)
	if err != nil {
		return fmt.Errorf("goptunatandem: parameter %q: %w", name, err)
	}
	return s.change(id, func(t *goptuna.FrozenTrial) error {
		t.Params[name], t.InternalParams[name], t.Distributions[name] = external, value, distribution
		s.distinct[name] = distribution
		return nil
	})
}

// SetTrialState starts a trial that waited, or brings the server how one ended.
func (s *storage) SetTrialState(id int, state goptuna.TrialState) error {
	one, err := s.find(id)
	if err != nil {
		return err
	}
	err = s.change(id, func(t *goptuna.FrozenTrial) error {
		if state == goptuna.TrialStateRunning && t.State != goptuna.TrialStateWaiting {
			return goptuna.ErrTrialCannotBeUpdated // another goroutine was faster
		}
		t.State = state
		if state.IsFinished() {
			t.DatetimeComplete = time.Now()
		}
		return nil
	})
	if err != nil || !state.IsFinished() {
		return err
	}
	return s.finish(one, state)
}

func (s *storage) SetTrialUserAttr(id int, key, value string) error {
	return s.change(id, func(t *goptuna.FrozenTrial) error { t.UserAttrs[key] = value; return nil })
}

func (s *storage) SetTrialSystemAttr(id int, key, value string) error {
	return s.change(id, func(t *goptuna.FrozenTrial) error { t.SystemAttrs[key] = value; return nil })
}

func (s *storage) GetTrial(id int) (goptuna.FrozenTrial, error) {
	if id >= firstOwn {
		one, err := s.find(id)
		if err != nil {
			return goptuna.FrozenTrial{}, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return copied(one.frozen), nil
	}
	trials, err := s.GetAllTrials(studyID)
	for _, one := range trials {
		if one.ID == id {
			return one, nil
		}
	}
	return goptuna.FrozenTrial{}, errors.Join(err, fmt.Errorf("goptunatandem: trial %d: %w", id, goptuna.ErrInvalidTrialID))
}

func (s *storage) GetTrialNumberFromID(id int) (int, error) {
	found, err := s.GetTrial(id)
	return found.Number, err
}

func (s *storage) GetTrialParam(id int, name string) (float64, error) {
	found, err := s.GetTrial(id)
	value, has := found.InternalParams[name]
	if err == nil && !has {
		err = fmt.Errorf("goptunatandem: trial %d has no parameter %q", found.Number, name)
	}
	return value, err
}

func (s *storage) GetTrialParams(id int) (map[string]any, error) {
	found, err := s.GetTrial(id)
	return found.Params, err
}

func (s *storage) GetTrialUserAttrs(id int) (map[string]string, error) {
	found, err := s.GetTrial(id)
	return found.UserAttrs, err
}

func (s *storage) GetTrialSystemAttrs(id int) (map[string]string, error) {
	found, err := s.GetTrial(id)
	return found.SystemAttrs, err
}

// GetBestTrial is the best of all processes.
func (s *storage) GetBestTrial(int) (goptuna.FrozenTrial, error) {
	trials, err := s.GetAllTrials(studyID)
	if err != nil {
		return goptuna.FrozenTrial{}, err
	}
	s.mu.Lock()
	maximize := s.direction == goptuna.StudyDirectionMaximize
	s.mu.Unlock()
	var best *goptuna.FrozenTrial
	for i, one := range trials {
		better := best == nil || one.Value < best.Value
		if maximize {
			better = best == nil || one.Value > best.Value
		}
		if one.State == goptuna.TrialStateComplete && !math.IsNaN(one.Value) && better {
			best = &trials[i]
		}
	}
	if best == nil {
		return goptuna.FrozenTrial{}, goptuna.ErrNoCompletedTrials
	}
	return *best, nil
}

// GetAllTrials are those of all processes. goptuna calls it before each trial: of those
// that have ended, the server is asked once.
func (s *storage) GetAllTrials(int) ([]goptuna.FrozenTrial, error) {
	s.mu.Lock()
	study, first := s.study, len(s.finished)
	s.mu.Unlock()
	var fresh []tandem.TrialRecord
	if study != nil {
		var err error
		if fresh, err = study.TrialsFrom(s.ctx, first); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := append(s.finished[:first:first], fresh...)
	for len(s.finished) < len(all) && stateOf(all[len(s.finished)]).IsFinished() {
		s.finished = append(s.finished, all[len(s.finished)])
	}
	var found []goptuna.FrozenTrial
	own := map[int]bool{}
	for _, one := range s.records {
		if one.trial != nil || one.onServer {
			own[one.frozen.Number] = true
		}
		if !one.gone {
			found = append(found, copied(one.frozen))
		}
	}
	for _, one := range all {
		if !own[one.Number] {
			found = append(found, s.frozenOf(one))
		}
	}
	return found, nil
}

// stateOf is a trial's state. One that waits on the server runs for goptuna, which would
// start it otherwise.
func stateOf(one tandem.TrialRecord) goptuna.TrialState {
	switch one.State {
	case "completed":
		return goptuna.TrialStateComplete
	case "pruned":
		return goptuna.TrialStatePruned
	case "failed", "cancelled":
		return goptuna.TrialStateFail
	}
	return goptuna.TrialStateRunning
}

// frozenOf is a trial of another process, with the parameters that this one's objective
// has asked for. The caller has the lock.
func (b *Bridge) frozenOf(one tandem.TrialRecord) goptuna.FrozenTrial {
	found := copied(goptuna.FrozenTrial{ID: one.Number, StudyID: studyID, Number: one.Number, State: stateOf(one)})
	if len(one.Values) > 0 {
		found.Value = one.Values[0]
	}
	for name, distribution := range b.distinct {
		if value, fits := fromServer(distribution, one.Params[serverName(name)]); fits {
			found.InternalParams[name], found.Distributions[name], found.Params[name] = value, distribution, toServer(distribution, value)
		}
	}
	return found
}

// copied shares no map with the original.
func copied(of goptuna.FrozenTrial) goptuna.FrozenTrial {
	of.IntermediateValues = clone(of.IntermediateValues)
	of.InternalParams, of.Params, of.Distributions = clone(of.InternalParams), clone(of.Params), clone(of.Distributions)
	of.UserAttrs, of.SystemAttrs = clone(of.UserAttrs), clone(of.SystemAttrs)
	return of
}

func clone[K comparable, V any](of map[K]V) map[K]V {
	found := make(map[K]V, len(of))
	maps.Copy(found, of)
	return found
}
