package proc

import (
	"strconv"
	"strings"
)

// ticksPerSecond is the kernel's USER_HZ, 100 on every architecture we build
// for, whatever the kernel's own tick is.
const ticksPerSecond = 100

// GroupCPUSeconds is the CPU time that the processes of a process group and
// the children they waited for have used, in seconds. Processes that were
// orphaned before they ended are not in it.
func GroupCPUSeconds(group int) float64 {
	h, sum := NewHost(""), 0.0
	for _, pid := range h.members(group) {
		line, err := h.Text(processFile(pid, "stat"))
		if err != nil {
			continue // it ended meanwhile
		}
		if u, err := parseUsage(line); err == nil && u.group == group {
			sum += u.userSeconds + u.systemSeconds
		}
	}
	return sum
}

// BusySeconds is the CPU time that the whole machine has used since it was
// started; 0 when it cannot be told.
func BusySeconds(h Host) float64 {
	busy, _ := MachineSeconds(h)
	return busy
}

// MachineSeconds is that time, and the time that all cores had for it.
func MachineSeconds(h Host) (busy, all float64) {
	return statSeconds(h, func(name string) bool { return name == "cpu" })
}

// CoreSeconds is the CPU time that the logical cores which this process may run
// on have been busy since the machine was started, with whatever it was, and the
// time that they had, in seconds; 0 and 0 where the kernel does not tell. What a
// hypervisor took of a core counts as busy.
func CoreSeconds() (busy, all float64) { return coreSeconds(NewHost(""), CoreNumbers()) }

func coreSeconds(h Host, cores []int) (busy, all float64) {
	wanted := map[string]bool{}
	for _, core := range cores {
		wanted["cpu"+strconv.Itoa(core)] = true
	}
	return statSeconds(h, func(name string) bool { return wanted[name] })
}

// statSeconds adds up the lines of /proc/stat with these names.
func statSeconds(h Host, wanted func(name string) bool) (busy, all float64) {
	content, err := h.Text("proc/stat")
	if err != nil {
		return 0, 0
	}
	for line := range strings.SplitSeq(content, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 9 || !wanted(fields[0]) {
			continue
		}
		for i, field := range fields[1:9] { // user nice system idle iowait irq softirq steal
			ticks, err := strconv.ParseUint(field, 10, 64)
			if err != nil {
				return 0, 0
			}
			all += float64(ticks) / ticksPerSecond
			if i != 3 && i != 4 {
				busy += float64(ticks) / ticksPerSecond
			}
		}
	}
	return busy, all
}
