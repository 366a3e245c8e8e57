package proc

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// sectorBytes is the unit of /proc/diskstats, whatever the disk's own is.
const sectorBytes = 512

// Missing is something that could not be measured, and why.
type Missing struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Observation is what was seen of the machine or of a process tree at one
// moment: sums since some start, and states.
type Observation struct {
	Sums, States map[string]float64
}

// NewObservation has seen nothing.
func NewObservation() Observation {
	return Observation{Sums: map[string]float64{}, States: map[string]float64{}}
}

// source is one file of the kernel's and the reader of it.
type source struct {
	file  string
	parse func(text string, into Observation) error
}

// machineSources are what vmstat, iostat and ifstat read too.
func machineSources() []source {
	return []source{
		{"proc/stat", parseMachineStat}, {"proc/vmstat", parseVMStat}, {"proc/diskstats", parseDiskStats},
		{"proc/net/dev", parseNetDev}, {"proc/meminfo", parseMemInfo},
	}
}

// ObserveMachine reads the sources; what cannot be read is left out, with the
// reason.
func ObserveMachine(h Host) (Observation, []Missing) {
	o := NewObservation()
	var missing []Missing
	for _, one := range machineSources() {
		text, err := h.Text(one.file)
		if err == nil {
			err = one.parse(text, o)
		}
		if err != nil {
			missing = append(missing, Missing{"machine: /" + one.file, err.Error()})
		}
	}
	return o, missing
}

// parseMachineStat reads CPU times, in seconds, context switches, and the
// processes that run, or wait for a disk.
func parseMachineStat(text string, into Observation) error {
	found := false
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "cpu":
			found = true
			if err := machineCPU(fields[1:], into); err != nil {
				return err
			}
		case "ctxt":
			if err := store(into.Sums, "machine.context_switches", fields[1], 1); err != nil {
				return err
			}
		case "procs_running":
			if err := store(into.States, "machine.run_queue", fields[1], 1); err != nil {
				return err
			}
		case "procs_blocked":
			if err := store(into.States, "machine.blocked", fields[1], 1); err != nil {
				return err
			}
		}
	}
	if !found {
		return errors.New("no line of the CPU's times")
	}
	return nil
}

func machineCPU(fields []string, into Observation) error {
	// user nice system idle iowait irq softirq steal
	names := [...]string{"cpu_user", "cpu_user", "cpu_system", "", "cpu_iowait", "cpu_system", "cpu_system", "cpu_steal"}
	for i, name := range names {
		if name == "" || i >= len(fields) {
			continue
		}
		ticks, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return err
		}
		into.Sums["machine."+name] += float64(ticks) / ticksPerSecond
	}
	return nil
}

// store parses a whole number that cannot be negative.
func store(to map[string]float64, name, digits string, scale float64) error {
	value, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	to[name] += float64(value) * scale
	return nil
}

func parseVMStat(text string, into Observation) error {
	page := float64(os.Getpagesize())
	wanted := map[string]struct {
		name  string
		scale float64
	}{
		"pgfault": {"machine.page_faults", 1}, "pgmajfault": {"machine.page_faults_major", 1},
		"pswpin": {"machine.swap_in_bytes", page}, "pswpout": {"machine.swap_out_bytes", page},
	}
	for line := range strings.Lines(text) {
		name, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		if to, ok := wanted[name]; ok {
			if err := store(into.Sums, to.name, digits, to.scale); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseDiskStats adds up the disks. Their partitions, and what is stacked upon
// them, would count the same bytes again.
func parseDiskStats(text string, into Observation) error {
	disks := map[string]bool{}
	into.Sums["machine.disk_read_bytes"], into.Sums["machine.disk_write_bytes"] = 0, 0
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 10 {
			continue
		}
		name := fields[2]
		if stacked(name) || partition(name, disks) {
			continue
		}
		disks[name] = true
		if err := store(into.Sums, "machine.disk_read_bytes", fields[5], sectorBytes); err != nil {
			return err
		}
		if err := store(into.Sums, "machine.disk_write_bytes", fields[9], sectorBytes); err != nil {
			return err
		}
	}
	return nil
}

func stacked(disk string) bool {
	return slices.ContainsFunc([]string{"loop", "ram", "zram", "dm-", "md", "sr", "fd"}, func(prefix string) bool { return strings.HasPrefix(disk, prefix) })
}

// partition reports whether the name is a disk's, which the kernel lists
// before them, with a number behind: sda1, nvme0n1p2.
func partition(name string, disks map[string]bool) bool {
	whole := strings.TrimRight(name, "0123456789")
	return whole != name && (disks[whole] || disks[strings.TrimSuffix(whole, "p")])
}

// parseNetDev adds up the interfaces of the network namespace, without the one
// that leads back to the machine itself.
func parseNetDev(text string, into Observation) error {
	into.Sums["machine.network_receive_bytes"], into.Sums["machine.network_send_bytes"] = 0, 0
	for line := range strings.Lines(text) {
		name, numbers, found := strings.Cut(line, ":")
		fields := strings.Fields(numbers)
		if !found || len(fields) < 9 || strings.TrimSpace(name) == "lo" {
			continue
		}
		if err := store(into.Sums, "machine.network_receive_bytes", fields[0], 1); err != nil {
			return err
		}
		if err := store(into.Sums, "machine.network_send_bytes", fields[8], 1); err != nil {
			return err
		}
	}
	return nil
}

func parseMemInfo(text string, into Observation) error {
	total, available, err := parseMemory(text)
	if err == nil {
		into.States["machine.memory_used_bytes"] = max(0, float64(total-available))
	}
	return err
}
