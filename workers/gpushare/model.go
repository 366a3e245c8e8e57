// Package gpushare decides which trials may share a GPU, and keeps what a server has
// learned for it.
//
// A [Model] has what the server has seen of trainings on GPUs. For each type of GPU it
// predicts how much of the GPU a training will use ([GPU.Expect]) and how fast two
// trainings run that share one ([GPU.Colocated]). A [Study] has what its trials were
// seen to use. Both together give an [Estimate] for a trial.
//
// Nothing is predicted before there is enough to learn from. A prediction comes with the
// error of predictions for trainings that were hidden from the model. The same
// observations give the same models.
package gpushare

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare/utilization"
	"github.com/tandem-tune/tandem/workers/pool"
)

const (
	// mostGPUTypes bounds the types of GPU of which anything is kept: their names
	// come from workers.
	mostGPUTypes = 32
	// mostRunning bounds the trainings that are followed, and the studies of which a
	// refusal is kept; mostOutlines the architectures in memory.
	mostRunning, mostOutlines = 4096, 4096
)

// Store reads what trials train.
type Store interface {
	Architecture(ctx context.Context, key string) (emu.Architecture, error)
	// Studies returns all studies, the newest first.
	Studies(ctx context.Context) ([]journal.Study, error)
	Trials(ctx context.Context, study string) ([]trial.Trial, error)
}

// Options are what a Model takes from its surroundings.
type Options struct {
	Now func() time.Time
	// RefusalTerm is for how long a refusal to share a GPU is shown.
	RefusalTerm time.Duration
	Logger      *slog.Logger
}

// Model is what is known of trainings on the GPUs of all workers. It is safe for
// concurrent use. Its lock is taken last, and never held while models are fitted or the
// store is read.
type Model struct {
	store   Store
	options Options

	mutex sync.Mutex
	gpus  map[string]*GPU // by the name of the type of GPU
	// unsaved are the entries that are to be stored; epochTimesSaved is when the epoch
	// times were last stored.
	unsaved         map[entryName]bool
	epochTimesSaved time.Time
	running         map[trial.ID]running
	outlines        map[string]utilization.Outline // by the key of an architecture
	// refusals are by the study whose next trial was kept from a GPU.
	refusals map[string]refusal
	// connected are the types of GPU of the connected workers.
	connected []string
}

// running is what is seen of a training under its present lease.
type running struct {
	gpu   string
	lease trial.LeaseEpoch
	use   *trial.GPUUse
	// reported is when its newest report came, and colocated who shared its GPU then.
	reported  time.Time
	colocated []pool.LeaseID
	kind      string // of training
	// expected is what it should use; zero where that is not known.
	expected Training
}

// training is its kind, with what it was seen to use or should use.
func (r running) training() Training {
	one := Training{Kind: r.kind, Utilization: r.expected.Utilization, MemoryBytes: r.expected.MemoryBytes}
	if use := r.use; use != nil && use.Alone && use.Seconds > 0 {
		one.Utilization, one.MemoryBytes = use.Utilization, float64(use.MemoryBytes)
	}
	return one
}

// useOn is what was seen of the trial on the type of GPU.
func (r running) useOn(gpu string) *trial.GPUUse {
	if r.gpu == gpu {
		return r.use
	}
	return nil
}

// New returns a model that knows nothing.
func New(store Store, options Options) *Model {
	return &Model{
		store: store, options: options, gpus: make(map[string]*GPU), unsaved: make(map[entryName]bool), running: make(map[trial.ID]running),
		outlines: make(map[string]utilization.Outline), refusals: make(map[string]refusal),
	}
}

// gpu is what is known of the type of GPU; nil where there are too many types. The
// lock is held.
func (m *Model) gpu(name string) *GPU {
	one, known := m.gpus[name]
	if !known && len(m.gpus) < mostGPUTypes {
		one = &GPU{}
		m.gpus[name] = one
	}
	return one
}

// types are the types of GPU of which anything was seen, sorted.
func (m *Model) types() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Sorted(maps.Keys(m.gpus))
}

// Connect notes the types of GPU of the connected workers.
func (m *Model) Connect(types []string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.connected = types
}

// Learn fits new models where enough is new, and reports whether it did. It takes
// seconds. The caller runs it now and then, one at a time.
func (m *Model) Learn() (learned bool) {
	for _, name := range m.types() {
		m.mutex.Lock()
		gpu := m.gpus[name]
		due := gpu.Due()
		var set TrainingSet
		if due {
			set = gpu.TrainingSet()
		}
		m.mutex.Unlock()
		if !due {
			continue
		}
		fitted := set.Fit()
		m.mutex.Lock()
		gpu.Adopt(fitted)
		m.mutex.Unlock()
		learned = true
	}
	return learned
}

// fitted reports whether there is a model of any type of GPU.
func (m *Model) fitted() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, gpu := range m.gpus {
		if gpu.Learned() != nil {
			return true
		}
	}
	return false
}

// features are those of an architecture with a batch; false where the store does not
// have the architecture any more.
func (m *Model) features(ctx context.Context, key string, batch int64) (utilization.Features, bool) {
	m.mutex.Lock()
	outline, known := m.outlines[key]
	m.mutex.Unlock()
	if !known {
		a, err := m.store.Architecture(ctx, key)
		if err != nil {
			if !problem.Is(err, problem.NotFound) {
				m.options.Logger.Warn("what a trial trains cannot be looked at", "architecture", key, "error", err)
			}
			return utilization.Features{}, false
		}
		outline = utilization.OutlineOf(a.Graph)
		outline.ModelBytes = a.StoredBytes // which counts shared weights once
		m.mutex.Lock()
		if len(m.outlines) >= mostOutlines {
			clear(m.outlines)
		}
		m.outlines[key] = outline
		m.mutex.Unlock()
	}
	return outline.With(batch), true
}
