package profiler

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine is what there is to say of the machine in a line.
type Machine struct {
	CPUModel    string
	Cores       int
	MemoryBytes int64
	GPUs        []string
}

// ThisMachine describes the machine this process runs on; what cannot be told is
// left empty.
func ThisMachine() Machine {
	h := newHost("")
	m := Machine{CPUModel: cpuModel(h), Cores: allowedCores()}
	if total, _, err := memory(h); err == nil {
		m.MemoryBytes = total
	}
	if gpu, err := openGPUs(); err == nil {
		m.GPUs = models(gpu)
		gpu.close()
	}
	return m
}

// allowedCores is how many logical cores this process may run on.
func allowedCores() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0
	}
	return set.Count()
}

// cpuModel is the first model name of /proc/cpuinfo; empty on processors that
// give none, such as many ARM ones.
func cpuModel(h host) string {
	content, err := h.text("proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.SplitSeq(content, "\n") {
		name, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// memory is the machine's memory and what of it is available, in bytes.
func memory(h host) (total, available int64, err error) {
	content, err := h.text("proc/meminfo")
	if err != nil {
		return 0, 0, err
	}
	values := map[string]int64{}
	for line := range strings.SplitSeq(content, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[2] != "kB" {
			continue
		}
		if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			values[strings.TrimSuffix(fields[0], ":")] = kib << 10
		}
	}
	if values["MemTotal"] == 0 {
		return 0, 0, fmt.Errorf("no MemTotal in /proc/meminfo")
	}
	return values["MemTotal"], values["MemAvailable"], nil
}
