package profiler

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/tandem-tune/tandem/profiler/perf"
	"github.com/tandem-tune/tandem/profiler/proc"
	"github.com/tandem-tune/tandem/profiler/rapl"
	"golang.org/x/sys/unix"
)

// detectPerf opens the events that a trial's profile has, as they are opened
// for a training process.
func detectPerf(h proc.Host) Capability {
	c := Capability{Name: "perf counters"}
	runtime.LockOSThread() // nothing is started while the events are on this thread
	defer runtime.UnlockOSThread()
	wanted := perf.EventsOf(h)
	counters := perf.OpenCounters(wanted)
	defer counters.Close()
	paranoid, err := h.Text("proc/sys/kernel/perf_event_paranoid")
	if err != nil {
		paranoid = "unknown"
	}
	opened := counters.Events()
	kinds := map[perf.EventKind]int{}
	for _, event := range opened {
		kinds[event.Kind]++
	}
	probe := tryCounter(unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK)
	hardware := tryCounter(unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS)
	level := fmt.Sprintf("%d of %d events in %s; perf_event_paranoid is %s", len(opened), len(wanted), counters.Level(), paranoid)
	switch {
	case len(opened) > kinds[perf.Software]+kinds[perf.PMU]:
		c.Available, c.Detail = true, "hardware and software events: "+level
	case len(opened) > 0:
		c.Available, c.Detail = true, "software events only: "+level
		c.Reason, c.Remedy = hardwareCounterFault(hardware)
	case perf.Denied(probe):
		c.Reason = fmt.Sprintf("the kernel refuses them to this user (%v; perf_event_paranoid is %s): profiles hold host metrics only", probe, paranoid)
		c.Remedy = allowCounters(paranoid)
	default:
		c.Reason, c.Remedy = fmt.Sprintf("perf_event_open: %v: profiles hold host metrics only", probe), "use a kernel built with CONFIG_PERF_EVENTS"
	}
	if c.Available && counters.Level() == perf.UserLevel && c.Reason == "" {
		c.Reason = "what happens in kernel mode is not counted for this user; context switches come from /proc"
		c.Remedy = "sudo sysctl kernel.perf_event_paranoid=1, or give the worker the right: sudo setcap cap_perfmon=ep \"$(command -v tandem)\""
	}
	return c
}

// allowCounters is what lets this user have counters.
func allowCounters(paranoid string) string {
	const container = "in a container, its seccomp profile must allow perf_event_open"
	if level, err := strconv.Atoi(paranoid); err == nil && level <= 2 {
		return container // the kernel's setting is none that refuses them
	}
	return "sudo sysctl kernel.perf_event_paranoid=2; " + container
}

func hardwareCounterFault(err error) (reason, remedy string) {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV) {
		return "the processor shows no hardware counters here, as in most virtual machines",
			"run on bare metal, or have the hypervisor expose the virtual PMU"
	}
	return fmt.Sprintf("hardware events are refused: %v", err), "sudo sysctl kernel.perf_event_paranoid=2"
}

func tryCounter(kind uint32, config uint64) error {
	attributes := unix.PerfEventAttr{
		Type: kind, Config: config, Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
		Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
	}
	descriptor, err := unix.PerfEventOpen(&attributes, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return err
	}
	return unix.Close(descriptor)
}

func detectRAPL(h proc.Host) Capability {
	c := Capability{Name: "rapl"}
	counter, err := rapl.Open(h)
	switch {
	case err == nil:
		defer counter.Close()
		c.Available, c.Detail = true, fmt.Sprintf("%s (%s)", strings.Join(counter.Names(), ", "), counter.Source)
	case errors.Is(err, os.ErrPermission):
		c.Reason = "this user may not read the CPU's energy counters: " + firstLine(err)
		// World-readable counters leak keys (CVE-2020-8694), and a file
		// capability does not pass on to the training processes.
		c.Remedy = "give the worker the one right it needs: sudo setcap cap_perfmon=ep \"$(command -v tandem)\"; do not make energy_uj readable for everybody"
	default:
		c.Reason = "the kernel shows no energy counters of the CPU, as in most virtual machines and on processors without RAPL"
		c.Remedy = "on bare metal: modprobe intel_rapl_common intel_rapl_msr; until then joules are estimated from CPU time"
	}
	return c
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func detectCgroups(h proc.Host) Capability {
	const mount = "sys/fs/cgroup"
	c := Capability{Name: "cgroups"}
	if controllers, err := h.Text(filepath.Join(mount, "cgroup.controllers")); err == nil {
		c.Detail = "v2 with " + cmp.Or(controllers, "no controllers")
		own := filepath.Join(mount, ownCgroup(h))
		c.Available = controllers != "" && proc.Writable(h.Path(own))
		if !c.Available {
			c.Reason = "this process may not make groups below its own, /" + own
			c.Remedy = "start the worker with: systemd-run --user --scope -p Delegate=yes tandem worker ..."
		}
		return c
	}
	var found, denied []string
	for _, controller := range []string{"cpu", "cpuset", "memory"} {
		switch directory := h.Path(filepath.Join(mount, controller)); {
		case proc.Writable(directory):
			found = append(found, controller)
		case proc.Exists(directory):
			denied = append(denied, controller)
		}
	}
	c.Available = len(found) > 0
	c.Detail = "v1 with " + cmp.Or(strings.Join(slices.Concat(found, denied), ", "), "no controllers")
	switch {
	case len(denied) > 0:
		c.Reason, c.Remedy = "not writable for this user: "+strings.Join(denied, ", "), "run the worker as root, or have root make a group and give it to this user"
	case len(found) == 0:
		c.Detail, c.Reason, c.Remedy = "", "no control groups are mounted at /"+mount, "boot with systemd, or mount -t cgroup2 none /"+mount
	}
	return c
}

// ownCgroup is this process's group in the v2 tree.
func ownCgroup(h proc.Host) string {
	content, err := h.Text("proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.SplitSeq(content, "\n") {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return path
		}
	}
	return ""
}

func detectFrequency(h proc.Host) Capability {
	const policy = "sys/devices/system/cpu/cpu0/cpufreq"
	c := Capability{Name: "cpu frequency"}
	governor, err := h.Text(filepath.Join(policy, "scaling_governor"))
	if err != nil {
		c.Reason = "the kernel has no control over the CPU's frequency, as in most virtual machines"
		c.Remedy = "on bare metal, load the processor's cpufreq driver"
		return c
	}
	available, err := h.Text(filepath.Join(policy, "scaling_available_governors"))
	if err != nil {
		available = "unknown"
	}
	c.Detail = fmt.Sprintf("governor %s (of %s)%s", governor, available, frequencyRange(h, policy))
	c.Available = proc.Writable(h.Path(filepath.Join(policy, "scaling_max_freq")))
	if !c.Available {
		c.Reason, c.Remedy = "it can be read, but only root may change it", "run the worker as root if trials should tune the frequency"
	}
	return c
}

func frequencyRange(h proc.Host, policy string) string {
	low, err := h.Number(filepath.Join(policy, "cpuinfo_min_freq"))
	if err != nil {
		return ""
	}
	high, err := h.Number(filepath.Join(policy, "cpuinfo_max_freq"))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(", %.2f to %.2f GHz", float64(low)/1e6, float64(high)/1e6)
}

// detectAffinity sets the mask that is set already: that asks for the same
// right and changes nothing.
func detectAffinity() Capability {
	c := Capability{Name: "cpu affinity"}
	var set unix.CPUSet
	err := unix.SchedGetaffinity(0, &set)
	if err == nil {
		err = unix.SchedSetaffinity(0, &set)
	}
	if err != nil {
		c.Reason, c.Remedy = fmt.Sprintf("the kernel refuses it: %v", err), "allow sched_setaffinity in the container's seccomp profile"
		return c
	}
	c.Available, c.Detail = true, "trials can be bound to any of "+count(set.Count(), "core")
	return c
}

func detectLandlock() Capability {
	c := Capability{Name: "landlock"}
	abi, _, code := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if code != 0 {
		c.Reason = fmt.Sprintf("the kernel does not offer it: %v", code)
		c.Remedy = "use a kernel of 5.13 or newer, with landlock in its list of security modules (boot option lsm=landlock,...)"
		return c
	}
	c.Available, c.Detail = true, "ABI "+strconv.Itoa(int(abi))
	return c
}
