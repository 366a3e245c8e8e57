package study

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare/experience"
	"github.com/tandem-tune/tandem/workers/gpushare/utilization"
)

// The kinds of what is stored of trainings on GPUs.
const (
	profileEntry = "gpu_profile" // a training that was seen alone
	learnedEntry = "gpu_model"   // what was learned of all on a type of GPU
	pacesEntry   = "gpu_paces"   // how long epochs took there, alone and together
)

const (
	// mostGPUTypes bounds the types of GPU of which anything is kept: their names
	// come from workers.
	mostGPUTypes = 32
	// mostGrowing and mostOutlines bound what is kept at hand.
	mostGrowing, mostOutlines = 4096, 4096
	// savePacesEvery is how often paces are stored, all of them at once, which are
	// some 100 KiB: so much of them may be lost when a server is killed.
	savePacesEvery = 5 * time.Minute
)

// lessons are what the service has seen of trainings on GPUs, and learned from it.
// They are safe for concurrent use; their lock is taken last, and never held while
// anything is learned or stored.
type lessons struct {
	mutex sync.Mutex
	gpus  map[string]*experience.GPU // by the name of the GPU
	// unsaved are entries that are to be stored, as they are by then.
	unsaved  map[lessonName]bool
	pacesAt  time.Time // when paces were last stored
	growing  map[trial.ID]growing
	outlines map[string]utilization.Outline // by the key of an architecture
	// disturbed are the studies whose next trial was kept from a GPU by who runs there.
	disturbed map[string]disturbed
	// connected are the types of GPU of the workers that are heard of.
	connected []string
	// learning lets one lesson be learned at a time.
	learning gate.Gate
}

// lessonName is an entry of the store: a training's of a GPU, or the GPU's.
type lessonName struct{ kind, gpu, training string }

func (n lessonName) entry() string {
	if n.kind != profileEntry {
		return n.gpu
	}
	name, _ := json.Marshal([]string{n.gpu, n.training})
	return string(name)
}

// growing is what is seen of a training under its present lease.
type growing struct {
	gpu   string
	lease trial.LeaseEpoch
	use   *trial.GPUUse
	// reported is when its newest report came, and beside who shared its GPU then.
	reported time.Time
	beside   []holding
	kind     string // of training
	// expected is what it should use; zero where that is not known.
	expected experience.Alone
}

// holding is a trial under a lease.
type holding struct {
	trial trial.ID
	lease trial.LeaseEpoch
}

// storedProfile is a profile with the type of GPU that it is of.
type storedProfile struct {
	GPU string `json:"gpu"`
	experience.Profile
}

func newLessons() *lessons {
	return &lessons{
		gpus: map[string]*experience.GPU{}, unsaved: map[lessonName]bool{}, growing: map[trial.ID]growing{},
		outlines: map[string]utilization.Outline{}, disturbed: map[string]disturbed{}, learning: gate.New(),
	}
}

// gpu is what is known of the type of GPU; nil where there are too many types. The
// lock is held.
func (l *lessons) gpu(name string) *experience.GPU {
	one, known := l.gpus[name]
	if !known && len(l.gpus) < mostGPUTypes {
		one = &experience.GPU{}
		l.gpus[name] = one
	}
	return one
}

// loadLessons reads what is stored. A model of another version is not lost: it is
// learned again from the trainings that it was made from.
func (s *Service) loadLessons(ctx context.Context) error {
	l := newLessons()
	if err := eachEntry(ctx, s.store, profileEntry, func(_ string, one storedProfile) {
		if gpu := l.gpu(one.GPU); gpu != nil {
			gpu.See(one.Profile)
		}
	}); err != nil {
		return err
	}
	if err := eachEntry(ctx, s.store, pacesEntry, func(name string, one experience.Paces) {
		if gpu := l.gpu(name); gpu != nil {
			gpu.RestorePaces(one)
		}
	}); err != nil {
		return err
	}
	err := eachEntry(ctx, s.store, learnedEntry, func(name string, document json.RawMessage) {
		learned, err := utilization.ReadLearned(document)
		if err != nil {
			s.options.Logger.Warn("what was learned of a GPU is learned again", "gpu", name, "error", err)
			return
		}
		if gpu := l.gpu(name); gpu != nil {
			gpu.Restore(learned)
		}
	})
	s.gpuLessons = l
	return err
}

// Learn learns from what was seen of trainings on GPUs, where enough of it is new,
// and stores what was seen and learned. It takes seconds: the caller runs it now
// and then beside everything else, once at a time.
func (s *Service) Learn(ctx context.Context) error {
	l := s.gpuLessons
	if err := l.learning.Enter(ctx); err != nil {
		return err
	}
	defer l.learning.Leave()
	taught := false
	for _, name := range l.names() {
		l.mutex.Lock()
		gpu := l.gpus[name]
		due := gpu.Due()
		var lesson experience.Lesson
		if due {
			lesson = gpu.Lesson()
		}
		l.mutex.Unlock()
		if !due {
			continue
		}
		lore := lesson.Learn()
		l.mutex.Lock()
		gpu.Adopt(lore)
		l.unsaved[lessonName{kind: learnedEntry, gpu: name}] = true
		l.mutex.Unlock()
		taught = true
	}
	if err := s.saveLessons(ctx, false); err != nil {
		return err
	}
	if taught {
		s.notify() // whoever waits may share a GPU now
	}
	return nil
}

// names are the types of GPU of which anything was seen, sorted.
func (l *lessons) names() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.Sorted(maps.Keys(l.gpus))
}

// saveLessons stores what is new. What could not be stored is tried again.
func (s *Service) saveLessons(ctx context.Context, closing bool) error {
	l, now := s.gpuLessons, s.options.Now()
	l.mutex.Lock()
	unsaved := l.unsaved
	l.unsaved = map[lessonName]bool{}
	pacesToo := closing || now.Sub(l.pacesAt).Abs() >= savePacesEvery
	if pacesToo {
		l.pacesAt = now
	}
	var entries []PoolEntry
	var err error
	for name := range unsaved {
		if name.kind == pacesEntry && !pacesToo {
			l.unsaved[name] = true
			continue
		}
		var document json.RawMessage
		if document, err = l.document(name); err != nil {
			break
		}
		entries = append(entries, PoolEntry{Kind: name.kind, Name: name.entry(), Document: document})
	}
	l.mutex.Unlock()
	if err == nil && len(entries) > 0 {
		slices.SortFunc(entries, func(a, b PoolEntry) int { return slices.Compare([]string{a.Kind, a.Name}, []string{b.Kind, b.Name}) })
		err = s.store.Apply(ctx, Change{Pool: entries})
	}
	if err != nil {
		l.mutex.Lock()
		maps.Copy(l.unsaved, unsaved)
		l.pacesAt = time.Time{}
		l.mutex.Unlock()
		return fmt.Errorf("store what was seen of GPUs: %w", err)
	}
	return nil
}

// document is an entry as it is now; empty where there is none any more. The lock
// is held.
func (l *lessons) document(name lessonName) (json.RawMessage, error) {
	gpu, known := l.gpus[name.gpu]
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
	case learnedEntry:
		if gpu.Learned() == nil {
			return nil, nil
		}
		value = gpu.Learned()
	default:
		value = gpu.Paces()
	}
	document, err := json.Marshal(value)
	if err != nil {
		return nil, problem.New(problem.Internal, "encode the %s of %s: %w", name.kind, name.gpu, err)
	}
	return document, nil
}

// see takes in a training that was seen alone long enough. The lock is held.
func (l *lessons) see(gpu string, profile experience.Profile) {
	one := l.gpu(gpu)
	if one == nil {
		return
	}
	if gone := one.See(profile); gone != "" {
		l.unsaved[lessonName{profileEntry, gpu, gone}] = true
	}
	l.unsaved[lessonName{profileEntry, gpu, profile.Training}] = true
}

// described are the features of an architecture with a batch; false where the
// architecture is not in the store any more.
func (s *Service) described(ctx context.Context, key string, batch int64) (utilization.Features, bool) {
	l := s.gpuLessons
	l.mutex.Lock()
	outline, known := l.outlines[key]
	l.mutex.Unlock()
	if !known {
		a, err := s.store.Architecture(ctx, key)
		if err != nil {
			if !problem.Is(err, problem.NotFound) {
				s.options.Logger.Warn("what a trial trains cannot be looked at", "architecture", key, "error", err)
			}
			return utilization.Features{}, false
		}
		outline = utilization.OutlineOf(a.Graph)
		outline.ModelBytes = a.StoredBytes // which counts shared weights once
		l.mutex.Lock()
		if len(l.outlines) >= mostOutlines {
			clear(l.outlines)
		}
		l.outlines[key] = outline
		l.mutex.Unlock()
	}
	return outline.With(batch), true
}

// keep remembers what is seen of a training under its lease. The lock is held.
func (l *lessons) keep(id trial.ID, one growing) {
	if _, known := l.growing[id]; !known && len(l.growing) >= mostGrowing {
		clear(l.growing)
	}
	l.growing[id] = one
}
