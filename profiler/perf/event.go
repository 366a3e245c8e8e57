package perf

import (
	"slices"

	"github.com/tandem-tune/tandem/profiler/proc"
	"golang.org/x/sys/unix"
)

// EventKind is where an event is counted.
type EventKind string

// The kinds of events.
const (
	Hardware EventKind = "hardware" // the processor's, by the kernel's common names
	Cache    EventKind = "cache"    // the processor's caches and translation buffers
	Software EventKind = "software" // the kernel's own counters
	PMU      EventKind = "pmu"      // what the processor's driver names beside them in sysfs
)

// Event is one thing the kernel can count for a process and all it starts.
type Event struct {
	// Name is the one that perf(1) has for it, such as "cache-misses".
	Name string
	Kind EventKind
	// source, config, config1 and config2 are perf_event_open's.
	source                   uint32
	config, config1, config2 uint64
	// together names the events that are counted over the same moments, so
	// that their ratio is of one window when counters are shared by time.
	// Groups stay at 4 events, or a processor with 4 counters, one of which the
	// kernel's watchdog has, would never schedule them.
	together string
	// inKernel says that it only ever happens in kernel mode, so that it reads
	// 0 where that is not counted.
	inKernel bool
}

// knownEvents are the events with names of the kernel's own: 10 of the
// hardware, 42 of the caches and 10 of software.
func knownEvents() []Event {
	list := []Event{
		{Name: "instructions", config: unix.PERF_COUNT_HW_INSTRUCTIONS, together: "work"},
		{Name: "cpu-cycles", config: unix.PERF_COUNT_HW_CPU_CYCLES, together: "work"},
		{Name: "ref-cycles", config: unix.PERF_COUNT_HW_REF_CPU_CYCLES},
		{Name: "bus-cycles", config: unix.PERF_COUNT_HW_BUS_CYCLES},
		{Name: "cache-references", config: unix.PERF_COUNT_HW_CACHE_REFERENCES, together: "cache"},
		{Name: "cache-misses", config: unix.PERF_COUNT_HW_CACHE_MISSES, together: "cache"},
		{Name: "branch-instructions", config: unix.PERF_COUNT_HW_BRANCH_INSTRUCTIONS, together: "branch"},
		{Name: "branch-misses", config: unix.PERF_COUNT_HW_BRANCH_MISSES, together: "branch"},
		{Name: "stalled-cycles-frontend", config: unix.PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, together: "stall"},
		{Name: "stalled-cycles-backend", config: unix.PERF_COUNT_HW_STALLED_CYCLES_BACKEND, together: "stall"},
	}
	for i := range list {
		list[i].Kind, list[i].source = Hardware, unix.PERF_TYPE_HARDWARE
	}
	return slices.Concat(list, cacheEvents(), softwareEvents())
}

// cgroupSwitches is PERF_COUNT_SW_CGROUP_SWITCHES, of Linux 5.13.
const cgroupSwitches = 11

func softwareEvents() []Event {
	list := []Event{
		{Name: "task-clock", config: unix.PERF_COUNT_SW_TASK_CLOCK},
		{Name: "cpu-clock", config: unix.PERF_COUNT_SW_CPU_CLOCK},
		{Name: "page-faults", config: unix.PERF_COUNT_SW_PAGE_FAULTS},
		{Name: "minor-faults", config: unix.PERF_COUNT_SW_PAGE_FAULTS_MIN},
		{Name: "major-faults", config: unix.PERF_COUNT_SW_PAGE_FAULTS_MAJ},
		{Name: "context-switches", config: unix.PERF_COUNT_SW_CONTEXT_SWITCHES, inKernel: true},
		{Name: "cpu-migrations", config: unix.PERF_COUNT_SW_CPU_MIGRATIONS, inKernel: true},
		{Name: "cgroup-switches", config: cgroupSwitches, inKernel: true},
		{Name: "alignment-faults", config: unix.PERF_COUNT_SW_ALIGNMENT_FAULTS},
		{Name: "emulation-faults", config: unix.PERF_COUNT_SW_EMULATION_FAULTS},
	}
	for i := range list {
		list[i].Kind, list[i].source, list[i].together = Software, unix.PERF_TYPE_SOFTWARE, "software"
	}
	return list
}

// cacheEvents are all combinations of a cache, an operation and its result.
// Most processors count a part of them.
func cacheEvents() []Event {
	caches := [...]string{"L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"}
	operations := [...]string{"load", "store", "prefetch"}
	var list []Event
	for cache, name := range caches {
		for operation, verb := range operations {
			plural := verb + "s"
			if verb == "prefetch" {
				plural = "prefetches"
			}
			for result, ending := range [...]string{plural, verb + "-misses"} {
				list = append(list, Event{
					Name: name + "-" + ending, Kind: Cache, source: unix.PERF_TYPE_HW_CACHE, together: name + "-" + verb,
					config: uint64(cache) | uint64(operation)<<8 | uint64(result)<<16,
				})
			}
		}
	}
	return list
}

// Events are the events that this machine's kernel has names for, whether it
// can count them or not.
func Events() []Event { return EventsOf(proc.NewHost("")) }

// EventsOf are those of a machine.
func EventsOf(h proc.Host) []Event { return append(knownEvents(), pmuEvents(h)...) }
