package agenttest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/profiler"
)

// GPUs are GPUs in memory: 100 to 300 W, 250 W at first, up to 2000 MHz.
type GPUs struct {
	// Shown are those that the driver lets this process use.
	Shown  []int
	Power  []uint // in milliwatts
	Clocks []uint // 0: unlocked
	// Refuses says that the power limit cannot be set.
	Refuses bool
	// Look returns the use of a device; nil: the driver does not tell.
	Look func(device int) (profiler.GPUUse, error)
}

// NewGPUs returns that many GPUs, all of them shown.
func NewGPUs(count int) *GPUs {
	g := &GPUs{Power: slices.Repeat([]uint{250_000}, count), Clocks: make([]uint, count)}
	for device := range count {
		g.Shown = append(g.Shown, device)
	}
	return g
}

// Count is the number of GPUs.
func (g *GPUs) Count() int { return len(g.Power) }

// Name names the device.
func (g *GPUs) Name(device int) string { return fmt.Sprintf("GPU-%d", device) }

// Visible returns the shown devices.
func (g *GPUs) Visible([]string) ([]int, error) { return g.Shown, nil }

// PowerLimit is in milliwatts.
func (g *GPUs) PowerLimit(device int) (uint, error) { return g.Power[device], nil }

// PowerBounds are in milliwatts.
func (g *GPUs) PowerBounds(int) (uint, uint, error) { return 100_000, 300_000, nil }

// HighestClock is in MHz.
func (g *GPUs) HighestClock(int) (uint, error) { return 2000, nil }

// Close does nothing.
func (g *GPUs) Close() {}

// Use calls Look.
func (g *GPUs) Use(device int) (profiler.GPUUse, error) {
	if g.Look == nil {
		return profiler.GPUUse{}, errors.New("this GPU does not support it")
	}
	return g.Look(device)
}

// SetPowerLimit sets it unless Refuses is set.
func (g *GPUs) SetPowerLimit(device int, milliwatts uint) error {
	if g.Refuses {
		return errors.New("this user may not talk to the NVIDIA driver")
	}
	g.Power[device] = milliwatts
	return nil
}

// LimitClock sets the highest clock.
func (g *GPUs) LimitClock(device int, mhz uint) error {
	g.Clocks[device] = mhz
	return nil
}

// UnlockClocks takes the limit back.
func (g *GPUs) UnlockClocks(device int) error {
	g.Clocks[device] = 0
	return nil
}

// LostGPUs are GPUs that the driver cannot reach any more.
type LostGPUs struct{ *GPUs }

// PowerLimit says that the GPU is lost.
func (LostGPUs) PowerLimit(int) (uint, error) { return 0, profiler.ErrGPULost }
