package main

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/bench/edgetune/dopeml"
)

// result is a model on a platform (a device with a runtime), one sample at a time.
type result struct {
	version, platform, model  string
	family                    string
	width, resolution         float64
	quantized                 bool
	seconds, joules, accuracy float64
}

// readResults reads the image classifiers' single-stream results with energy.
func readResults(path string) ([]result, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(unzipped).ReadAll()
	if err != nil {
		return nil, err
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	var list []result
	for _, row := range rows[1:] {
		field := func(name string) string { return row[column[name]] }
		if field("scenario") != "SingleStream" || field("family") == "" || field("power_units") != "millijoules" || field("division") != "open" {
			continue
		}
		one := result{version: field("version"), platform: field("platform"), model: field("model"), family: field("family"), quantized: field("quantized") == "1.0"}
		one.width, _ = strconv.ParseFloat(field("width"), 64) // not every family has these
		one.resolution, _ = strconv.ParseFloat(field("resolution"), 64)
		for name, into := range map[string]*float64{"result": &one.seconds, "power_result": &one.joules, "accuracy": &one.accuracy} {
			if *into, err = strconv.ParseFloat(field(name), 64); err != nil {
				return nil, fmt.Errorf("%s of %s on %s: %w", name, one.model, one.platform, err)
			}
		}
		one.seconds, one.joules, one.accuracy = one.seconds/1000, one.joules/1000, one.accuracy/100
		list = append(list, one)
	}
	return list, nil
}

// spec is a problem: platforms of which one is to be chosen.
type spec struct {
	name, says string
	platforms  []string // version/platform
}

func specs() []spec {
	list := []spec{
		{"vim4", "Khadas VIM4: ArmNN 22.05 Neon, OpenCL, TFLite 2.7.1", []string{"v2.1/vim4-armnn-v22.05-neon", "v2.1/vim4-armnn-v22.05-opencl", "v2.1/vim4-tflite-v2.7.1-ruy"}},
		{"vim4-new", "Khadas VIM4: ArmNN 22.11 Neon, OpenCL, TFLite 2.11.0", []string{"v3.0/vim4-armnn-v22.11-neon", "v3.0/vim4-armnn-v22.11-opencl", "v3.0/vim4-tflite-v2.11.0-ruy"}},
		{"xavier", "Jetson AGX Xavier's CPU: ArmNN 21.11 Neon, TFLite 2.7.1", []string{"v2.0/xavier-power.0-fan.cool-armnn-v21.11-neon", "v2.0/xavier-power.0-fan.cool-tflite-v2.7.1-ruy"}},
		{"rpi4", "Raspberry Pi 4: ArmNN 21.11 Neon, TFLite 2.7.1", []string{"v2.0/rpi4-armnn-v21.11-neon", "v2.0/rpi4-tflite-v2.7.1-ruy"}},
		{"pibox", "Raspberry Pi 4 in a PiBOX: ArmNN 22.11, 23.05", []string{"v3.1/raspberrypi4-tflite_armnn_cpp-cpu-armnn_tflite-v22.11-using_neon", "v3.1/raspberrypi4-tflite_armnn_cpp-cpu-armnn_tflite-v23.05-using_neon"}},
	}
	fleet := spec{name: "fleet", says: "the seven of vim4, xavier and rpi4 together"}
	for _, i := range []int{0, 2, 3} {
		fleet.platforms = append(fleet.platforms, list[i].platforms...)
	}
	return append(list, fleet)
}

func names() []string {
	var list []string
	for _, one := range specs() {
		list = append(list, one.name)
	}
	return list
}

// task is a problem with its measurements.
type task struct {
	spec     spec
	profiles []dopeml.Profile
	models   []dopeml.Model
	measured [][]result // model by backend
}

func newTask(s spec, results []result) (*task, error) {
	t := &task{spec: s}
	byModel := map[string][]result{}
	var order []string
	for b, platform := range s.platforms {
		version, name, _ := strings.Cut(platform, "/")
		t.profiles = append(t.profiles, profile(name))
		for _, one := range results {
			if one.version != version || one.platform != name {
				continue
			}
			if b == 0 {
				order = append(order, one.model)
			}
			if len(byModel[one.model]) == b { // measured on all before
				byModel[one.model] = append(byModel[one.model], one)
			}
		}
	}
	slices.Sort(order)
	for _, name := range order {
		if rows := byModel[name]; len(rows) == len(s.platforms) {
			model, err := features(rows[0])
			if err != nil {
				return nil, err
			}
			t.models, t.measured = append(t.models, model), append(t.measured, rows)
		}
	}
	if len(t.models) < 20 {
		return nil, fmt.Errorf("problem %s has only %d models: is the data complete?", s.name, len(t.models))
	}
	return t, nil
}

// profile is what a platform is made of; its runtime's name tells those of one
// device apart.
func profile(platform string) dopeml.Profile {
	one := dopeml.Profile{Name: platform, Cores: 4, MemoryBytes: 4 << 30} // Raspberry Pi 4
	switch {
	case strings.HasPrefix(platform, "vim4"):
		one.Cores, one.MemoryBytes = 8, 8<<30
		if strings.Contains(platform, "opencl") {
			one.GPUs, one.GPUMemoryBytes = 1, 8<<30 // it shares the main memory
		}
	case strings.HasPrefix(platform, "xavier"):
		one.Cores, one.MemoryBytes = 8, 32<<30
	}
	return one
}

// values are the measures of a model on a backend.
func (t *task) values(model, b int) dopeml.Values {
	return t.run(model, b).Measured.Values()
}

func (t *task) run(model, b int) dopeml.Run {
	one := t.measured[model][b]
	return dopeml.Run{Model: t.models[model], Request: dopeml.Request{Batch: 1}, Backend: t.profiles[b].Name,
		Measured: dopeml.Measured{LatencySeconds: &one.seconds, JoulesPerInference: &one.joules, Accuracy: &one.accuracy}}
}
