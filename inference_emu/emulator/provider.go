package emulator

import (
	"os"
	"path/filepath"
	"strconv"

	onnxruntime "github.com/yalue/onnxruntime_go"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/problem"
)

// provide has sessions run what the cell's provider knows by it, and the rest by the CPU's own.
func provide(options *onnxruntime.SessionOptions, cell Cell) error {
	if cell.Provider != emu.OpenVINO {
		return nil
	}
	return options.AppendExecutionProviderOpenVINO(map[string]string{"device_type": "CPU", "num_of_threads": strconv.Itoa(cell.Threads)})
}

// provided looks for the provider's part of the library, which is a file beside it.
func provided(library, provider string) error {
	if provider == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(library), "libonnxruntime_providers_"+provider+".so")); err != nil {
		return problem.New(problem.NotFound, "ONNX Runtime at %s comes without the execution provider %s: the Python package onnxruntime-%s has both", library, provider, provider)
	}
	return nil
}

// loadProvider runs a known model by the provider of the order's cells, while files can be
// opened: then the provider has all that it needs. Its threads stay where they are begun, so
// all of these cells are on the same cores ([apart]).
func loadProvider(o order) error {
	cell := o.Cells[0]
	if cell.Provider == "" {
		return nil
	}
	if _, err := keepTo(cell.CoreNumbers); err != nil {
		return err
	}
	known := process{order: order{Inputs: Inputs{IntegersBelow: 1}, Limits: o.Limits}, model: trialModel}
	if err := known.look(); err != nil {
		return err
	}
	s, err := known.open(Cell{Batch: 1, Threads: cell.Threads, Provider: cell.Provider})
	if err == nil {
		_, err = s.run() // it stays open: without a session the provider forgets what it loaded
	}
	if err != nil {
		return problem.New(problem.NotFound, "ONNX Runtime at %s cannot use the execution provider %s: %w", o.Library, cell.Provider, err)
	}
	return nil
}

// apart are the cells that a process measures together: those of one provider, and by another
// than the CPU's own those on the same cores.
func apart(cells []placed) (groups [][]placed) {
	for i, cell := range cells {
		if last := len(groups) - 1; i > 0 && cell.Provider == cells[i-1].Provider && (cell.Provider == "" || cell.Cores == cells[i-1].Cores) {
			groups[last] = append(groups[last], cell)
		} else {
			groups = append(groups, []placed{cell})
		}
	}
	return groups
}
