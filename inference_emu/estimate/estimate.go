// Package estimate answers: how long does an inference take on a device, how
// many joules does it need, and how sure is that?
//
// Time is a sum over the operators of a graph in which every operator pays for
// its operations at the device's peak rate and for its bytes at the device's
// bandwidth (the two resources of the roofline model, Williams, Waterman and
// Patterson 2009), divided by an efficiency, and for being started. Operators of
// one class share their efficiencies. Energy is a sum of the same shape, in which
// an efficiency stands for watts as well.
//
// The efficiencies of a device are not known beforehand. What is known is how
// they are spread over other devices ([Knowledge], which bench/edgetune/learning
// learns from measurements); a few measurements on the device itself narrow that down, and a
// Gaussian process over architectures and configurations takes up what the sum
// cannot express. Both together are one posterior, from which the band comes
// (Rocha, section 7.3.4: inference on an edge device is emulated elsewhere;
// section 7.5.4: how exact that has to be).
//
// The package is pure and deterministic.
package estimate

import "github.com/tandem-tune/tandem/inference_emu/graph"

// Device is what a device is made of, as a catalogue says it.
type Device struct {
	Name string
	// Engine runs the graph: tflite, armnn neon, armnn opencl, pytorch,
	// onnx-runtime. What is known of an engine is used where anything is; it may be
	// empty.
	Engine string
	// Cores are those that one inference may use.
	Cores int
	// ClockHertz is the clock of the cores at which the rates hold.
	ClockHertz float64
	// Float32PerCycle and Int8PerCycle are operations of one core in one cycle, a
	// multiplication and an addition counting as two.
	Float32PerCycle, Int8PerCycle float64
	// MemoryBytesPerSecond is the bandwidth at MemoryHertz.
	MemoryBytesPerSecond float64
	// MemoryHertz is the memory's clock; 0 where it cannot be set.
	MemoryHertz float64
	// IdleWatts and LoadWatts are of the whole board; 0 where they are not known.
	IdleWatts, LoadWatts float64
	// Accelerator computes the operators if there is one; the cores then only
	// start them.
	Accelerator *Accelerator
}

// Accelerator is a graphics processor or another unit beside the cores.
type Accelerator struct {
	// ClockHertz is the clock at which the rates hold.
	ClockHertz float64
	// Float32PerSecond and Int8PerSecond are operations in a second.
	Float32PerSecond, Int8PerSecond float64
}

// Configuration is how a device is set for an inference. What is zero is as in
// the [Device]; a batch of zero is one sample.
type Configuration struct {
	// Batch is how many samples go through the graph together.
	Batch int
	// Cores that may be used, at most the device's.
	Cores int
	// CPUHertz, GPUHertz and MemoryHertz are the clocks.
	CPUHertz, GPUHertz, MemoryHertz float64
}

// Measurement is a real inference on the device.
type Measurement struct {
	Workload      Workload
	Configuration Configuration
	// Seconds of one run of the whole batch.
	Seconds float64
	// Joules of one run of the whole batch; 0 where they were not measured.
	Joules float64
}

// Estimate of one quantity. Low and High enclose it with the probability Within
// if the model is right.
type Estimate struct {
	Value, Low, High float64
}

// Within is the probability that an estimate states for its band.
const Within = 0.9

// Prediction is what is estimated for one workload and configuration.
type Prediction struct {
	// Seconds and Joules are of one run of the whole batch. Joules are zero where
	// neither the catalogue nor a measurement says anything of power.
	Seconds, Joules Estimate
	// Measurements of seconds and of joules on this device that the prediction
	// stands on; with none of them it stands on the catalogue alone.
	Measurements, EnergyMeasurements int
}

// Workload is the work of one graph, summed up by class of operator.
type Workload struct {
	// Name is of the graph.
	Name string
	// Float and Integer are what is computed in floating point and in integers.
	Float, Integer Work
}

// Work is a sum over operators, for one sample.
type Work struct {
	// Spatial are operations of convolutions with a kernel larger than one,
	// Pointwise of those with a kernel of one, Depthwise of those with a group for
	// each channel, Linear of matrix products and recurrent operators.
	Spatial, Pointwise, Depthwise, Linear float64
	// Window are operations of poolings.
	Window float64
	// DenseBytes are read and written by those operators, without weights,
	// DepthwiseBytes by depthwise convolutions, CurvedBytes by activations that are
	// no rectifiers and by normalizations, LightBytes by all others.
	DenseBytes, DepthwiseBytes, CurvedBytes, LightBytes float64
	// WeightBytes are read once for a batch.
	WeightBytes float64
	// Heavy is how many operators there are that multiply by weights, Light how many
	// others.
	Heavy, Light float64
}

// Operations are all together.
func (w Work) Operations() float64 { return w.Spatial + w.Pointwise + w.Depthwise + w.Linear }

func (w Work) heavyBytes() float64 { return w.DenseBytes + w.DepthwiseBytes }
func (w Work) lightBytes() float64 { return w.CurvedBytes + w.LightBytes }

// fused are kinds that inference engines compute as part of the operator before.
func fused(kind string) bool {
	switch kind {
	case "Relu", "Clip", "BatchNormalization", "Identity", "Dropout", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "QuantizeLinear", "DequantizeLinear":
		return true
	}
	return false
}

// Summarize adds up the work of a graph. Rectifiers, normalizations and
// reshaping count as part of the operator before them, as engines run them.
func Summarize(g graph.Graph) Workload {
	w := Workload{Name: g.Name}
	for _, operator := range g.Operators {
		if operator.View || fused(operator.Kind) {
			continue
		}
		work := &w.Float
		if operator.Type == graph.Int8 {
			work = &w.Integer
		}
		work.add(operator)
	}
	return w
}

func (w *Work) add(o graph.Operator) {
	operations, bytes := float64(o.Operations), float64(o.ReadBytes+o.WrittenBytes)
	w.WeightBytes += float64(o.WeightBytes)
	switch {
	case o.Class == graph.Depthwise:
		w.Depthwise += operations
		w.DepthwiseBytes += bytes
		w.Heavy++
		return
	case o.Class == graph.Convolution && area(o.Kernel) > 1:
		w.Spatial += operations
	case o.Class == graph.Convolution:
		w.Pointwise += operations
	case o.Class == graph.Linear || o.Class == graph.Recurrent:
		w.Linear += operations
	case o.Class == graph.Activation || o.Class == graph.Normalization:
		w.CurvedBytes += bytes
		w.Light++
		return
	default:
		if o.Class == graph.Pooling {
			w.Window += operations
		}
		w.LightBytes += bytes
		w.Light++
		return
	}
	w.DenseBytes += bytes
	w.Heavy++
}

func area(kernel []int64) int64 {
	n := int64(1)
	for _, size := range kernel {
		n *= size
	}
	return n
}
