package profiler

import (
	"errors"
	"fmt"
	"github.com/tandem-tune/tandem/profiler/proc"
)

// gpuReader asks the GPUs of a machine, which are numbered as NVML numbers
// them: by their place on the bus. Tests have another.
type gpuReader interface {
	devices() []gpuDevice
	// joules is what a GPU has consumed since some start.
	joules(device int) (float64, error)
	// read asks a GPU for all metrics. It may take tens of milliseconds.
	read(device int) rawGPU
	close()
}

// gpuDevice is a GPU: its model, and the name that no other GPU has.
type gpuDevice struct{ model, uuid string }

// The metrics of a GPU, in the order of nvml_read.
const (
	gpuCores = iota
	gpuController
	gpuMemory
	gpuPower
	gpuCoreClock
	gpuMemoryClock
	gpuTemperature
	gpuReceive
	gpuSend
	gpuThrottled
	gpuMetricCount
)

// rawGPU is what NVML answers: values in its own units, and codes, 0 where there
// is a value.
type rawGPU struct {
	value [gpuMetricCount]uint64
	code  [gpuMetricCount]int
}

// gpuMetric says how a metric is told of several GPUs together.
type gpuMetric struct {
	name string
	// unit is what NVML's value is multiplied with.
	unit float64
	// added says that the sum over the GPUs is told; else it is their mean.
	added bool
}

// slowed are the reasons of nvmlClocksThrottleReasons for which a GPU runs slower
// than it could: power cap, slowdown and thermal slowdown by hardware or
// software, and power brake. Being idle or set to a clock is none of them.
const slowed = 0x4 | 0x8 | 0x20 | 0x40 | 0x80

func gpuMetrics() [gpuMetricCount]gpuMetric {
	return [...]gpuMetric{
		gpuCores:       {"gpu.core_utilization", 0.01, false},   // percent
		gpuController:  {"gpu.memory_utilization", 0.01, false}, // percent
		gpuMemory:      {"gpu.memory_used_bytes", 1, true},
		gpuPower:       {"gpu.power_watts", 1e-3, true}, // milliwatts
		gpuCoreClock:   {"gpu.core_clock_mhz", 1, false},
		gpuMemoryClock: {"gpu.memory_clock_mhz", 1, false},
		gpuTemperature: {"gpu.temperature_celsius", 1, false},
		gpuReceive:     {"gpu.pcie_receive_bytes_per_second", 1024, true}, // KiB/s
		gpuSend:        {"gpu.pcie_send_bytes_per_second", 1024, true},    // KiB/s
		gpuThrottled:   {"gpu.throttled", 1, false},                       // a set of reasons, see slowed
	}
}

// observeGPUs asks the chosen GPUs and tells them together. A metric that one of
// them does not tell is missing: the others' sum would mean something else.
func observeGPUs(gpus gpuReader, chosen []int) (states map[string]float64, missing []proc.Missing) {
	states = map[string]float64{}
	devices := gpus.devices()
	readings := make([]rawGPU, len(chosen))
	for i, device := range chosen {
		readings[i] = gpus.read(device)
	}
	for at, metric := range gpuMetrics() {
		sum, told := 0.0, true
		for i, device := range chosen {
			if code := readings[i].code[at]; code != 0 {
				missing = append(missing, proc.Missing{Name: metric.name, Reason: fmt.Sprintf("GPU %d (%s): %v", device, devices[device].model, nvmlFault(code))})
				told = false
				break
			}
			value := readings[i].value[at]
			if at == gpuThrottled {
				value = min(1, value&slowed)
			}
			sum += float64(value) * metric.unit
		}
		switch {
		case !told:
		case metric.added:
			states[metric.name] = sum
		default:
			states[metric.name] = sum / float64(len(chosen))
		}
	}
	return states, missing
}

// joulesOf is what the chosen GPUs have consumed since some start.
func joulesOf(gpus gpuReader, chosen []int) (float64, error) {
	sum := 0.0
	for _, device := range chosen {
		one, err := gpus.joules(device)
		if err != nil {
			return 0, fmt.Errorf("GPU %d (%s): %w", device, gpus.devices()[device].model, err)
		}
		sum += one
	}
	return sum, nil
}

func allOf(gpus gpuReader) []int {
	all := make([]int, len(gpus.devices()))
	for i := range all {
		all[i] = i
	}
	return all
}

// models are the names of the GPUs, in their order.
func models(gpus gpuReader) []string {
	var names []string
	for _, device := range gpus.devices() {
		names = append(names, device.model)
	}
	return names
}

// ErrGPULost is of a GPU that the driver cannot reach any more, until the
// machine is mended (NVML_ERROR_GPU_IS_LOST).
var ErrGPULost = errors.New("the GPU has fallen off the bus")

// nvmlNoFunction is NVML's code for a function that it does not have.
const nvmlNoFunction = 13

// nvmlFaults words the codes a user can act on (nvml.h, nvmlReturn_t).
var nvmlFaults = map[int]error{
	0:              nil,
	2:              errors.New("the GPU does not take that value"),
	3:              errors.New("this GPU does not support it"),
	4:              errors.New("this user may not talk to the NVIDIA driver"),
	9:              errors.New("the NVIDIA driver is installed but not loaded"),
	nvmlNoFunction: errors.New("the NVIDIA driver is too old to tell it"),
	15:             ErrGPULost,
	18:             errors.New("the NVIDIA driver was updated and not reloaded since"),
}

// nvmlFault is the error of a code; nil for 0.
func nvmlFault(code int) error {
	if known, ok := nvmlFaults[code]; ok {
		return known
	}
	return fmt.Errorf("the NVIDIA driver does not answer (NVML error %d)", code)
}
