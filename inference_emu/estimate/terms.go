package estimate

import "math"

// The terms of the sum. Those of one number type come twice, for floating point
// and for integers.
const (
	spatial = iota
	pointwise
	depthwise
	products // of matrices
	denseBytes
	depthwiseBytes
	weightBytes
	lightBytes
	curvedBytes
	window // operations of poolings
	heavyStart
	lightStart
	perType

	serial   = 2 * perType // operations that only one core computes
	prepared = serial + 1  // work of the cores for a run, whatever the graph
	waited   = serial + 2  // time of a run that no clock changes
	terms    = serial + 3
)

// The terms of power: what is always drawn, and what every clock adds, with the
// voltage staying or rising with the clock.
const (
	standing = iota
	coreClock
	coresClock
	coresVoltage
	secondClock // of cores beyond the first, which few engines keep busy
	secondVoltage
	gpuClock
	gpuVoltage
	memoryClock
	powers
)

// Sizes that who learns a [Prior] needs.
const (
	TimeTerms   = terms          // of a sample of time
	EnergyTerms = terms + powers // of a sample of energy
	// RunTerms is the first of the terms of time that a run has once; they go on
	// to TimeTerms.
	RunTerms = serial
	// Coordinates has a place; the first WorkloadCoordinates are of the workload
	// and its batch, the others of the device's settings.
	Coordinates         = coordinates
	WorkloadCoordinates = atCores
)

// power are the terms of the watts of a run.
func (d Device) power(c Configuration) []float64 {
	s, out := d.set(c), make([]float64, powers)
	ratio := s.cpu / d.ClockHertz
	out[standing], out[coreClock] = 1, ratio
	out[coresClock] = ratio * s.cores / float64(d.Cores)
	out[coresVoltage] = ratio * ratio * ratio * s.cores / float64(d.Cores)
	out[secondClock] = ratio * (1 - 1/max(s.cores, 1))
	out[secondVoltage] = ratio * ratio * out[secondClock]
	if a := d.Accelerator; a != nil {
		out[gpuClock] = s.gpu / a.ClockHertz
		out[gpuVoltage] = math.Pow(s.gpu/a.ClockHertz, 3)
	}
	if d.MemoryHertz > 0 {
		out[memoryClock] = s.memory / d.MemoryHertz
	}
	for i := range out {
		out[i] *= d.watts()
	}
	return out
}

// startCycles and runCycles are orders of magnitude, so that the factors that are
// learned are near 1: cycles of a core to start an operator, and a run.
const (
	startCycles = 1e4
	runCycles   = 1e6
)

// setting is a configuration with all that the device fills in.
type setting struct {
	batch, cores           float64
	cpu, gpu, memory       float64 // hertz
	peakFloat, peakInteger float64 // operations per second
	bandwidth              float64 // bytes per second
}

func (d Device) set(c Configuration) setting {
	or := func(value, otherwise float64) float64 {
		if value > 0 {
			return value
		}
		return otherwise
	}
	s := setting{
		batch:  or(float64(c.Batch), 1),
		cores:  math.Min(or(float64(c.Cores), float64(d.Cores)), float64(d.Cores)),
		cpu:    or(c.CPUHertz, d.ClockHertz),
		memory: or(c.MemoryHertz, d.MemoryHertz),
	}
	s.bandwidth = d.MemoryBytesPerSecond
	if s.memory > 0 && d.MemoryHertz > 0 {
		s.bandwidth *= s.memory / d.MemoryHertz
	}
	s.peakFloat = s.cores * s.cpu * d.Float32PerCycle
	s.peakInteger = s.cores * s.cpu * d.Int8PerCycle
	if a := d.Accelerator; a != nil {
		s.gpu = or(c.GPUHertz, a.ClockHertz)
		s.peakFloat = a.Float32PerSecond * s.gpu / a.ClockHertz
		s.peakInteger = a.Int8PerSecond * s.gpu / a.ClockHertz
	}
	return s
}

// seconds are the terms of a run as the catalogue has them: all efficiencies 1.
func (d Device) seconds(w Workload, c Configuration) []float64 {
	s := d.set(c)
	out := make([]float64, terms)
	w.Float.seconds(out[:perType], s, s.peakFloat)
	w.Integer.seconds(out[perType:serial], s, s.peakInteger)
	one := s.batch * (w.Float.Operations()/d.Float32PerCycle + w.Integer.Operations()/d.Int8PerCycle) / s.cpu
	out[serial] = one
	if d.Accelerator != nil { // the cores prepare, with one of them or all
		out[serial] = runCycles / (s.cpu * s.cores)
	}
	out[prepared] = runCycles / s.cpu
	out[waited] = runCycles / d.ClockHertz
	return out
}

func (w Work) seconds(out []float64, s setting, peak float64) {
	out[spatial] = s.batch * w.Spatial / peak
	out[pointwise] = s.batch * w.Pointwise / peak
	out[depthwise] = s.batch * w.Depthwise / peak
	out[products] = s.batch * w.Linear / peak
	out[denseBytes] = s.batch * w.DenseBytes / s.bandwidth
	out[depthwiseBytes] = s.batch * w.DepthwiseBytes / s.bandwidth
	out[curvedBytes] = s.batch * w.CurvedBytes / s.bandwidth
	out[weightBytes] = w.WeightBytes / s.bandwidth
	out[lightBytes] = s.batch * w.LightBytes / s.bandwidth
	out[window] = s.batch * w.Window / peak
	out[heavyStart] = startCycles * w.Heavy / s.cpu
	out[lightStart] = startCycles * w.Light / s.cpu
}

// The coordinates in which workloads and configurations are near each other.
const (
	atOperations = iota
	atBytes
	atWeights
	atOperators
	atDepthwise
	atSpatial
	atLight
	atInteger
	atBatch
	atCores
	atCPU
	atGPU
	atMemory
	coordinates
)

// place is where a workload and a configuration lie; a distance of one is what
// one unit of length is on every axis.
func (d Device) place(w Workload, c Configuration) []float64 {
	s := d.set(c)
	both := func(of func(Work) float64) float64 { return of(w.Float) + of(w.Integer) }
	log := func(x float64) float64 { return math.Log(max(x, 1)) }
	operations := both(Work.Operations)
	heavy := both(Work.heavyBytes)
	light := both(Work.lightBytes)
	integer := (w.Integer.heavyBytes() + w.Integer.lightBytes()) / max(heavy+light, 1)
	at := make([]float64, coordinates)
	at[atOperations] = log(operations)
	at[atBytes] = log(w.Float.heavyBytes()/4 + w.Integer.heavyBytes())
	at[atWeights] = log(w.Float.WeightBytes/4 + w.Integer.WeightBytes)
	at[atOperators] = 2 * log(both(func(w Work) float64 { return w.Heavy + w.Light }))
	at[atDepthwise] = 4 * both(func(w Work) float64 { return w.Depthwise }) / max(operations, 1)
	at[atSpatial] = 2 * both(func(w Work) float64 { return w.Spatial }) / max(operations, 1)
	at[atLight] = 2 * light / max(heavy+light, 1)
	at[atInteger] = 2 * integer
	at[atBatch] = math.Log(s.batch)
	at[atCores] = 2 / max(s.cores, 1) // the second core changes more than the fourth
	at[atCPU] = math.Log(s.cpu)
	at[atGPU] = log(s.gpu)
	at[atMemory] = log(s.memory)
	return at
}
