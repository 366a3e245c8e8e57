package knob

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"

	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/workers/agent/gpu"
)

// gpuPlaces are the GPUs that a run's command may use, by name.
func gpuPlaces(d *gpu.Driver, text func(gpu.Control, int, space.Value) (string, error)) func(*Subject, space.Value) (map[string]string, error) {
	return func(s *Subject, value space.Value) (map[string]string, error) {
		control, err := d.Get()
		if err != nil {
			return nil, err
		}
		environment := os.Environ()
		if s != nil {
			environment = s.Environment
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
func powerText(control gpu.Control, device int, value space.Value) (string, error) {
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

func clockText(control gpu.Control, device int, value space.Value) (string, error) {
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

// powerAccess sets the power limits of GPUs.
type powerAccess struct{ driver *gpu.Driver }

func (t powerAccess) read(where string) (string, error) {
	control, device, err := t.driver.Device(where)
	if err != nil {
		return "", err
	}
	limit, err := control.PowerLimit(device)
	return strconv.FormatUint(uint64(limit), 10), err
}

func (t powerAccess) write(where, value string) error {
	control, device, err := t.driver.Device(where)
	if err != nil {
		return err
	}
	limit, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return err
	}
	return control.SetPowerLimit(device, uint(limit))
}

func (powerAccess) same(wanted, present string) bool { return wanted == present }

func (clockAccess) same(wanted, present string) bool { return wanted == present }

// clockAccess sets the highest clocks of GPUs. The driver does not tell what is
// set, so this remembers it; empty is unlocked.
type clockAccess struct {
	driver *gpu.Driver
	set    *sync.Map
}

func (t clockAccess) read(where string) (string, error) {
	if value, known := t.set.Load(where); known {
		return value.(string), nil
	}
	return "", nil
}

func (t clockAccess) write(where, value string) error {
	control, device, err := t.driver.Device(where)
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
