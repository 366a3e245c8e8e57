// Package rapl reads the energy that the CPU packages and their memory used, from the
// kernel's powercap files or its power PMU.
package rapl

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/profiler/proc"
)

// ErrNone says that the machine has no energy counter we know of.
var ErrNone = errors.New("no RAPL energy counter")

// Counter sums the energy of the CPU packages and their memory since it was
// opened, from powercap's files or, where these are root's alone, from the
// kernel's power PMU.
type Counter struct {
	mutex   sync.Mutex
	domains []*energyDomain
	// Source is "powercap" or "perf power PMU".
	Source string
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

// Open finds the counters of the machine; [ErrNone] where it has none that we know of.
func Open(h proc.Host) (*Counter, error) {
	domains, err := powercapDomains(h)
	source := "powercap"
	if err != nil {
		fromPMU, pmuErr := powerPMUDomains(h)
		if pmuErr != nil {
			return nil, errors.Join(err, pmuErr)
		}
		domains, source = fromPMU, "perf power PMU"
	}
	counter := &Counter{domains: domains, Source: source}
	for _, domain := range domains {
		if domain.last, err = domain.read(); err != nil {
			counter.Close()
			return nil, err
		}
	}
	return counter, nil
}

// Joules is what was used since Open until now, which is what it is asked for.
func (c *Counter) Joules(time.Time) (float64, error) {
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

// Names are the parts that are added up.
func (c *Counter) Names() []string {
	var names []string
	for _, domain := range c.domains {
		names = append(names, domain.name)
	}
	return names
}

// Close lets go of the counters.
func (c *Counter) Close() {
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
		if _, err := (proc.Host{}).Number(file); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		span, err := proc.Host{}.Number(filepath.Join(zone, "max_energy_range_uj"))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		domains = append(domains, &energyDomain{
			name: name, unit: 1e-6, span: span, close: func() {},
			read: func() (uint64, error) { return proc.Host{}.Number(file) },
		})
	}
	if len(domains) == 0 {
		return nil, ErrNone
	}
	return domains, nil
}
