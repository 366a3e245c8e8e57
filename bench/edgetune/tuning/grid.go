package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

// grid is what was measured of one image: all combinations of cores and clocks,
// one inference each.
type grid struct {
	name     string
	space    tuning.Space
	outcomes map[tuning.Configuration]tuning.Outcome
}

// point is one configuration with what it costs.
type point struct{ tuning.Evaluation }

func (p point) value(metric tuning.Metric) float64 {
	value, err := metric.Value(p.Configuration, p.Outcome)
	if err != nil {
		return -1 // no measured grid has such a row
	}
	return value
}

// String is the configuration as people say it.
func (p point) String() string {
	c := p.Configuration
	return fmt.Sprintf("%d cores %.2f GHz, GPU %.2f, memory %.2f", c.Cores, c.CPUHertz/1e9, c.GPUHertz/1e9, c.MemoryHertz/1e9)
}

// read reads the grids; none where they are not there.
func read() ([]grid, error) {
	folder := cmp.Or(os.Getenv("TANDEM_DATA"), filepath.Join("..", "shared", "data"))
	files, err := filepath.Glob(filepath.Join(folder, "jetson_tx2_grid", "tx2_sampled_output_*.csv"))
	if err != nil {
		return nil, err
	}
	var grids []grid
	for _, path := range files {
		g, err := readGrid(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		grids = append(grids, g)
	}
	return grids, nil
}

func readGrid(path string) (grid, error) {
	file, err := os.Open(path)
	if err != nil {
		return grid{}, err
	}
	defer func() { _ = file.Close() }() // it was only read
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) < 2 {
		return grid{}, errors.Join(err, errors.New("no table"))
	}
	name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "tx2_sampled_output_"), ".csv")
	g := grid{name: name, space: tuning.Space{BatchSizes: []int{1}}, outcomes: map[tuning.Configuration]tuning.Outcome{}}
	for _, row := range rows[1:] {
		if err := g.add(rows[0], row); err != nil {
			return grid{}, err
		}
	}
	ascending(&g.space.Cores)
	ascending(&g.space.CPUHertz)
	ascending(&g.space.GPUHertz)
	ascending(&g.space.MemoryHertz)
	return g, nil
}

// add takes a row in. The unit of its power column is not stated: it grows with
// the image like an energy, so it stands for joules up to a factor.
func (g *grid) add(names, row []string) error {
	numbers := map[string]float64{}
	for _, name := range []string{"core0_status", "core1_status", "core2_status", "core3_status", "core_freq", "gpu_freq", "emc_freq", "inference_time", "power_consumption"} {
		column := slices.Index(names, name)
		if column < 0 {
			return fmt.Errorf("no column %s", name)
		}
		number, err := strconv.ParseFloat(row[column], 64)
		if err != nil {
			return err
		}
		numbers[name] = number
	}
	cores := numbers["core0_status"] + numbers["core1_status"] + numbers["core2_status"] + numbers["core3_status"]
	c := tuning.Configuration{BatchSize: 1, Cores: int(cores), CPUHertz: 1e3 * numbers["core_freq"], GPUHertz: numbers["gpu_freq"], MemoryHertz: numbers["emc_freq"]}
	g.outcomes[c] = tuning.Outcome{LatencySeconds: numbers["inference_time"], Joules: numbers["power_consumption"]}
	g.space.Cores, g.space.CPUHertz = append(g.space.Cores, c.Cores), append(g.space.CPUHertz, c.CPUHertz)
	g.space.GPUHertz, g.space.MemoryHertz = append(g.space.GPUHertz, c.GPUHertz), append(g.space.MemoryHertz, c.MemoryHertz)
	return nil
}

func ascending[T cmp.Ordered](values *[]T) {
	slices.Sort(*values)
	*values = slices.Compact(*values)
}

func (g grid) evaluate(c tuning.Configuration) (tuning.Outcome, error) {
	if outcome, measured := g.outcomes[c]; measured {
		return outcome, nil
	}
	return tuning.Outcome{}, errors.New("not measured")
}

// best is the best configuration of the whole grid.
func (g grid) best(metric tuning.Metric) (point, error) {
	result, err := tuning.Search(tuning.Settings{Space: g.space, Objective: metric, MaxEvaluations: tuning.MaxEvaluations}, g.evaluate)
	if err != nil {
		return point{}, err
	}
	if result.Best == nil || result.Failures > 0 {
		return point{}, fmt.Errorf("%s: the grid is not complete", g.name)
	}
	return point{*result.Best}, nil
}
