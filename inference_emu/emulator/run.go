package emulator

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/profiler"
)

// Run does a job in a process of its own. An error carries what to do about it:
// [problem.Invalid] says that the job or the model is wrong, [problem.Exhausted]
// that a limit was reached, [problem.NotFound] that there is no usable ONNX
// Runtime. The result then has the cells measured before, and is still true.
func Run(ctx context.Context, job Job) (Result, error) {
	job.setDefaults()
	size, err := check(job)
	if err != nil {
		return Result{}, err
	}
	result := Result{ModelBytes: size, Cells: []Measurement{}}
	order, err := orderFor(job)
	if err != nil {
		return result, err
	}
	machine := profiler.ThisMachine()
	result.Environment = Environment{Library: job.Library, CPUModel: machine.CPUModel, AllowedCores: machine.Cores, MemoryLimitBytes: job.Limits.MemoryBytes, Layers: []Layer{}}
	bounded, cancel := context.WithTimeout(ctx, job.Limits.Wall)
	defer cancel()
	l := &listener{job: job, result: &result, hertz: frequencyOf}
	l.meter = profiler.OpenMeter(profiler.MeterOptions{WattsPerCore: job.WattsPerCore, Cores: machine.Cores, External: job.Meter})
	defer l.meter.Close()
	for _, cells := range apart(order.Cells) {
		wanted := len(result.Cells) + len(cells)
		order.Cells, l.ready = cells, false
		if l.child, err = start(bounded, job); err != nil {
			return result, err
		}
		answered := l.listen(order)
		ended := l.child.end()
		ended.ready = l.ready
		if answered != nil || len(result.Cells) != wanted {
			return result, whyEnded(ctx, bounded, ended, answered, job)
		}
	}
	return result, nil
}

// check looks at the job, not into the model, and returns the model's size.
func check(job Job) (int64, error) {
	if job.Model == nil {
		return 0, problem.New(problem.Invalid, "a job needs a model")
	}
	about, err := job.Model.Stat()
	if err != nil {
		return 0, problem.New(problem.Invalid, "look at the model: %w", err)
	}
	switch {
	case !about.Mode().IsRegular():
		return 0, problem.New(problem.Invalid, "%s is not a file with an ONNX model", job.Model.Name())
	case about.Size() == 0:
		return 0, problem.New(problem.Invalid, "%s is empty", job.Model.Name())
	case about.Size() > job.Limits.ModelBytes:
		return 0, tooLarge(about.Size(), job.Limits.ModelBytes)
	}
	return about.Size(), checkSettings(job)
}

func tooLarge(size, limit int64) error {
	return problem.New(problem.Exhausted, "the model has %d bytes, and at most %d are allowed", size, limit)
}

func checkSettings(job Job) error {
	var faults []problem.Field
	fault := func(path, message string, value any) {
		faults = append(faults, problem.Field{Path: path, Message: message, Value: value})
	}
	if len(job.Cells) == 0 || len(job.Cells) > MaxCells {
		fault("cells", fmt.Sprintf("must be 1 to %d", MaxCells), len(job.Cells))
	}
	for at, cell := range job.Cells {
		path := fmt.Sprintf("cells[%d].", at)
		if cell.Batch < 1 || cell.Batch > MaxBatch {
			fault(path+"batch", fmt.Sprintf("must be from 1 to %d", MaxBatch), cell.Batch)
		}
		if cell.Threads < 1 || cell.Threads > MaxThreads {
			fault(path+"threads", fmt.Sprintf("must be from 1 to %d", MaxThreads), cell.Threads)
		}
		if cell.Provider != "" && !slices.Contains(emu.Providers()[1:], cell.Provider) {
			fault(path+"provider", "must be one of "+strings.Join(emu.Providers(), ", "), cell.Provider)
		}
		if cell.Cores < 0 {
			fault(path+"cores", "must not be negative", cell.Cores)
		}
	}
	for name, size := range job.Inputs.Dimensions {
		if size < 1 {
			fault("inputs.dimensions."+name, "must be at least 1", size)
		}
	}
	if p := job.Precision; !(p.RelativeWidth > 0) || !(p.Seconds > 0) || math.IsInf(p.Seconds, 0) || p.MinRuns < 1 || p.MinRuns > MaxRuns {
		fault("precision", fmt.Sprintf("needs a relative width and seconds above 0, and 1 to %d runs", MaxRuns), p)
	}
	if job.Inputs.IntegersBelow < 1 {
		fault("inputs.integers_below", "must be at least 1", job.Inputs.IntegersBelow)
	}
	if job.Limits.MemoryBytes < 1 || job.Limits.ModelBytes < 1 || job.Limits.Wall <= 0 {
		fault("limits", "must be above 0", job.Limits)
	}
	if len(faults) > 0 {
		return problem.WithFields("the emulation cannot be run as asked", faults)
	}
	return nil
}

func orderFor(job Job) (order, error) {
	o := order{Library: job.Library, Inputs: job.Inputs, Limits: job.Limits, Precision: job.Precision}
	if job.Library == "" {
		return o, problem.New(problem.NotFound, "no ONNX Runtime was given")
	}
	allowed := allowedCores()
	threads := 1
	for at, cell := range job.Cells {
		if err := provided(job.Library, cell.Provider); err != nil {
			return o, err
		}
		if cell.Cores == 0 {
			cell.Cores = min(cell.Threads, len(allowed))
		}
		if cell.Cores > len(allowed) {
			return o, problem.WithFields("the emulation cannot be run as asked", []problem.Field{{Path: fmt.Sprintf("cells[%d].cores", at), Message: fmt.Sprintf("must be at most %d, which this process may use here", len(allowed)), Value: cell.Cores}})
		}
		threads = max(threads, cell.Threads)
		o.Cells = append(o.Cells, placed{Cell: cell, CoreNumbers: allowed[:cell.Cores]})
	}
	// More than the cores can give in that time is not needed.
	o.Seconds = math.Ceil(job.Limits.Wall.Seconds()*float64(min(threads, runtime.NumCPU()))) + 10
	return o, nil
}

// listener takes the answers of a process down.
type listener struct {
	job    Job
	child  *child
	result *Result
	meter  *profiler.Meter
	ready  bool // the process got as far as the model
	hertz  func(cores []int) Frequency
	window *profiler.Window
	cpu    float64   // CPU seconds as last answered
	begun  time.Time // when the cell began
	// inspected is what was found in a file that is only looked at.
	inspected *Inspection
}

// listen sends the order and takes answers until there are no more. Its error is
// what the process said was wrong.
func (l *listener) listen(o order) error {
	defer func() {
		if l.window != nil {
			l.window.Close()
		}
	}()
	if err := json.NewEncoder(l.child.orders).Encode(o); err != nil {
		return nil // it has ended already: how it did says more
	}
	lines := bufio.NewScanner(io.LimitReader(l.child.answers, maxAnswerBytes))
	lines.Buffer(nil, maxAnswerBytes)
	for lines.Scan() {
		var answer message
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			return fmt.Errorf("the emulation process answered nonsense: %w", err)
		}
		if err := l.take(answer); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return errors.New("the emulation process answered too much")
	}
	return nil
}

func (l *listener) take(answer message) error {
	switch {
	case answer.Ready != nil:
		l.ready = true
		e := &l.result.Environment
		e.Runtime, e.LibraryBytes, e.Layers = answer.Ready.Runtime, answer.Ready.LibraryBytes, answer.Ready.Layers
	case answer.Begin != nil:
		l.cpu, l.begun = *answer.Begin, time.Now()
		l.window = l.meter.Open(func() float64 { return l.cpu })
		l.proceed()
	case answer.End != nil:
		return l.measured(*answer.End)
	case answer.Graph != nil && l.inspected == nil:
		l.inspected = answer.Graph
	case answer.Failed != nil:
		return problem.New(answer.Failed.Code, "%s", answer.Failed.Detail)
	}
	return nil
}

// proceed lets the process go on. That it cannot is found by the next answer.
func (l *listener) proceed() { _, _ = l.child.orders.Write([]byte("\n")) }

func (l *listener) measured(end endMessage) error {
	m := end.Measurement
	if l.window == nil || len(l.result.Cells) == len(l.job.Cells) || m.Runs < 1 {
		return errors.New("the emulation process answered out of turn")
	}
	l.cpu = end.CPUSeconds
	energy := l.window.Lap()
	l.window.Close()
	l.window = nil
	m.EnergyMethod = energy.Method
	m.spent(energy.Joules, time.Since(l.begun).Seconds())
	m.PeakBeyondLibraryBytes = max(0, m.PeakBytes-l.result.Environment.LibraryBytes)
	m.Frequency = l.hertz(m.CoreNumbers)
	l.result.Cells = append(l.result.Cells, m)
	if l.job.Progress != nil {
		l.job.Progress(m)
	}
	l.proceed()
	return nil
}

// readOnly opens a file again for reading only, whatever else the caller's
// descriptor can do.
func readOnly(file *os.File) (*os.File, error) {
	again, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		return nil, problem.New(problem.Invalid, "open the model for reading: %w", err)
	}
	return again, nil
}
