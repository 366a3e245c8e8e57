package profiler

import (
	"errors"
	"fmt"
	"github.com/tandem-tune/tandem/profiler/proc"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// errNoRAPL says that the machine has no energy counter we know of.
var errNoRAPL = errors.New("no RAPL energy counter")

// cpuCounter sums the energy of the CPU packages and their memory since it was
// opened, from powercap's files or, where these are root's alone, from the
// kernel's power PMU.
type cpuCounter struct {
	mutex   sync.Mutex
	domains []*energyDomain
	source  string
}

// energyDomain is one counter, which wraps around after span (0: never).
type energyDomain struct {
	name  string
	read  func() (uint64, error) // in units
	close func()
	unit  float64 // joules
	span  uint64
	last  uint64
	total float64 // joules since it was opened
}

func openCPUCounter(h proc.Host) (*cpuCounter, error) {
	domains, err := powercapDomains(h)
	source := "powercap"
	if err != nil {
		fromPMU, pmuErr := powerPMUDomains(h)
		if pmuErr != nil {
			return nil, errors.Join(err, pmuErr)
		}
		domains, source = fromPMU, "perf power PMU"
	}
	counter := &cpuCounter{domains: domains, source: source}
	for _, domain := range domains {
		if domain.last, err = domain.read(); err != nil {
			counter.close()
			return nil, err
		}
	}
	return counter, nil
}

func (c *cpuCounter) joules() (float64, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	sum := 0.0
	for _, domain := range c.domains {
		if err := domain.advance(); err != nil {
			return 0, err
		}
		sum += domain.total
	}
	return sum, nil
}

func (d *energyDomain) advance() error {
	now, err := d.read()
	if err != nil {
		return fmt.Errorf("read the energy counter %s: %w", d.name, err)
	}
	delta := now - d.last
	if now < d.last {
		if d.span < d.last { // 0: it does not wrap around at all
			d.last = now
			return fmt.Errorf("the energy counter %s went back", d.name)
		}
		delta = d.span - d.last + now
	}
	d.total += float64(delta) * d.unit
	d.last = now
	return nil
}

func (c *cpuCounter) names() []string {
	var names []string
	for _, domain := range c.domains {
		names = append(names, domain.name)
	}
	return names
}

func (c *cpuCounter) close() {
	for _, domain := range c.domains {
		domain.close()
	}
}

// powercapDomains finds the zones that can be added up: packages, and the
// memory beside them. Cores and uncore are parts of their package, psys covers
// everything once more, and the mmio zones repeat the packages.
func powercapDomains(h proc.Host) ([]*energyDomain, error) {
	const zones = "sys/class/powercap/intel-rapl:*"
	var domains []*energyDomain
	for _, zone := range h.Glob(zones) {
		name, err := proc.Host{}.Text(filepath.Join(zone, "name"))
		if err != nil || !strings.HasPrefix(name, "package") && name != "dram" {
			continue
		}
		file := filepath.Join(zone, "energy_uj")
		if _, err := readNumber(file); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		span, err := readNumber(filepath.Join(zone, "max_energy_range_uj"))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		domains = append(domains, &energyDomain{
			name: name, unit: 1e-6, span: span, close: func() {},
			read: func() (uint64, error) { return readNumber(file) },
		})
	}
	if len(domains) == 0 {
		return nil, errNoRAPL
	}
	return domains, nil
}

func readNumber(file string) (uint64, error) {
	text, err := proc.Host{}.Text(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(text, 10, 64)
}
