package proc

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// AllowedCores is how many logical cores this process may run on.
func AllowedCores() int { return len(CoreNumbers()) }

// CoreNumbers are the logical cores that this process may run on.
func CoreNumbers() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	var cores []int
	for core, left := 0, set.Count(); left > 0; core++ {
		if set.IsSet(core) {
			cores = append(cores, core)
			left--
		}
	}
	return cores
}

// Memory is the machine's memory and what of it is available, in bytes.
func Memory(h Host) (total, available int64, err error) {
	content, err := h.Text("proc/meminfo")
	if err != nil {
		return 0, 0, err
	}
	return parseMemory(content)
}

// parseMemory reads /proc/meminfo.
func parseMemory(content string) (total, available int64, err error) {
	all, _ := parseColumn(content, "MemTotal") // 0 where it is not told
	left, _ := parseColumn(content, "MemAvailable")
	if all == 0 {
		return 0, 0, errors.New("no MemTotal in /proc/meminfo")
	}
	return int64(all) << 10, int64(left) << 10, nil
}

// ParseCPUList reads the kernel's lists of CPUs, such as "0,28-30".
func ParseCPUList(text string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(text, ",") {
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		first, err := strconv.Atoi(low)
		if err != nil {
			return nil, err
		}
		last, err := strconv.Atoi(high)
		if err != nil {
			return nil, err
		}
		if first < 0 || last < first || last > 1<<16 {
			return nil, fmt.Errorf("bad range %q", part)
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// Governor chooses the frequency of the cores, "mixed" where they have several;
// empty where the kernel does not control it.
func Governor(h Host, cores []int) string {
	found := ""
	for _, core := range cores {
		one, err := h.Text(filepath.Join("sys/devices/system/cpu", "cpu"+strconv.Itoa(core), "cpufreq/scaling_governor"))
		switch {
		case err != nil:
			return ""
		case found == "":
			found = one
		case found != one:
			return "mixed"
		}
	}
	return found
}

// CPUModel is the first model name of /proc/cpuinfo; empty on processors that
// give none, such as many ARM ones.
func CPUModel(h Host) string { return CPUInfo(h)["model name"] }

// CPUInfo is what /proc/cpuinfo says of the first processor; nil where it cannot be read.
func CPUInfo(h Host) map[string]string {
	content, err := h.Text("proc/cpuinfo")
	if err != nil {
		return nil
	}
	info := map[string]string{}
	for line := range strings.SplitSeq(content, "\n") {
		name, value, found := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); found && info[name] == "" {
			info[name] = strings.TrimSpace(value)
		}
	}
	return info
}
