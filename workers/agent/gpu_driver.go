package agent

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/study/space"
)

// gpuControl is what the agent needs of the GPUs' driver; profiler.GPUControl
// has it. Powers are in milliwatts, clocks in MHz.
type gpuControl interface {
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

func openGPUs() (gpuControl, error) {
	control, err := profiler.OpenGPUControl()
	if err != nil {
		return nil, err // not a typed nil
	}
	return control, nil
}

// gpuDriver opens the driver when it is needed for the first time: it may take
// seconds, and most trials set no GPU.
type gpuDriver struct {
	open func() (gpuControl, error)

	mutex   sync.Mutex
	control gpuControl
	failed  error
}

func (d *gpuDriver) get() (gpuControl, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.control == nil && d.failed == nil {
		d.control, d.failed = d.open()
	}
	return d.control, d.failed
}

func (d *gpuDriver) close() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.control != nil {
		d.control.Close()
		d.control = nil
	}
}

// places are the GPUs that a run's command may use, by name.
func (d *gpuDriver) places(text func(gpuControl, int, space.Value) (string, error)) func(*subject, space.Value) (map[string]string, error) {
	return func(s *subject, value space.Value) (map[string]string, error) {
		control, err := d.get()
		if err != nil {
			return nil, err
		}
		environment := os.Environ()
		if s != nil {
			environment = s.environment
		}
		visible, err := control.Visible(environment)
		if err != nil {
			return nil, err
		}
		if len(visible) == 0 {
			return nil, errors.New("the command may use no GPU")
		}
		places := map[string]string{}
		for _, device := range visible {
			wanted := ""
			if s != nil {
				if wanted, err = text(control, device, value); err != nil {
					return nil, err
				}
			}
			places[control.Name(device)] = wanted
		}
		return places, nil
	}
}

// powerText is the limit in milliwatts, if the GPU can have it.
func powerText(control gpuControl, device int, value space.Value) (string, error) {
	watts, isNumber := value.Number()
	if !isNumber {
		return "", fmt.Errorf("%v is no number of watts", value)
	}
	low, high, err := control.PowerBounds(device)
	if err != nil {
		return "", err
	}
	if watts*1000 < float64(low) || watts*1000 > float64(high) {
		return "", fmt.Errorf("GPU %d takes %g to %g W", device, float64(low)/1000, float64(high)/1000)
	}
	return strconv.Itoa(int(math.Round(watts * 1000))), nil
}

func clockText(control gpuControl, device int, value space.Value) (string, error) {
	mhz, isNumber := value.Number()
	if !isNumber || mhz < 1 {
		return "", fmt.Errorf("%v is no number of MHz", value)
	}
	highest, err := control.HighestClock(device)
	if err != nil {
		return "", err
	}
	if mhz > float64(highest) {
		return "", fmt.Errorf("GPU %d has at most %d MHz", device, highest)
	}
	return strconv.Itoa(int(math.Round(mhz))), nil
}

// device finds a GPU by its name.
func (d *gpuDriver) device(name string) (gpuControl, int, error) {
	control, err := d.get()
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

// powerTurner sets the power limits of GPUs.
type powerTurner struct{ driver *gpuDriver }

func (t powerTurner) read(where string) (string, error) {
	control, device, err := t.driver.device(where)
	if err != nil {
		return "", err
	}
	limit, err := control.PowerLimit(device)
	return strconv.FormatUint(uint64(limit), 10), err
}

func (t powerTurner) write(where, value string) error {
	control, device, err := t.driver.device(where)
	if err != nil {
		return err
	}
	limit, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return err
	}
	return control.SetPowerLimit(device, uint(limit))
}

func (powerTurner) same(wanted, present string) bool { return wanted == present }

func (clockTurner) same(wanted, present string) bool { return wanted == present }

// clockTurner sets the highest clocks of GPUs. The driver does not tell what is
// set, so this remembers it; empty is unlocked.
type clockTurner struct {
	driver *gpuDriver
	set    *sync.Map
}

func (t clockTurner) read(where string) (string, error) {
	if value, known := t.set.Load(where); known {
		return value.(string), nil
	}
	return "", nil
}

func (t clockTurner) write(where, value string) error {
	control, device, err := t.driver.device(where)
	if err != nil {
		return err
	}
	if value == "" {
		err = control.UnlockClocks(device)
	} else {
		var mhz uint64
		if mhz, err = strconv.ParseUint(value, 10, 32); err == nil {
			err = control.LimitClock(device, uint(mhz))
		}
	}
	if err == nil {
		t.set.Store(where, value)
	}
	return err
}
