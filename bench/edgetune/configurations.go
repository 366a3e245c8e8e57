package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/bench/edgetune/zoo"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// cells is how many architectures of NAS-Bench-201 are looked at, drawn once.
const cells = 320

// architectures reads NAS-Bench-201's latencies, a series for each device and
// batch. Cells below 0.05 ms are degenerate and left out.
func architectures(folder string) ([]*series, error) {
	lines, header, err := rows(filepath.Join(folder, "nb201_accuracy_latency", "nb201_accuracy_latency.csv.gz"))
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(201, 201))
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	lines = lines[:min(cells, len(lines))]
	var out []*series
	for _, column := range header {
		name, found := strings.CutPrefix(column, "lat_ms_")
		if !found {
			continue
		}
		s := &series{table: "nb201", name: name, parameters: map[string]float64{}}
		s.Device = lookup(name)
		s.Device.Engine = "pytorch"
		if name == "eyeriss" || name == "fpga" {
			s.Device.Engine = "simulation"
		}
		// The tables of these two were made with TFLite, which prunes.
		pruned := strings.HasPrefix(name, "pixel3") || strings.HasPrefix(name, "raspi4")
		if pruned || strings.HasPrefix(name, "essential") || strings.HasPrefix(name, "samsung") || strings.HasPrefix(name, "pixel") {
			s.Device.Engine = "phone"
		}
		batch := 1
		if at := strings.LastIndex(name, "_"); at > 0 {
			if n, err := strconv.Atoi(name[at+1:]); err == nil && n <= 1024 {
				batch = n
			}
		}
		for _, line := range lines {
			g, err := zoo.NASBench201(line["cellstr"], graph.Float32, pruned)
			if err != nil {
				return nil, err
			}
			if ms := line.number(column); ms >= 0.05 {
				s.measured(g, estimate.Configuration{Batch: batch}, ms/1e3, 0)
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// grids reads the configurations of a Jetson TX2: cores and three clocks. What
// the table calls power is a cost without a unit; it is estimated as it stands.
func grids(folder string) ([]*series, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "jetson_tx2_grid", "tx2_sampled_output_*.csv"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("jetson_tx2_grid: %w", fs.ErrNotExist)
	}
	var out []*series
	for _, path := range paths {
		lines, _, err := rows(path)
		if err != nil {
			return nil, err
		}
		s := &series{table: "tx2", name: strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "tx2_sampled_output_"), ".csv"), parameters: map[string]float64{}}
		s.Device = tx2()
		for _, line := range lines {
			size, _, _ := strings.Cut(line["size"], "x")
			resolution, err := strconv.ParseInt(size, 10, 64)
			if err != nil {
				return nil, errors.Join(err, fmt.Errorf("%s: size %q", path, line["size"]))
			}
			g := zoo.InceptionV3(resolution, graph.Float32)
			if line["model_name"] == "xception" {
				g = zoo.Xception(resolution, graph.Float32)
			}
			c := estimate.Configuration{CPUHertz: line.number("core_freq") * 1e3, GPUHertz: line.number("gpu_freq"), MemoryHertz: line.number("emc_freq")}
			for _, core := range []string{"core0_status", "core1_status", "core2_status", "core3_status"} {
				c.Cores += int(line.number(core))
			}
			s.measured(g, c, line.number("inference_time"), line.number("power_consumption")/1e3)
		}
		out = append(out, s)
	}
	return out, nil
}

// boards reads the configurations of a Jetson Xavier. Its options of the kernel
// are not looked at, only cores and clocks.
func boards(folder string) ([]*series, error) {
	lines, _, err := rows(filepath.Join(folder, "jetson_unicorn", "sampled_Xavier_Image_Xavier_Image_sampled.csv"))
	if err != nil {
		return nil, err
	}
	s := &series{table: "unicorn", name: "Xavier image", parameters: map[string]float64{}}
	s.Device = xavier()
	g := zoo.Xception(299, graph.Float32)
	for _, line := range lines {
		c := estimate.Configuration{Cores: int(line.number("num_cores")), CPUHertz: line.number("core_freq") * 1e3, GPUHertz: line.number("gpu_freq") * 1e3, MemoryHertz: line.number("emc_freq")}
		s.measured(g, c, line.number("inference_time"), line.number("total_energy_consumption")/1e3)
	}
	return []*series{s}, nil
}
