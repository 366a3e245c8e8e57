// Package runs keeps what real inferences took on a machine, in a file that
// estimates are learned from or held against.
package runs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

// Runs are inferences with several models on one machine.
type Runs struct {
	// Runtime says what ran them, with its version.
	Runtime string `json:"runtime"`
	// Device is the machine as the estimates take it.
	Device estimate.Device `json:"device"`
	// Workloads are of the models, by name.
	Workloads map[string]estimate.Workload `json:"workloads"`
	// Runs are in the order in which they were made first.
	Runs []Run `json:"runs"`
}

// Run is one model in one setting.
type Run struct {
	Model string `json:"model"`
	// Batch is how many samples went through together, Threads on how many cores.
	Batch   int `json:"batch"`
	Threads int `json:"threads"`
	// Seconds is the median of a run of the whole batch, CPUSeconds the mean of the
	// time that all cores worked for it.
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
	// MemoryBytes is the most that was resident beyond the library.
	MemoryBytes int64 `json:"memory_bytes"`
}

// Add adds a run. Of several in the same setting the quickest stays: what disturbs
// a machine only ever adds time.
func (r *Runs) Add(one Run) {
	for i, other := range r.Runs {
		if other.Model == one.Model && other.Batch == one.Batch && other.Threads == one.Threads {
			if one.Seconds < other.Seconds {
				r.Runs[i] = one
			}
			return
		}
	}
	r.Runs = append(r.Runs, one)
}

// Measurement is the run as an estimate takes it.
func (r Runs) Measurement(one Run) estimate.Measurement {
	return estimate.Measurement{Workload: r.Workloads[one.Model], Seconds: one.Seconds,
		Configuration: estimate.Configuration{Batch: one.Batch, Cores: one.Threads}}
}

// Measurements are those of the models that are wanted.
func (r Runs) Measurements(wanted func(model string) bool) []estimate.Measurement {
	var all []estimate.Measurement
	for _, one := range r.Runs {
		if wanted(one.Model) {
			all = append(all, r.Measurement(one))
		}
	}
	return all
}

// Models are the names, in order.
func (r Runs) Models() []string {
	var names []string
	for _, one := range r.Runs {
		names = append(names, one.Model)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Read reads a file that [Runs.Write] wrote.
func Read(path string) (Runs, error) {
	content, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return Runs{}, err
	}
	r, err := Parse(content)
	if err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Parse reads the content of such a file.
func Parse(content []byte) (Runs, error) {
	var r Runs
	if err := json.Unmarshal(content, &r); err != nil {
		return r, err
	}
	for i, one := range r.Runs {
		if _, known := r.Workloads[one.Model]; !known || !(one.Seconds > 0) {
			return r, fmt.Errorf("run %d of %q: it needs seconds above 0 and the workload of its model", i, one.Model)
		}
	}
	return r, nil
}

// Write keeps the runs, a line for each.
func (r Runs) Write(path string) error {
	lines := make([]json.RawMessage, len(r.Runs))
	for i, one := range r.Runs {
		line, err := json.Marshal(one)
		if err != nil {
			return err
		}
		lines[i] = line
	}
	head, err := json.Marshal(struct {
		Runtime   string                       `json:"runtime"`
		Device    estimate.Device              `json:"device"`
		Workloads map[string]estimate.Workload `json:"workloads"`
	}{r.Runtime, r.Device, r.Workloads})
	if err != nil {
		return err
	}
	content := append(head[:len(head)-1], ",\n\"runs\":[\n"...)
	for i, line := range lines {
		content = append(content, line...)
		if i < len(lines)-1 {
			content = append(content, ',')
		}
		content = append(content, '\n')
	}
	return os.WriteFile(path, append(content, "]}\n"...), 0o600)
}
