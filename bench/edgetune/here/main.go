// Command here runs models with ONNX Runtime on this machine, over batch sizes and
// numbers of threads, and holds against these runs what the estimates say of them
// (thesis, section 7.5.4), or what the same runtime takes outside of the emulator.
//
//	python3 bench/edgetune/here/models.py models                         # the eight that are held out
//	go run ./bench/edgetune networks learned                             # the ten that are learned from
//	go run ./cmd/tandem edge devices this-machine --json > machine.json
//	go run ./bench/edgetune/here -device machine.json -onnxruntime FOLDER -results runs.json models/*.onnx
//	go run ./bench/edgetune/here -device machine.json -onnxruntime FOLDER -python PYTHON models/*.onnx
//
// It prints Markdown. The machine should do nothing else.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/bench/edgetune/runs"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/emulator"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
	"github.com/tandem-tune/tandem/inference_emu/onnx"
	"github.com/tandem-tune/tandem/inference_emu/onnxruntime"
)

// draws is how often calibration measurements are drawn.
const draws = 20

func main() {
	if slices.Equal(os.Args[1:], emulator.Subcommand()) {
		os.Exit(emulator.Process())
	}
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench/edgetune/here:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var b bench
	described := flag.String("device", "", "what \"tandem edge devices this-machine --json\" prints")
	flag.StringVar(&b.library, "onnxruntime", "", "ONNX Runtime's shared library, or the folder it is in")
	flag.Float64Var(&b.seconds, "seconds", 1, "how long each setting is measured at most")
	passes := flag.Int("passes", 3, "how often all models are run; of each setting the quickest pass counts")
	results := flag.String("results", "", "file that keeps the runs; if it is there, nothing runs and it is reported")
	python := flag.String("python", "", "interpreter with the package onnxruntime: hold the emulator's runs against its own")
	flag.Parse()
	if *results != "" {
		if kept, err := runs.Read(*results); !errors.Is(err, os.ErrNotExist) {
			if err != nil {
				return err
			}
			return report(kept)
		}
	}
	if flag.NArg() == 0 {
		return errors.New("name model files: models.py makes some")
	}
	if err := b.open(ctx, *described); err != nil {
		return err
	}
	if *python != "" {
		return b.compare(ctx, *python, flag.Args())
	}
	all := runs.Runs{Runtime: "ONNX Runtime", Device: b.device, Workloads: map[string]estimate.Workload{}}
	for range max(1, *passes) {
		for _, path := range flag.Args() {
			if err := b.measure(ctx, path, &all); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	if *results != "" {
		if err := all.Write(*results); err != nil {
			return err
		}
	}
	return report(all)
}

// bench is where and how models are run.
type bench struct {
	library string
	seconds float64
	device  estimate.Device
}

// open finds the library and reads what the machine is made of.
func (b *bench) open(ctx context.Context, described string) error {
	content, err := os.ReadFile(filepath.Clean(described))
	if err != nil {
		return fmt.Errorf("-device names the file that \"tandem edge devices this-machine --json\" printed: %w", err)
	}
	var machine device.Device
	if err := json.Unmarshal(content, &machine); err != nil {
		return fmt.Errorf("-device %s is not what \"tandem edge devices this-machine --json\" prints: %w", described, err)
	}
	if len(machine.Clusters) == 0 {
		return fmt.Errorf("-device %s has no clusters of cores: it has to be what \"tandem edge devices this-machine --json\" prints", described)
	}
	b.device = deployment.Rates(machine)
	b.device.Name = machine.Processor.Value // on another machine, this machine is another one
	b.library, err = onnxruntime.Find(ctx, onnxruntime.Options{Named: b.library})
	return err
}

// batches and numbers of threads that models are run with.
func (b *bench) cells() []emulator.Cell {
	var cells []emulator.Cell
	for threads := 1; threads <= b.device.Cores && threads <= 8; threads *= 2 {
		for _, batch := range []int{1, 2, 4, 8, 16, 32} {
			cells = append(cells, emulator.Cell{Batch: batch, Threads: threads})
		}
	}
	return cells
}

func nameOf(path string) string { return strings.TrimSuffix(filepath.Base(path), ".onnx") }

// emulate runs a model in the emulator's process.
func (b *bench) emulate(ctx context.Context, path string) (emulator.Result, error) {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return emulator.Result{}, err
	}
	defer func() { _ = file.Close() }() // it was only read
	fmt.Fprintln(os.Stderr, nameOf(path))
	return emulator.Run(ctx, emulator.Job{Model: file, Library: b.library, Cells: b.cells(), Precision: emulator.Precision{Seconds: b.seconds}})
}

// measure adds the runs of a model.
func (b *bench) measure(ctx context.Context, path string, to *runs.Runs) error {
	content, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return err
	}
	g, err := onnx.Read(content, onnx.Options{})
	if err != nil {
		return err
	}
	result, err := b.emulate(ctx, path)
	if err != nil {
		return err
	}
	name := nameOf(path)
	to.Workloads[name] = estimate.Summarize(g)
	to.Runtime = "ONNX Runtime " + result.Environment.Runtime
	for _, cell := range result.Cells {
		to.Add(runs.Run{Model: name, Batch: cell.Batch, Threads: cell.Threads,
			Seconds: cell.Latency.P50, CPUSeconds: cell.CPUSecondsPerRun, MemoryBytes: cell.PeakBeyondLibraryBytes})
	}
	return nil
}

// report says how far estimates are from the runs.
func report(all runs.Runs) error {
	knowledge, err := estimate.Known()
	if err != nil {
		return err
	}
	everything := all.Measurements(func(string) bool { return true })
	models := all.Models()
	fmt.Printf("%d measurements of %d models on %s (%d cores), %s\n\n| calibrated with | median error | 90th percentile |\n|---|---|---|\n", len(everything), len(models), all.Device.Name, all.Device.Cores, all.Runtime)
	random := rand.New(rand.NewPCG(1, 2))
	for _, points := range []int{0, 10, 20} {
		if points >= len(everything) {
			break
		}
		var errs []float64
		for range draws {
			order := random.Perm(len(everything))
			errs = append(errs, held(all.Device, knowledge, pick(everything, order[:points]), pick(everything, order[points:]))...)
		}
		row(fmt.Sprintf("%d random measurements", points), errs)
	}
	var others []float64
	for _, left := range models {
		known := all.Measurements(func(model string) bool { return model != left })
		unknown := all.Measurements(func(model string) bool { return model == left })
		errs := held(all.Device, knowledge, known, unknown)
		row("all of the other models, "+left, errs)
		others = append(others, errs...)
	}
	row("all of the other models", others)
	return nil
}

func pick(all []estimate.Measurement, places []int) []estimate.Measurement {
	var list []estimate.Measurement
	for _, at := range places {
		list = append(list, all[at])
	}
	return list
}

// held are the errors of estimates that know some measurements, on others.
func held(on estimate.Device, knowledge estimate.Knowledge, known, unknown []estimate.Measurement) []float64 {
	model := estimate.Fit(on, known, knowledge)
	var errs []float64
	for _, one := range unknown {
		errs = append(errs, math.Abs(model.Predict(one.Workload, one.Configuration).Seconds.Value/one.Seconds-1))
	}
	return errs
}

func row(name string, errs []float64) {
	median, high := quantiles(errs)
	fmt.Printf("| %s | %.1f%% | %.1f%% |\n", name, 100*median, 100*high)
}

// quantiles are the median and the 90th percentile of something.
func quantiles(values []float64) (median, high float64) {
	slices.SortFunc(values, func(a, b float64) int { return cmp.Compare(a, b) })
	at := func(part float64) float64 { return values[int(part*float64(len(values)-1))] }
	return at(0.5), at(0.9)
}
