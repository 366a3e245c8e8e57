// Command here holds estimates for this machine against real runs of ONNX
// Runtime on it, over batch sizes and numbers of threads: the emulator's
// estimates where it can be checked at once (thesis, section 7.5.4).
//
//	python3 bench/edgetune/here/models.py models
//	go run ./bench/edgetune/here -onnxruntime .venv-test/lib/python3.11/site-packages/onnxruntime/capi models/*.onnx
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

	"github.com/tandem-tune/tandem/edge/device"
	"github.com/tandem-tune/tandem/edge/emulator"
	"github.com/tandem-tune/tandem/edge/estimate"
	"github.com/tandem-tune/tandem/edge/onnx"
	"github.com/tandem-tune/tandem/profiler"
)

// measured is one real run's setting and its median.
type measured struct {
	Model string `json:"model"`
	estimate.Measurement
}

// draws is how often calibration measurements are drawn.
const draws = 20

func main() {
	if slices.Equal(os.Args[1:], emulator.Subcommand()) {
		os.Exit(emulator.Process())
	}
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	library := flag.String("onnxruntime", "", "ONNX Runtime's shared library, or the folder it is in")
	seconds := flag.Float64("seconds", 1, "how long each setting is measured at most")
	results := flag.String("results", "", "file that keeps the measurements, and is used again if it is there")
	flag.Parse()
	if flag.NArg() == 0 {
		return errors.New("name model files: models.py makes some")
	}
	all, err := load(*results)
	if err != nil {
		return err
	}
	if all == nil {
		if all, err = measure(ctx, flag.Args(), *library, *seconds); err != nil {
			return err
		}
		if err := keep(*results, all); err != nil {
			return err
		}
	}
	return report(all)
}

func load(path string) ([]measured, error) {
	if path == "" {
		return nil, nil
	}
	content, err := os.ReadFile(filepath.Clean(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []measured
	return all, json.Unmarshal(content, &all)
}

func keep(path string, all []measured) error {
	if path == "" {
		return nil
	}
	content, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// measure runs each model with each batch and number of threads.
func measure(ctx context.Context, paths []string, named string, seconds float64) ([]measured, error) {
	library, err := emulator.Find(ctx, emulator.FindOptions{Named: named})
	if err != nil {
		return nil, err
	}
	var cells []emulator.Cell
	for threads := 1; threads <= profiler.ThisMachine().Cores && threads <= 8; threads *= 2 {
		for _, batch := range []int{1, 2, 4, 8, 16, 32} {
			cells = append(cells, emulator.Cell{Batch: batch, Threads: threads})
		}
	}
	var all []measured
	for _, path := range paths {
		content, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			return nil, err
		}
		g, err := onnx.Read(content, onnx.Options{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		workload, name := estimate.Summarize(g), strings.TrimSuffix(filepath.Base(path), ".onnx")
		file, err := os.Open(filepath.Clean(path))
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(os.Stderr, name)
		result, err := emulator.Run(ctx, emulator.Job{Model: file, Library: library, Cells: cells, Precision: emulator.Precision{Seconds: seconds}})
		_ = file.Close() // it was only read
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, cell := range result.Cells {
			all = append(all, measured{name, estimate.Measurement{Workload: workload, Seconds: cell.Latency.P50,
				Configuration: estimate.Configuration{Batch: cell.Batch, Cores: cell.Threads}}})
		}
	}
	return all, nil
}

// rates is this machine as far as its processor tells; what cannot be read is
// what is usual, as the calibration finds it anyway.
func rates() estimate.Device {
	machine := profiler.ThisMachine()
	return estimate.Device{Name: device.ThisMachine, Engine: "onnx-runtime", Cores: machine.Cores, ClockHertz: 2.5e9,
		Float32PerCycle: 32, Int8PerCycle: 64, MemoryBytesPerSecond: 1e10, IdleWatts: 4, LoadWatts: 21}
}

func report(all []measured) error {
	knowledge, err := estimate.Known()
	if err != nil {
		return err
	}
	models := map[string]bool{}
	for _, one := range all {
		models[one.Model] = true
	}
	fmt.Printf("%d measurements of %d models on %d cores\n\n| calibrated with | median error | 90th percentile |\n|---|---|---|\n", len(all), len(models), rates().Cores)
	random := rand.New(rand.NewPCG(1, 2))
	for _, points := range []int{0, 10, 20} {
		var errs []float64
		for range draws {
			order := random.Perm(len(all))
			errs = append(errs, held(knowledge, pick(all, order[:points]), pick(all, order[points:]))...)
		}
		row(fmt.Sprintf("%d random measurements", points), errs)
	}
	var others []float64
	for _, left := range sorted(models) {
		var known, unknown []measured
		for _, one := range all {
			if one.Model == left {
				unknown = append(unknown, one)
			} else {
				known = append(known, one)
			}
		}
		others = append(others, held(knowledge, known, unknown)...)
	}
	row("all of the other models", others)
	return nil
}

func pick(all []measured, places []int) []measured {
	var list []measured
	for _, at := range places {
		list = append(list, all[at])
	}
	return list
}

// held are the errors of estimates that know some measurements, on others.
func held(knowledge estimate.Knowledge, known, unknown []measured) []float64 {
	var points []estimate.Measurement
	for _, one := range known {
		points = append(points, one.Measurement)
	}
	model := estimate.Fit(rates(), points, knowledge)
	var errs []float64
	for _, one := range unknown {
		errs = append(errs, math.Abs(model.Predict(one.Workload, one.Configuration).Seconds.Value/one.Seconds-1))
	}
	return errs
}

func row(name string, errs []float64) {
	slices.SortFunc(errs, func(a, b float64) int { return cmp.Compare(a, b) })
	at := func(part float64) float64 { return 100 * errs[int(part*float64(len(errs)-1))] }
	fmt.Printf("| %s | %.1f%% | %.1f%% |\n", name, at(0.5), at(0.9))
}

func sorted(names map[string]bool) []string {
	var list []string
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
