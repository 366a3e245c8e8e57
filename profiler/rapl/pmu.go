package rapl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"github.com/tandem-tune/tandem/profiler/proc"
	"golang.org/x/sys/unix"
)

// powerPMUDomains opens RAPL through the kernel's perf events, which ask for
// CAP_PERFMON where powercap's files ask for root. Its counters have 64 bits
// and count for a whole package, so there is one on each package's first CPU.
func powerPMUDomains(h proc.Host) ([]*energyDomain, error) {
	const pmu = "sys/bus/event_source/devices/power"
	kind, err := h.Text(filepath.Join(pmu, "type"))
	if err != nil {
		return nil, ErrNone
	}
	number, err := strconv.ParseUint(kind, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("the power PMU's type: %w", err)
	}
	mask, err := h.Text(filepath.Join(pmu, "cpumask"))
	if err != nil {
		return nil, err
	}
	cpus, err := proc.ParseCPUList(mask)
	if err != nil {
		return nil, fmt.Errorf("the power PMU's cpumask: %w", err)
	}
	var domains []*energyDomain
	for _, event := range []string{"energy-pkg", "energy-ram"} {
		config, unit, err := powerEvent(h, filepath.Join(pmu, "events", event))
		if err != nil {
			continue // not every processor has every domain
		}
		for _, cpu := range cpus {
			domain, err := openPowerEvent(uint32(number), config, cpu)
			if err != nil {
				(&Counter{domains: domains}).Close()
				return nil, fmt.Errorf("open %s on CPU %d: %w", event, cpu, err)
			}
			domain.name, domain.unit = event, unit
			domains = append(domains, domain)
		}
	}
	if len(domains) == 0 {
		return nil, ErrNone
	}
	return domains, nil
}

// powerEvent reads an event's number and its joules per count.
func powerEvent(h proc.Host, file string) (config uint64, unit float64, err error) {
	text, err := h.Text(file)
	if err != nil {
		return 0, 0, err
	}
	number, found := strings.CutPrefix(text, "event=")
	if !found {
		return 0, 0, fmt.Errorf("%s: unknown form %q", file, text)
	}
	if config, err = strconv.ParseUint(number, 0, 64); err != nil {
		return 0, 0, err
	}
	scale, err := h.Text(file + ".scale")
	if err != nil {
		return 0, 0, err
	}
	if unit, err = strconv.ParseFloat(scale, 64); err != nil {
		return 0, 0, err
	}
	if !(unit > 0 && unit <= 1) {
		return 0, 0, fmt.Errorf("%s: %q is no number of joules a count can have", file, scale)
	}
	return config, unit, nil
}

func openPowerEvent(kind uint32, config uint64, cpu int) (*energyDomain, error) {
	attributes := unix.PerfEventAttr{Type: kind, Config: config, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
	descriptor, err := unix.PerfEventOpen(&attributes, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return &energyDomain{
		close: func() { _ = unix.Close(descriptor) }, // read-only: nothing can be lost
		read: func() (uint64, error) {
			var count [8]byte
			n, err := unix.Read(descriptor, count[:])
			if err == nil && n != len(count) {
				err = errors.New("short read")
			}
			return binary.NativeEndian.Uint64(count[:]), err
		},
	}, nil
}
