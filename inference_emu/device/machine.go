package device

import (
	"slices"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/problem"
)

// ThisMachine is the name of the device that [Machine] describes.
const ThisMachine = "this-machine"

// BoardPrefix begins the names of devices that only a board of the user's is
// (tandem edge agent).
const BoardPrefix = "board/"

// unknownProcessor is that of a machine whose kernel does not name it.
const unknownProcessor = "unknown processor"

// Machine is what was found out about a machine.
type Machine emu.Site

// Device describes the machine as a device. Its rates follow from the
// processor's extensions and its watts from the number of cores: estimates, as
// they say. The error is [problem.Invalid] where something was not found out.
func (m Machine) Device() (Device, error) {
	const told = "read from the operating system"
	rates, why := m.rates()
	cores := float64(max(m.Cores, 1))
	guess := func(value float64, why string) Value[float64] {
		return Value[float64]{Value: value, Source: why, Estimated: true}
	}
	processor := m.Processor
	if processor == "" {
		processor = unknownProcessor
	}
	d := Device{
		Name: ThisMachine, Title: "The machine this program runs on",
		Processor: Value[string]{Value: processor, Source: told},
		Clusters: []Cluster{{
			Core: processor, Cores: Value[int]{Value: m.Cores, Source: told + ": the cores this program may use"},
			LowestHertz: Value[float64]{Value: m.LowestHertz, Source: told}, HighestHertz: Value[float64]{Value: m.HighestHertz, Source: told},
			Float32OperationsPerCycle: guess(rates[0], why), Float16OperationsPerCycle: guess(rates[1], why), Int8OperationsPerCycle: guess(rates[2], why),
		}},
		Memory: Memory{
			Bytes:          Value[int64]{Value: m.MemoryBytes, Source: told},
			BytesPerSecond: Value[float64]{Value: m.MemoryBytesPerSecond, Source: "measured just now by copying a large block with one core; bytes read and written both count"},
		},
		Power: Power{
			IdleWatts: guess(2+cores, "2 W and 1 W a core: a guess from desktop and server processors, not a measurement"),
			LoadWatts: guess(5+8*cores, "5 W and 8 W a core: a guess from desktop and server processors, not a measurement"),
		},
		Runtime: Value[string]{Value: "onnx-runtime", Source: "what emulation uses"},
	}
	if faults := check(d); len(faults) > 0 {
		return Device{}, problem.WithFields("what this machine is made of could not be found out", faults)
	}
	return d, nil
}

// rates are the operations of a core in a cycle with float32, float16 and int8,
// and why.
func (m Machine) rates() (rates [3]float64, why string) {
	has := func(features ...string) bool {
		return slices.ContainsFunc(features, func(feature string) bool { return slices.Contains(m.Features, feature) })
	}
	lanes := 0.0
	switch {
	case has("avx512f"):
		lanes, why = 64, "AVX-512: 16 lanes, two units for fused multiply-add, as server cores have; some cores have half of that"
	case has("avx2") && has("fma"):
		lanes, why = 32, "AVX2: 8 lanes, two units for fused multiply-add"
	case has("avx"):
		lanes, why = 16, "AVX: 8 lanes, one unit each for multiplication and addition"
	case has("asimd"):
		lanes, why = 16, "NEON: 4 lanes, two units for fused multiply-add, as large ARM cores have; small ones have half of that"
	default:
		lanes, why = 8, "no known extension: 4 lanes, one unit each for multiplication and addition"
	}
	rates = [3]float64{lanes, lanes, 2 * lanes}
	if has("avx512_fp16", "asimdhp") {
		rates[1], why = 2*lanes, why+"; twice as many lanes for float16"
	}
	if has("avx512_vnni", "avx_vnni", "asimddp") {
		rates[2], why = 4*lanes, why+"; dot products of int8"
	}
	return rates, why
}
