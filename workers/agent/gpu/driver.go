// Package gpu reaches the driver of the GPUs, sees what trials use of them, and
// tells a broken GPU from a broken trial.
package gpu

import (
	"fmt"
	"sync"

	"github.com/tandem-tune/tandem/profiler"
)

// Control is what the agent needs of the GPUs' driver; profiler.GPUControl
// has it. Powers are in milliwatts, clocks in MHz.
type Control interface {
	Count() int
	Name(device int) string
	Visible(environment []string) ([]int, error)
	PowerLimit(device int) (uint, error)
	PowerBounds(device int) (low, high uint, err error)
	SetPowerLimit(device int, milliwatts uint) error
	HighestClock(device int) (uint, error)
	LimitClock(device int, mhz uint) error
	UnlockClocks(device int) error
	Use(device int) (profiler.GPUUse, error)
	Close()
}

// Open opens the driver of this machine.
func Open() (Control, error) {
	control, err := profiler.OpenGPUControl()
	if err != nil {
		return nil, err // not a typed nil
	}
	return control, nil
}

// Driver opens the driver when it is needed for the first time: it may take
// seconds, and most trials set no GPU.
type Driver struct {
	open func() (Control, error)

	mutex   sync.Mutex
	control Control
	failed  error
}

// NewDriver opens the driver with the function.
func NewDriver(open func() (Control, error)) *Driver { return &Driver{open: open} }

// Get returns the opened driver, or why it cannot be opened.
func (d *Driver) Get() (Control, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.control == nil && d.failed == nil {
		d.control, d.failed = d.open()
	}
	return d.control, d.failed
}

// Close gives the driver back.
func (d *Driver) Close() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.control != nil {
		d.control.Close()
		d.control = nil
	}
}

// Device finds a GPU by its name.
func (d *Driver) Device(name string) (Control, int, error) {
	control, err := d.Get()
	if err != nil {
		return nil, 0, err
	}
	for device := range control.Count() {
		if control.Name(device) == name {
			return control, device, nil
		}
	}
	return nil, 0, fmt.Errorf("there is no GPU %s any more", name)
}
