package emulator

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const processors = "/sys/devices/system/cpu"

// allowedCores are the logical cores this process may run on: one of each
// physical core first, then the others.
func allowedCores() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var first, others []int
	seen := map[string]bool{}
	for _, core := range coresOf(&set) {
		siblings, err := os.ReadFile(filepath.Join(processors, fmt.Sprintf("cpu%d/topology/thread_siblings_list", core)))
		if err == nil && seen[string(siblings)] {
			others = append(others, core)
			continue
		}
		seen[string(siblings)] = err == nil
		first = append(first, core)
	}
	return slices.Concat(first, others)
}

func coresOf(set *unix.CPUSet) []int {
	var cores []int
	for core := range len(set) * 64 { // a set is made of words of at most 64 cores
		if set.IsSet(core) {
			cores = append(cores, core)
		}
	}
	return cores
}

// frequencyOf reads what cores run at now.
func frequencyOf(cores []int) Frequency {
	var f Frequency
	for _, core := range cores {
		policy := filepath.Join(processors, fmt.Sprintf("cpu%d/cpufreq", core))
		text, err := os.ReadFile(filepath.Join(policy, "scaling_cur_freq"))
		kilohertz, parsed := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		if err != nil || parsed != nil {
			return Frequency{Reason: "the kernel does not tell it here, as in most virtual machines"}
		}
		if hertz := kilohertz * 1000; f.LowHertz == 0 {
			f.LowHertz, f.HighHertz = hertz, hertz
		} else {
			f.LowHertz, f.HighHertz = min(f.LowHertz, hertz), max(f.HighHertz, hertz)
		}
		if governor, err := os.ReadFile(filepath.Join(policy, "scaling_governor")); err == nil {
			f.Governor = strings.TrimSpace(string(governor))
		}
	}
	return f
}
