package emulator

import (
	"context"
	"os"
	"time"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/onnx"
	"github.com/tandem-tune/tandem/inference_emu/onnx/document"
)

// Inspection is what a model's file says of its architecture.
type Inspection struct {
	Key   string      `json:"key"`
	Graph graph.Graph `json:"graph"`
	// ActivationBytes is the most memory that what flows between operators takes
	// at once for one sample.
	ActivationBytes int64 `json:"activation_bytes"`
	// Skeleton is the model without weights and names, packed ([document.Pack]); nil
	// where none can be made of it, and Unpacked says why.
	Skeleton []byte `json:"skeleton,omitempty"`
	Unpacked string `json:"unpacked,omitempty"`
	// Layers are what the file was locked in by.
	Layers []Layer `json:"layers"`
}

const (
	// inspectionBytes is what reading a file may take beside the file itself.
	inspectionBytes = 512 << 20
	// inspectionSeconds is how long that may take.
	inspectionSeconds = 30
)

// Inspect reads an ONNX file in a process as locked in as that of [Run], without
// ONNX Runtime. Open dimensions other than the batch have to be given by name.
func Inspect(ctx context.Context, file *os.File, dimensions map[string]int64) (Inspection, error) {
	job := Job{Model: file, Cells: []Cell{{Batch: 1, Threads: 1}}, Limits: Limits{MemoryBytes: inspectionBytes, Wall: inspectionSeconds * time.Second}}
	job.setDefaults()
	if _, err := check(job); err != nil {
		return Inspection{}, err
	}
	bounded, cancel := context.WithTimeout(ctx, job.Limits.Wall)
	defer cancel()
	c, err := start(bounded, job)
	if err != nil {
		return Inspection{}, err
	}
	l := &listener{job: job, child: c, result: &Result{}}
	answered := l.listen(order{Inspect: true, Inputs: Inputs{Dimensions: dimensions}, Limits: job.Limits, Seconds: inspectionSeconds})
	ended := c.end()
	ended.ready = true
	if answered == nil && l.inspected != nil {
		l.inspected.Layers = l.result.Environment.Layers
		return *l.inspected, nil
	}
	return Inspection{}, whyEnded(ctx, bounded, ended, answered, job)
}

// inspect is what the process does with a file that is only looked at.
func (p *process) inspect() error {
	layers, err := limit(p.order)
	if err != nil {
		return err
	}
	if p.model, err = mapModel(p.order.Limits.ModelBytes); err != nil {
		return err
	}
	now, err := p.memory.read()
	if err != nil {
		return err
	}
	more, err := lockIn(now.data+p.order.Limits.MemoryBytes, "")
	if err != nil {
		return err
	}
	if err := p.answers.Encode(message{Ready: &readyMessage{Layers: append(layers, more...)}}); err != nil {
		return err
	}
	// From here on the file is looked at.
	found, err := onnx.Read(p.model, onnx.Options{Dimensions: p.order.Inputs.Dimensions})
	if err != nil {
		return err
	}
	seen := &Inspection{Key: found.Key(), Graph: found, ActivationBytes: found.PeakActivations(1)}
	if seen.Skeleton, err = document.Pack(p.model); err != nil {
		seen.Unpacked = err.Error()
	}
	return p.answers.Encode(message{Graph: seen})
}
