package main

import (
	"context"
	"os"
	"sync"

	"github.com/tandem-tune/tandem/edge"
	"github.com/tandem-tune/tandem/edge/emulator"
	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/workers/agent"
)

// models looks at the models of trials in a process that is locked in.
type models struct {
	library      emulator.FindOptions
	wattsPerCore float64
	once         sync.Once
	site         *edge.Site
}

var _ agent.Models = (*models)(nil)

func (m *models) Inspect(ctx context.Context, file *os.File) (agent.Architecture, error) {
	found, err := emulator.Inspect(ctx, file, nil)
	return agent.Architecture{Key: found.Key, Graph: found.Graph, ActivationBytes: found.ActivationBytes}, err
}

// runSeconds is how long each setting is measured beside a training at most.
const runSeconds = 2

func (m *models) Run(ctx context.Context, file *os.File, cells []protocol.InferenceCell) ([]edge.Run, error) {
	library, err := emulator.Find(ctx, m.library)
	if err != nil {
		return nil, err
	}
	job := emulator.Job{Model: file, Library: library, WattsPerCore: m.wattsPerCore, Precision: emulator.Precision{Seconds: runSeconds}}
	for _, cell := range cells {
		job.Cells = append(job.Cells, emulator.Cell{Batch: cell.Batch, Threads: cell.Threads})
	}
	result, err := emulator.Run(ctx, job)
	var runs []edge.Run
	for _, one := range result.Cells {
		runs = append(runs, edge.Run{
			Batch: one.Batch, Threads: one.Threads, Seconds: one.Latency.P50, Low: one.Latency.MedianLow, High: one.Latency.MedianHigh,
			P90: one.Latency.P90, P99: one.Latency.P99, Repetitions: one.Runs,
			Joules: one.JoulesPerSample * float64(one.Batch), EnergyMethod: one.EnergyMethod, MemoryBytes: one.PeakBeyondLibraryBytes,
		})
	}
	return runs, err
}

// Site is found out once: it takes a moment.
func (m *models) Site() *edge.Site {
	m.once.Do(func() {
		own := thisMachine()
		if _, err := own.Device(); err != nil {
			return // objectives about this machine then say what is missing
		}
		m.site = &edge.Site{
			Processor: own.Processor, Cores: own.Cores, LowestHertz: own.LowestHertz, HighestHertz: own.HighestHertz,
			MemoryBytes: own.MemoryBytes, MemoryBytesPerSecond: own.MemoryBytesPerSecond, Features: own.Features,
		}
	})
	return m.site
}
