package emu

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
)

// Bounds of what is taken from elsewhere.
const (
	MaxRuns     = 1024
	maxSkeleton = 128 << 10
	maxTensors  = 1024
	maxAxes     = 64
	maxName     = 256
	maxProvider = 64
	maxFaults   = 20
	maxSeconds  = 1e6
	maxBatch    = 1000
	maxFixed    = 1 << 20
	maxThreads  = 1024
	maxBytes    = 1 << 50 // a hundred samples of it do not overflow
)

// checker gathers faults.
type checker struct{ faults []problem.Field }

func (c *checker) require(ok bool, path string, value any, format string, args ...any) {
	if !ok && len(c.faults) < maxFaults {
		c.faults = append(c.faults, problem.Field{Path: path, Value: value, Message: fmt.Sprintf(format, args...)})
	}
}

// Faults names what is wrong with an architecture that comes from elsewhere.
func (a Architecture) Faults() []problem.Field {
	var c checker
	g := a.Graph
	c.require(len(a.Key) >= 8 && len(a.Key) <= 128 && word(a.Key), "key", a.Key, "must be 8 to 128 letters and digits")
	c.require(a.ActivationBytes >= 0 && a.ActivationBytes <= maxBytes, "activation_bytes", a.ActivationBytes, "must be from 0 to 2^50")
	c.require(a.StoredBytes >= 0 && a.StoredBytes <= maxBytes, "stored_bytes", a.StoredBytes, "must be from 0 to 2^50")
	c.require(len(a.Skeleton) <= maxSkeleton, "skeleton", len(a.Skeleton), "must have at most %d bytes", maxSkeleton)
	c.require(len(g.Name) <= maxName, "graph.name", len(g.Name), "must have at most %d bytes", maxName)
	c.require(len(g.Operators) > 0, "graph.operators", len(g.Operators), "must be at least 1")
	c.require(len(g.Tensors) == 0, "graph.tensors", len(g.Tensors), "must be left out: they have names")
	c.require(g.FixedBatch >= 0 && g.FixedBatch <= maxFixed, "graph.fixed_batch", g.FixedBatch, "must be from 0 to %d", maxFixed)
	c.require(len(g.Inputs)+len(g.Outputs) <= maxTensors, "graph.inputs", len(g.Inputs)+len(g.Outputs), "must be at most %d with the outputs", maxTensors)
	if len(c.faults) > 0 {
		return c.faults
	}
	for i, t := range slices.Concat(g.Inputs, g.Outputs) {
		c.tensor(fmt.Sprintf("graph.tensors[%d]", i), t)
	}
	for i, o := range g.Operators {
		c.operator(fmt.Sprintf("graph.operators[%d]", i), o)
	}
	return c.faults
}

func (c *checker) tensor(at string, t graph.Tensor) {
	c.require(len(t.Name) <= maxName && len(t.Type) <= maxName, at+".name", len(t.Name), "must have at most %d bytes", maxName)
	c.require(len(t.Shape) <= maxAxes && !slices.ContainsFunc(t.Shape, negative), at+".shape", t.Shape, "must be at most %d sizes of at least 0", maxAxes)
}

func (c *checker) operator(at string, o graph.Operator) {
	c.require(len(o.Name) <= maxName && len(o.Kind) <= maxName && len(o.Type) <= maxName, at+".kind", len(o.Kind), "must have at most %d bytes", maxName)
	c.require(slices.Contains(graph.Classes(), o.Class), at+".class", string(o.Class), "must be one of %v", graph.Classes())
	c.require(len(o.Inputs)+len(o.Outputs)+len(o.Weights)+len(o.Attributes) == 0, at+".inputs", len(o.Inputs), "must be left out, like outputs, weights and attributes")
	for name, value := range map[string]int64{
		"operations": o.Operations, "read_bytes": o.ReadBytes, "written_bytes": o.WrittenBytes, "weight_bytes": o.WeightBytes,
		"parameters": o.Parameters, "groups": o.Groups, "in_channels": o.InChannels, "out_channels": o.OutChannels, "positions": o.Positions,
	} {
		c.require(value >= 0, at+"."+name, value, "must be at least 0")
	}
	c.require(len(o.Kernel)+len(o.Stride) <= 2*maxAxes && !slices.ContainsFunc(slices.Concat(o.Kernel, o.Stride), negative),
		at+".kernel", o.Kernel, "must be at most %d sizes of at least 0", maxAxes)
}

func negative(n int64) bool { return n < 0 }

// RunFaults names what is wrong with runs that come from elsewhere.
func RunFaults(runs []Run) []problem.Field {
	var c checker
	c.require(len(runs) <= MaxRuns, "runs", len(runs), "must be at most %d", MaxRuns)
	for i, run := range runs[:min(len(runs), MaxRuns)] {
		at := fmt.Sprintf("runs[%d]", i)
		c.require(run.Batch >= 1 && run.Batch <= maxBatch, at+".batch", run.Batch, "must be from 1 to %d", maxBatch)
		c.require(run.Threads >= 1 && run.Threads <= maxThreads, at+".threads", run.Threads, "must be from 1 to %d", maxThreads)
		c.require(len(run.Provider) <= maxProvider && word(run.Provider), at+".provider", run.Provider, "must be at most %d letters and digits", maxProvider)
		c.require(run.Repetitions >= 1, at+".repetitions", run.Repetitions, "must be at least 1")
		c.require(len(run.EnergyMethod) <= maxName, at+".energy_method", len(run.EnergyMethod), "must have at most %d bytes", maxName)
		c.require(run.MemoryBytes >= 0, at+".memory_bytes", run.MemoryBytes, "must be at least 0")
		for name, value := range map[string]float64{"seconds": run.Seconds, "low": run.Low, "high": run.High, "p90": run.P90, "p99": run.P99} {
			c.require(value > 0 && value <= maxSeconds, at+"."+name, fmt.Sprint(value), "must be above 0 and at most %g", float64(maxSeconds))
		}
		c.require(run.Joules >= 0 && !math.IsInf(run.Joules, 0), at+".joules", fmt.Sprint(run.Joules), "must be a number of at least 0")
		c.require(run.Low <= run.Seconds && run.Seconds <= run.High, at+".low", fmt.Sprint(run.Low), "must be at most seconds, and high at least")
	}
	return c.faults
}

// word reports whether the text is of letters and digits.
func word(text string) bool {
	return !slices.ContainsFunc([]byte(text), func(b byte) bool {
		return (b < '0' || b > '9') && (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && b != '-' && b != ':'
	})
}
