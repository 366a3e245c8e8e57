package edgecmd

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/proc"
)

// ThisMachine finds out what the machine that the command runs on is made of.
// What cannot be found out stays zero, and is named by [device.Machine.Device].
func ThisMachine() device.Machine {
	base := profiler.ThisMachine()
	m := device.Machine{Processor: base.CPUModel, Cores: base.Cores, MemoryBytes: base.MemoryBytes, MemoryBytesPerSecond: copyRate()}
	info := proc.CPUInfo(proc.NewHost(""))
	mega, _ := strconv.ParseFloat(info["cpu MHz"], 64) // a line that is no number tells no clock
	m.Features = strings.Fields(cmp.Or(info["flags"], info["Features"]))
	m.LowestHertz, m.HighestHertz = mega*1e6, mega*1e6
	low, high := clockLimit("cpuinfo_min_freq"), clockLimit("cpuinfo_max_freq")
	if low > 0 && high >= low {
		m.LowestHertz, m.HighestHertz = low, high
	}
	return m
}

// clockLimit is a limit of the first core's clock in hertz; 0 where the system
// does not tell it, as in virtual machines.
func clockLimit(name string) float64 {
	text, err := os.ReadFile(filepath.Join("/sys/devices/system/cpu/cpu0/cpufreq", name))
	if err != nil {
		return 0
	}
	kilohertz, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	if err != nil {
		return 0
	}
	return kilohertz * 1000
}

// copyRate is how many bytes a second one core reads and writes when it copies
// what no cache holds. It copies block by block, each in less time than the
// scheduler gives a process at once, so that other load stretches some and not all.
func copyRate() float64 {
	const size, block, repeats = 128 << 20, 4 << 20, 4
	from, to := make([]byte, size), make([]byte, size)
	for i := 0; i < size; i += 4096 {
		from[i], to[i] = 1, 1 // so that the pages exist
	}
	var seconds []float64
	for range repeats {
		for i := 0; i < size; i += block {
			start := time.Now()
			copy(to[i:i+block], from[i:i+block])
			seconds = append(seconds, time.Since(start).Seconds())
		}
	}
	return blockRate(seconds, 2*block)
}

// blockRate is the bytes a second of the fastest quarter of the blocks; 0 where
// the clock is too coarse to tell.
func blockRate(seconds []float64, bytes float64) float64 {
	slices.Sort(seconds)
	if quarter := seconds[len(seconds)/4]; quarter > 0 {
		return bytes / quarter
	}
	return 0
}
