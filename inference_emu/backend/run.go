package backend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
)

// The bounds of what is read from files of others.
const (
	maxName      = 200
	maxBytes     = 1e15
	maxLineBytes = 64 << 10
	// MaxRuns is how many runs a file can have.
	MaxRuns = 100_000
)

// Run is a deployment that was measured: one line of a file of runs.
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

// ParseRuns reads runs, one JSON object a line. Unknown fields, values outside
// their range and files above the bounds are refused, with the line.
func ParseRuns(data []byte) ([]Run, error) {
	var runs []Run
	for number := 1; len(data) > 0; number++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if len(line) > maxLineBytes {
			return nil, atLine(number, "", "is longer than a run can be (64 KiB)")
		}
		if len(runs) == MaxRuns {
			return nil, atLine(number, "", fmt.Sprintf("there are more than %d runs; keep the newest", MaxRuns))
		}
		var run Run
		if err := decodeStrictly(line, &run); err != nil {
			return nil, atLine(number, "", err.Error())
		}
		if path, message := run.fault(); path != "" {
			return nil, atLine(number, path, message)
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// ParseModel reads the features of a model, a JSON object.
func ParseModel(data []byte) (Model, error) {
	var model Model
	if len(data) > maxLineBytes {
		return model, problem.New(problem.Invalid, "the features of the model are longer than 64 KiB")
	}
	if err := decodeStrictly(data, &model); err != nil {
		return model, problem.New(problem.Invalid, "the features of the model: %v", err)
	}
	if path, message := model.fault(); path != "" {
		return model, problem.WithFields("the features of the model cannot be used", []problem.Field{{Path: path, Message: message}})
	}
	return model, nil
}

func decodeStrictly(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something after the JSON object")
	}
	return nil
}

func atLine(line int, path, message string) error {
	return problem.WithFields("a run cannot be used", []problem.Field{{Path: path, Message: message, Line: line}})
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
