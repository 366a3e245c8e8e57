package workercmd

import (
	"context"
	"os"
	"sync"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/edgecmd"
	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/board"
	"github.com/tandem-tune/tandem/inference_emu/emulator"
	"github.com/tandem-tune/tandem/inference_emu/onnxruntime"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/artifact"
)

// models looks at the models of trials in a process that is locked in.
type models struct {
	library      onnxruntime.Options
	wattsPerCore float64
	once         sync.Once
	site         *emu.Site
}

var _ artifact.Models = (*models)(nil)

// Inspect reads a model in a process of its own.
func (m *models) Inspect(ctx context.Context, file *os.File) (artifact.Architecture, error) {
	found, err := emulator.Inspect(ctx, file, nil)
	return artifact.Architecture{
		Key: found.Key, Graph: found.Graph, ActivationBytes: found.ActivationBytes, StoredBytes: found.Graph.StoredBytes(),
		Skeleton: found.Skeleton, NoSkeleton: found.Unpacked,
	}, err
}

// runSeconds is how long each setting is measured beside a training at most.
const runSeconds = 2

// Run measures a model in a process of its own.
func (m *models) Run(ctx context.Context, file *os.File, cells []protocol.InferenceCell, share float64) ([]emu.Run, error) {
	library, err := onnxruntime.Find(ctx, m.library)
	if err != nil {
		return nil, err
	}
	job := emulator.Job{Model: file, Library: library, WattsPerCore: m.wattsPerCore, Precision: emulator.Precision{Seconds: runSeconds * share}}
	for _, cell := range cells {
		job.Cells = append(job.Cells, emulator.Cell{Batch: cell.Batch, Threads: cell.Threads, Provider: cell.Provider})
	}
	result, err := emulator.Run(ctx, job)
	var runs []emu.Run
	for _, one := range result.Cells {
		runs = append(runs, board.RunOf(one))
	}
	return runs, err
}

// Site is found out once: it takes a moment.
func (m *models) Site() *emu.Site {
	m.once.Do(func() {
		own := edgecmd.ThisMachine()
		if _, err := own.Device(); err != nil {
			return // objectives about this machine then say what is missing
		}
		site := emu.Site(own)
		if library, err := onnxruntime.Find(context.Background(), m.library); err == nil {
			site.Providers, _ = emulator.Providers(context.Background(), library)
		}
		m.site = &site
	})
	return m.site
}
