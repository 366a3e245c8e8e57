package dopeml

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// The bounds of what is learned.
const (
	maxName  = 200
	maxBytes = 1e15
)

// Run is a deployment that was measured.
type Run struct {
	Model    Model    `json:"model"`
	Request  Request  `json:"request"`
	Backend  string   `json:"backend"`
	Measured Measured `json:"measured"`
	// Explored says that the backend was chosen to learn about it.
	Explored bool `json:"explored,omitempty"`
}

// Measured is what a run took (units as in [Measure]); nil for what was not
// measured.
type Measured struct {
	CPUUtilization     *float64 `json:"cpu_utilization,omitempty"`
	GPUUtilization     *float64 `json:"gpu_utilization,omitempty"`
	MemoryBytes        *float64 `json:"memory_bytes,omitempty"`
	GPUMemoryBytes     *float64 `json:"gpu_memory_bytes,omitempty"`
	LatencySeconds     *float64 `json:"latency_seconds,omitempty"`
	JoulesPerInference *float64 `json:"joules_per_inference,omitempty"`
	Accuracy           *float64 `json:"accuracy,omitempty"`
}

// Values are the measures, NaN for what was not measured.
func (m Measured) Values() Values {
	values := unknown()
	for i, one := range m.list() {
		if one != nil {
			values[i] = *one
		}
	}
	return values
}

func (m Measured) list() [measures]*float64 {
	return [measures]*float64{m.CPUUtilization, m.GPUUtilization, m.MemoryBytes, m.GPUMemoryBytes,
		m.LatencySeconds, m.JoulesPerInference, m.Accuracy}
}

// fault is the first field that cannot be used, and why; "" if all can.
func (r Run) fault() (path, message string) {
	if r.Backend == "" || len(r.Backend) > maxName {
		return "backend", "a name of 1 to 200 bytes is needed"
	}
	if path, message = r.Model.fault(); path != "" {
		return "model." + path, message
	}
	if path, message = r.Request.fault(); path != "" {
		return "request." + path, message
	}
	some := false
	for i, one := range r.Measured.list() {
		if one == nil {
			continue
		}
		some = true
		measure := Measure(i)
		most, least := maxBytes, 0.0
		if !measure.logarithmic() {
			most = 1
		} else if measure.offset() == 0 {
			least = math.SmallestNonzeroFloat32
		}
		if !(*one >= least && *one <= most) {
			return "measured." + measure.String(), fmt.Sprintf("%v is not between %g and %g", *one, least, most)
		}
	}
	if !some {
		return "measured", "nothing was measured; give at least one of latency_seconds, joules_per_inference, cpu_utilization, ..."
	}
	return "", ""
}

func (m Model) fault() (path, message string) {
	if len(m.Name) > maxName {
		return "name", "is longer than 200 bytes"
	}
	for _, one := range []struct {
		path        string
		value, most float64
	}{{"operations", m.Operations, 1e18}, {"parameters", m.Parameters, maxBytes}, {"weight_bytes", m.WeightBytes, maxBytes},
		{"activation_bytes", m.ActivationBytes, maxBytes}, {"peak_bytes", m.PeakBytes, maxBytes},
		{"input_elements", m.InputElements, maxBytes}, {"quantized", m.Quantized, 1}, {"accuracy", m.Accuracy, 1}} {
		if !(one.value >= 0 && one.value <= one.most) {
			return one.path, fmt.Sprintf("%v is not between 0 and %g", one.value, one.most)
		}
	}
	known := map[graph.Class]bool{}
	for _, class := range graph.Classes() {
		known[class] = true
		if count := m.Layers[class]; !(count >= 0 && count <= 1e9) {
			return "layers." + string(class), fmt.Sprintf("%v is not a count", count)
		}
	}
	for class := range m.Layers {
		if !known[class] {
			return "layers", fmt.Sprintf("there is no class %q; the classes are %v", class, graph.Classes())
		}
	}
	return "", ""
}

func (r Request) fault() (path, message string) {
	switch {
	case !(r.Rate >= 0 && r.Rate <= 1e12):
		return "rate", fmt.Sprintf("%v is not between 0 (not known) and 1e12 inferences a second", r.Rate)
	case !(r.Batch >= 1 && r.Batch <= 1e9):
		return "batch", fmt.Sprintf("%v is not between 1 and 1e9", r.Batch)
	case !(r.Inferences >= 0 && r.Inferences <= 1e15):
		return "inferences", fmt.Sprintf("%v is not between 0 (not known) and 1e15", r.Inferences)
	}
	if slices.Contains(append(patterns(), ""), r.Pattern) {
		return "", ""
	}
	return "pattern", fmt.Sprintf("there is no pattern %q; the patterns are %v", r.Pattern, patterns())
}
