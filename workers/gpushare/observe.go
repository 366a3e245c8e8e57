package gpushare

import (
	"context"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare/utilization"
	"github.com/tandem-tune/tandem/workers/pool"
)

// Place is where a trial runs.
type Place struct {
	// GPU is the type of its GPU; empty where that is not known, or it has several
	// types.
	GPU string
	// Exact says that it is known which GPU it is. Colocated then has the other leases
	// on it, by trial.
	Exact     bool
	Colocated []pool.LeaseID
}

// Epoch is what was seen of an epoch of a trial on a GPU.
type Epoch struct {
	Use *trial.GPUUse
	// Seconds are for a pass over all of the data, without what came before the
	// training; 0 where there was none.
	Seconds float64
}

// Began notes that a trial begins at the place: the next trials on that GPU are then
// judged by whom they would run with.
func (m *Model) Began(of Study, t trial.Trial, at Place) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.refusals, of.ID)
	if at.GPU == "" || len(t.GPUs) > 1 {
		return
	}
	one := running{gpu: at.GPU, lease: t.LeaseEpoch, use: m.running[t.ID].useOn(at.GPU), kind: of.kindOf(t)}
	if share := t.GPUShare; share != nil && !share.Alone {
		one.expected = Training{Utilization: share.Utilization, MemoryBytes: float64(share.MemoryBytes)}
	}
	m.follow(t.ID, one)
}

// Observe learns from an epoch of a trial at the place: what it used, and how long it
// took.
func (m *Model) Observe(ctx context.Context, t trial.Trial, at Place, epoch Epoch) {
	if at.GPU == "" || len(t.GPUs) > 1 {
		return
	}
	key, batch := "", batchOf(t.Configuration)
	if t.Inference != nil {
		key = t.Inference.Architecture
	}
	now := m.options.Now()
	features, described := utilization.Features{}, false
	if key != "" {
		features, described = m.features(ctx, key, batch)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	before := m.running[t.ID]
	if before.lease != t.LeaseEpoch || before.gpu != at.GPU {
		before = running{gpu: at.GPU, lease: t.LeaseEpoch, use: before.useOn(at.GPU), expected: before.expected}
	}
	next := before
	next.use, next.reported, next.colocated, next.kind = before.use.Plus(epoch.Use), now, at.Colocated, kindOf(t.Study, key, batch)
	m.follow(t.ID, next)
	if use := next.use; described && use != nil && use.Alone && use.Seconds >= LeastSeconds && use.MemoryBytes > 0 {
		m.see(at.GPU, Profile{
			Training: string(t.ID), Seconds: use.Seconds, At: now.UTC(),
			Sample: utilization.Sample{Features: features, Family: key, Utilization: use.Utilization, MemoryBytes: use.MemoryBytes},
		})
	}
	// In the first epoch of a lease, and in one in which others came or went, it is not
	// known with whom it ran.
	if at.Exact && !before.reported.IsZero() && epoch.Seconds > 0 && slices.Equal(before.colocated, at.Colocated) {
		m.time(next, epoch.Seconds)
	}
}

// Left forgets what is of use only while the trial may go on.
func (m *Model) Left(id trial.ID) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.running, id)
}

// follow remembers what is seen of a training under its lease. The lock is held.
func (m *Model) follow(id trial.ID, one running) {
	if _, known := m.running[id]; !known && len(m.running) >= mostRunning {
		clear(m.running)
	}
	m.running[id] = one
}

// see takes in a training that was seen alone long enough. The lock is held.
func (m *Model) see(gpu string, profile Profile) {
	one := m.gpu(gpu)
	if one == nil {
		return
	}
	if gone := one.See(profile); gone != "" {
		m.unsaved[entryName{profileEntry, gpu, gone}] = true
	}
	m.unsaved[entryName{profileEntry, gpu, profile.Training}] = true
}

// time takes in how long an epoch of a training took, alone or with one other on its
// GPU: with two, it is not known which of them is to blame. The lock is held.
func (m *Model) time(one running, seconds float64) {
	other := ""
	if len(one.colocated) > 0 {
		companion, known := m.running[one.colocated[0].Trial]
		if !known || companion.lease != one.colocated[0].Epoch || len(one.colocated) > 1 {
			return
		}
		other = companion.kind
	}
	if gpu := m.gpu(one.gpu); gpu != nil {
		gpu.Ran(one.training(), other, seconds, one.reported.UTC())
		m.unsaved[entryName{kind: epochTimesEntry, gpu: one.gpu}] = true
	}
}

// refusal is that a study's trial was kept from a GPU by a trial that runs there.
type refusal struct {
	why string
	at  time.Time
}

// Refusal says which trial kept the study's next one from a GPU; empty where none did
// within the term.
func (m *Model) Refusal(study string) string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	one, known := m.refusals[study]
	if !known || m.options.Now().Sub(one.at) > m.options.RefusalTerm {
		return ""
	}
	return one.why
}

// refuse notes why the study's next trial is kept from a GPU.
func (m *Model) refuse(study, why string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if len(m.refusals) >= mostRunning {
		clear(m.refusals)
	}
	m.refusals[study] = refusal{why, m.options.Now()}
}

// colocated is how fast a training should be on one GPU with a trial that runs there.
func (m *Model) colocated(own Training, resident trial.ID) Speeds {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	there := m.running[resident]
	gpu := m.gpus[there.gpu]
	if gpu == nil {
		gpu = &GPU{}
	}
	return gpu.Colocated(own, there.training())
}
