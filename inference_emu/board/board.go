// Package board is the agent on an edge device: it pulls models from a server, measures
// them there, and reports what they took, as workers pull trials.
//
// What it gets are models without weights and names. It gives them weights of its own
// making, and has them read and run in processes that are locked in (package emulator).
package board

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/emulator"
	"github.com/tandem-tune/tandem/inference_emu/onnx/document"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/workers/agent/retry"
)

// Server is what gives models to measure.
type Server interface {
	AskBoard(ctx context.Context, ask emu.BoardAsk) (emu.BoardReply, error)
	ReportBoard(ctx context.Context, runs emu.BoardRuns) (protocol.ArchitecturesImported, error)
}

// Agent measures on one device.
type Agent struct {
	Server Server
	// Process is its random name: the server refuses another one that asks as the board.
	Process string
	// Board is its own name, Device what it is ([emu.BoardAsk]).
	Board, Device string
	Site          emu.Site
	// Library is ONNX Runtime's shared library.
	Library string
	// MemoryBytes is what a model may take, Precision how exactly each setting is measured.
	MemoryBytes int64
	Precision   emulator.Precision
	// Meter is the board's power meter; nil: without one there are no joules that count.
	Meter  profiler.External
	Logger *slog.Logger
}

const (
	// wait is how long the server is asked to hold a question open, patience how much
	// longer its answer is waited for.
	wait     = 20 * time.Second
	patience = 30 * time.Second
	// mostRefused is how often the server may refuse in a row, refusedPause apart, before this
	// one ends: an agent whose machine went off is missed only after wait.
	mostRefused  = 9
	refusedPause = 5 * time.Second
	// maxFailure bounds the words about a failure.
	maxFailure = 4096
)

// Run asks and measures until the context ends, or the server refuses the board.
func (a Agent) Run(ctx context.Context) error {
	pause := retry.NewPause(refusedPause, refusedPause)
	for refused := 0; ctx.Err() == nil; {
		switch _, err := a.Once(ctx, wait); {
		case err == nil:
			refused = 0
		case !problem.Is(err, problem.Conflict) || refused == mostRefused:
			return err
		default:
			if refused++; refused == 1 {
				a.Logger.Warn("the server refuses this board; it is asked again for a while, in case that agent has just ended", "reason", err)
			}
			pause.Wait(ctx)
		}
	}
	return nil
}

// Once asks for an order, measures it, and reports that; false if there was none.
func (a Agent) Once(ctx context.Context, wait time.Duration) (bool, error) {
	reply, err := a.ask(ctx, wait, false)
	if err != nil || reply.Order == nil {
		return false, ended(ctx, err)
	}
	runs := emu.BoardRuns{Board: a.Board, Device: a.Device, Site: a.Site, Key: reply.Order.Key}
	if len(reply.Order.Cells) > 0 {
		runs.Provider = reply.Order.Cells[0].Provider
	}
	var failed error
	end := a.busy(ctx)
	runs.Runs, failed = a.measure(ctx, *reply.Order)
	if end(); ctx.Err() != nil {
		return false, nil // it gets the order again, or another board does
	}
	if failed != nil {
		runs.Failure = failed.Error()[:min(len(failed.Error()), maxFailure)]
		a.Logger.Warn("a model could not be measured in every setting", "architecture", runs.Key, "reason", failed)
	}
	err = a.call(ctx, retry.CallPatience, func(ctx context.Context) error {
		_, err := a.Server.ReportBoard(ctx, runs)
		return err
	})
	return true, ended(ctx, err)
}

// ask asks for an order, or only says that the board is there.
func (a Agent) ask(ctx context.Context, wait time.Duration, busy bool) (reply emu.BoardReply, err error) {
	ask := emu.BoardAsk{Board: a.Board, Device: a.Device, Site: a.Site, Agent: a.Process, Busy: busy, WaitSeconds: wait.Seconds()}
	err = a.call(ctx, wait+patience, func(ctx context.Context) (err error) {
		reply, err = a.Server.AskBoard(ctx, ask)
		return err
	})
	return reply, err
}

// busy has the server know that the board is there while it measures, until end is called.
func (a Agent) busy(ctx context.Context) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() {
		for ctx.Err() == nil {
			if _, err := a.ask(ctx, wait, true); err != nil {
				return // the next question says why
			}
		}
	})
	return func() { stop(); telling.Wait() }
}

// ended is the error, unless the agent was to end.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// call repeats a call until the server has answered.
func (a Agent) call(ctx context.Context, patience time.Duration, do func(context.Context) error) error {
	return retry.Do(ctx, patience, func(err error) { a.Logger.Warn("the server does not answer; it is asked again", "reason", err) }, do)
}

// measure runs the model with weights of its own making.
func (a Agent) measure(ctx context.Context, order emu.BoardOrder) ([]emu.Run, error) {
	model, err := document.Unpack(order.Skeleton, a.MemoryBytes)
	if err != nil {
		return nil, err
	}
	file, err := unnamed(model)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if found, err := emulator.Inspect(ctx, file, nil); err != nil {
		return nil, err
	} else if found.Key != order.Key {
		return nil, problem.New(problem.Invalid, "the model that was sent is %s, not the architecture that it was sent for", found.Key)
	}
	job := emulator.Job{Model: file, Library: a.Library, Limits: emulator.Limits{MemoryBytes: a.MemoryBytes}, Precision: a.Precision, Meter: a.Meter}
	for _, cell := range order.Cells {
		job.Cells = append(job.Cells, emulator.Cell{Batch: cell.Batch, Threads: cell.Threads, Provider: cell.Provider})
	}
	a.Logger.Info("measuring", "architecture", order.Key, "settings", len(job.Cells))
	result, err := emulator.Run(ctx, job)
	var runs []emu.Run
	for _, one := range result.Cells {
		runs = append(runs, RunOf(one))
	}
	return runs, err
}

// unnamed is a file with the bytes that ends with this process.
func unnamed(content []byte) (*os.File, error) {
	file, err := os.CreateTemp("", "tandem-board-")
	if err != nil {
		return nil, fmt.Errorf("keep the model: %w", err)
	}
	_, err = file.Write(content)
	if err = errors.Join(os.Remove(file.Name()), err); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// RunOf is a measurement as it is kept.
func RunOf(m emulator.Measurement) emu.Run {
	return emu.Run{
		Batch: m.Batch, Threads: m.Threads, Provider: m.Provider, Seconds: m.Latency.P50, Low: m.Latency.MedianLow, High: m.Latency.MedianHigh,
		P90: m.Latency.P90, P99: m.Latency.P99, Repetitions: m.Runs,
		Joules: m.JoulesPerSample * float64(m.Batch), EnergyMethod: m.EnergyMethod, MemoryBytes: m.PeakBeyondLibraryBytes,
	}
}
