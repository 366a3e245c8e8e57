package device

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

var names = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func runtimes() []string {
	return []string{"onnx-runtime", "tensorflow-lite", "armnn", "tensorrt", "openvino"}
}

func kinds() []string { return []string{"gpu", "npu"} }

// The bounds between which values are believed, units in their fields.
const (
	maxNameBytes         = 64
	maxTextBytes         = 1_000
	maxParts             = 8 // clusters, accelerators
	maxCores             = 1_024
	maxSteps             = 128
	minHertz, maxHertz   = 1e6, 1e11
	minCycle, maxCycle   = 0.1, 1e5 // operations of a core in a cycle
	minRate, maxRate     = 1e6, 1e18
	minCache, maxCache   = 1 << 10, 1 << 40
	minMemory, maxMemory = 1 << 20, 1 << 50
	minWatts, maxWatts   = 0.001, 1e5
)

// checker collects what is wrong with a device.
type checker struct{ faults []problem.Field }

func (c *checker) require(ok bool, path string, value any, format string, args ...any) {
	if !ok {
		c.faults = append(c.faults, problem.Field{Path: path, Message: fmt.Sprintf(format, args...), Value: value})
	}
}

// check returns every fault of a device.
func check(d Device) []problem.Field {
	var c checker
	c.require(IsName(d.Name), "name", shorten(d.Name),
		"must be 1 to %d small letters and digits, with single hyphens between them, such as raspberry-pi-4", maxNameBytes)
	c.label("title", d.Title)
	c.label("processor.value", d.Processor.Value)
	source(&c, "processor", d.Processor)
	c.require(len(d.Clusters) >= 1 && len(d.Clusters) <= maxParts, "clusters", len(d.Clusters), "must be 1 to %d groups of equal cores", maxParts)
	for i, cluster := range d.Clusters {
		c.cluster(fmt.Sprintf("clusters[%d]", i), cluster)
	}
	c.memory("memory", d.Memory)
	within(&c, "power.idle_watts", &d.Power.IdleWatts, minWatts, maxWatts)
	within(&c, "power.load_watts", &d.Power.LoadWatts, minWatts, maxWatts)
	c.require(d.Power.LoadWatts.Value >= d.Power.IdleWatts.Value, "power.load_watts.value", d.Power.LoadWatts.Value,
		"must be at least power.idle_watts, %v", d.Power.IdleWatts.Value)
	c.require(len(d.Accelerators) <= maxParts, "accelerators", len(d.Accelerators), "must be at most %d", maxParts)
	for i, accelerator := range d.Accelerators {
		c.accelerator(fmt.Sprintf("accelerators[%d]", i), accelerator)
	}
	c.require(slices.Contains(runtimes(), d.Runtime.Value), "default_runtime.value", shorten(d.Runtime.Value), "must be one of %s", strings.Join(runtimes(), ", "))
	source(&c, "default_runtime", d.Runtime)
	return c.faults
}

func (c *checker) label(path, text string) {
	c.require(text != "" && len(text) <= maxTextBytes, path, shorten(text), "must be text of 1 to %d bytes", maxTextBytes)
}

func (c *checker) cluster(path string, k Cluster) {
	c.label(path+".core", k.Core)
	within(c, path+".cores", &k.Cores, 1, maxCores)
	within(c, path+".lowest_hertz", &k.LowestHertz, minHertz, maxHertz)
	within(c, path+".highest_hertz", &k.HighestHertz, minHertz, maxHertz)
	c.clocks(path, &k.LowestHertz, k.HighestHertz, k.StepsHertz)
	within(c, path+".float32_operations_per_cycle", &k.Float32OperationsPerCycle, minCycle, maxCycle)
	within(c, path+".float16_operations_per_cycle", &k.Float16OperationsPerCycle, minCycle, maxCycle)
	within(c, path+".int8_operations_per_cycle", &k.Int8OperationsPerCycle, minCycle, maxCycle)
	within(c, path+".level1_data_bytes", k.Level1DataBytes, minCache, maxCache)
	within(c, path+".level2_bytes", k.Level2Bytes, minCache, maxCache)
}

func (c *checker) memory(path string, m Memory) {
	within(c, path+".bytes", &m.Bytes, minMemory, maxMemory)
	within(c, path+".bytes_per_second", &m.BytesPerSecond, minRate, maxRate)
	within(c, path+".level3_bytes", m.Level3Bytes, minCache, maxCache)
	if m.StepsHertz != nil {
		c.steps(path, *m.StepsHertz, minHertz, maxHertz)
	}
}

func (c *checker) accelerator(path string, a Accelerator) {
	c.label(path+".name", a.Name)
	c.require(slices.Contains(kinds(), a.Kind), path+".kind", shorten(a.Kind), "must be one of %s", strings.Join(kinds(), ", "))
	within(c, path+".lowest_hertz", a.LowestHertz, minHertz, maxHertz)
	within(c, path+".highest_hertz", &a.HighestHertz, minHertz, maxHertz)
	c.clocks(path, a.LowestHertz, a.HighestHertz, a.StepsHertz)
	rates := []*Value[float64]{a.Float32OperationsPerSecond, a.Float16OperationsPerSecond, a.Int8OperationsPerSecond}
	for i, name := range []string{"float32", "float16", "int8"} {
		within(c, path+"."+name+"_operations_per_second", rates[i], minRate, maxRate)
	}
	c.require(rates[0] != nil || rates[1] != nil || rates[2] != nil, path, a.Name,
		"computes with nothing: give it float32_, float16_ or int8_operations_per_second")
	source(c, path+".memory_shared", a.MemoryShared)
}

// clocks checks that the lowest clock, the steps and the highest are in order.
func (c *checker) clocks(path string, lowest *Value[float64], highest Value[float64], steps *Value[[]float64]) {
	low := float64(minHertz)
	if lowest != nil {
		low = lowest.Value
		c.require(low <= highest.Value, path+".lowest_hertz.value", low, "must be at most highest_hertz, %v", highest.Value)
	}
	if steps != nil {
		c.steps(path, *steps, low, highest.Value)
	}
}

func (c *checker) steps(path string, steps Value[[]float64], low, high float64) {
	at := path + ".steps_hertz"
	source(c, at, steps)
	c.require(len(steps.Value) >= 1 && len(steps.Value) <= maxSteps, at+".value", len(steps.Value), "must have 1 to %d clocks", maxSteps)
	for i, hertz := range steps.Value {
		c.require(hertz >= low && hertz <= high, fmt.Sprintf("%s.value[%d]", at, i), hertz, "must be between %v and %v", low, high)
		c.require(i == 0 || hertz > steps.Value[i-1], fmt.Sprintf("%s.value[%d]", at, i), hertz, "must be higher than the one before it")
	}
}

// within checks a number and its source; nil is one that is not known.
func within[T int | int64 | float64](c *checker, path string, v *Value[T], low, high float64) {
	if v == nil {
		return
	}
	number := float64(v.Value)
	c.require(!math.IsNaN(number) && number >= low && number <= high, path+".value", v.Value, "must be between %v and %v", low, high)
	source(c, path, *v)
}

func source[T any](c *checker, path string, v Value[T]) {
	c.require(v.Source != "" && len(v.Source) <= maxTextBytes, path+".source", shorten(v.Source),
		"must say in 1 to %d bytes where the value is from; mark what was not looked up or measured with estimated: true, and give the reasoning", maxTextBytes)
}

// IsName reports whether a device may have the name.
func IsName(name string) bool { return len(name) <= maxNameBytes && names.MatchString(name) }
