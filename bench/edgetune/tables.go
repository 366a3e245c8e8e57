package main

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/bench/edgetune/learning"
	"github.com/tandem-tune/tandem/bench/edgetune/zoo"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// series is what a table says of one device, engine and round.
type series struct {
	learning.Series
	table, name string
	parameters  map[string]float64 // of the workloads, for a baseline
}

// row is a line of a table, by column.
type row map[string]string

func (r row) number(column string) float64 {
	x, err := strconv.ParseFloat(r[column], 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// rows reads a table with a header, zipped or not.
func rows(path string) ([]row, []string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	var from io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if from, err = gzip.NewReader(file); err != nil {
			return nil, nil, err
		}
	}
	reader := csv.NewReader(from)
	reader.FieldsPerRecord = -1
	lines, err := reader.ReadAll()
	if err != nil || len(lines) == 0 {
		return nil, nil, fmt.Errorf("%s: no table: %w", path, err)
	}
	var out []row
	for _, line := range lines[1:] {
		one := row{}
		for i, name := range lines[0] {
			if i < len(line) {
				one[name] = line[i]
			}
		}
		out = append(out, one)
	}
	return out, lines[0], nil
}

// fewest measurements of a series: 20 to calibrate and as many to check.
const fewest = 40

// inference reads MLPerf's results on edge devices. A workload that was measured
// several times in a round counts once, with the median.
func inference(folder string) ([]*series, error) {
	lines, _, err := rows(filepath.Join(folder, "mlperf_edge", "mlperf_inference_edge.csv.gz"))
	if err != nil {
		return nil, err
	}
	found := map[string]*series{}
	seconds, joules := map[string][]float64{}, map[string][]float64{}
	workloads := map[string]graph.Graph{}
	var order, keys []string
	for _, line := range lines {
		if line["task"] != "resnet" || line["scenario"] != "SingleStream" {
			continue
		}
		g, known := model(line["model"])
		if !known {
			continue
		}
		name := line["version"] + " " + line["platform"]
		if found[name] == nil {
			text := line["device"] + " " + line["platform"]
			found[name] = &series{table: "mlperf", name: name, parameters: map[string]float64{}}
			found[name].Device = lookup(text)
			found[name].Device.Engine = engine(line["platform"])
			order = append(order, name)
		}
		key := name + "|" + line["model"]
		if _, seen := seconds[key]; !seen {
			keys = append(keys, key)
		}
		workloads[key] = g
		seconds[key] = append(seconds[key], line.number("result")/1e3)
		if j := line.number("power_result"); j > 0 {
			joules[key] = append(joules[key], j/1e3)
		}
	}
	for _, key := range keys {
		name, _, _ := strings.Cut(key, "|")
		found[name].measured(workloads[key], threads(name), median(seconds[key]), median(joules[key]))
	}
	return large(order, found), nil
}

// engine is what ran the graphs, as the platform's name says it.
func engine(platform string) string {
	switch {
	case strings.Contains(platform, "opencl"):
		return "armnn opencl"
	case strings.Contains(platform, "armnn"):
		return "armnn neon"
	case strings.Contains(platform, "ruy"):
		return "tflite ruy"
	}
	return "tflite"
}

// threads is what a harness sets. That of the cTuning foundation leaves TFLite at
// one thread: its times are the same on 4 and 16 cores of the same instance type.
func threads(platform string) estimate.Configuration {
	if engine(platform) == "tflite" && strings.Contains(platform, "tflite_cpp") {
		return estimate.Configuration{Cores: 1}
	}
	return estimate.Configuration{}
}

func large(order []string, found map[string]*series) []*series {
	var out []*series
	for _, name := range order {
		if len(found[name].Measurements) >= fewest {
			out = append(out, found[name])
		}
	}
	return out
}

func (s *series) measured(g graph.Graph, c estimate.Configuration, seconds, joules float64) {
	if !(seconds > 0) {
		return
	}
	w := estimate.Summarize(g)
	if s.parameters[g.Name] == 0 {
		for _, operator := range g.Operators {
			s.parameters[g.Name] += float64(operator.Parameters)
		}
	}
	m := estimate.Measurement{Workload: w, Configuration: c, Seconds: seconds}
	if joules > 0 {
		m.Joules = joules
	}
	s.Measurements = append(s.Measurements, m)
}

// model builds the graph that MLPerf's name of a model means.
func model(name string) (graph.Graph, bool) {
	kind := graph.Float32
	if strings.Contains(name, "int8") || strings.Contains(name, "uint8") || strings.HasSuffix(name, "-quantized") && !strings.HasSuffix(name, "non-quantized") {
		kind = graph.Int8
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' })
	width, resolution := 0.0, int64(224)
	for _, word := range words {
		if x, err := strconv.ParseFloat(word, 64); err == nil && strings.Contains(word, ".") {
			width = x
		} else if n, err := strconv.ParseInt(word, 10, 64); err == nil && n >= 32 {
			resolution = n
		}
	}
	switch {
	case strings.HasPrefix(name, "mobilenet-v1") && width > 0:
		return zoo.MobileNetV1(width, resolution, kind), true
	case strings.HasPrefix(name, "mobilenet-v2") && width > 0:
		return zoo.MobileNetV2(width, resolution, kind), true
	case strings.HasPrefix(name, "mobilenet-v3"):
		if width == 0 {
			width = 1
		}
		return zoo.MobileNetV3(zoo.V3{Large: slices.Contains(words, "large"), Minimalistic: slices.Contains(words, "minimalistic"), Width: width, Resolution: resolution}, kind), true
	case strings.HasPrefix(name, "efficientnet"):
		for _, word := range words {
			if variant, found := strings.CutPrefix(word, "lite"); found && len(variant) == 1 && variant <= "4" {
				return zoo.EfficientNetLite(int(variant[0]-'0'), kind), true
			}
		}
	}
	return graph.Graph{}, false // the resnet50 of this table says nothing of its type
}
