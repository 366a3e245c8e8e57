package profiler

import (
	"errors"
	"fmt"
)

// GPUControl changes what the GPUs of the machine may draw and how fast they
// run, and tells who uses them. Nothing else in this package changes the machine, and nothing in it uses
// this: it is for a worker that tunes them, and puts back what was before.
// Devices are numbered as NVML numbers them. It is safe for concurrent use.
type GPUControl struct{ gpus gpuSetter }

// gpuSetter is a gpuReader that can set as well. Powers are in milliwatts,
// clocks in MHz.
type gpuSetter interface {
	gpuReader
	powerLimit(device int) (uint, error)
	powerBounds(device int) (low, high uint, err error)
	setPowerLimit(device int, milliwatts uint) error
	highestClock(device int) (uint, error)
	lockClocks(device int, low, high uint) error
	unlockClocks(device int) error
	confidential() (on, tools bool, err error)
	attest(device int, nonce [32]byte) (report, chain []byte, err error)
}

// OpenGPUControl opens the driver. Errors say in words why it cannot be used.
func OpenGPUControl() (*GPUControl, error) {
	gpus, err := openGPUs()
	if err != nil {
		return nil, err
	}
	setter, can := gpus.(gpuSetter)
	if !can {
		gpus.close()
		return nil, errors.New("the GPUs of this machine cannot be set")
	}
	return &GPUControl{setter}, nil
}

// Close lets go of the driver. What was set stays set.
func (c *GPUControl) Close() { c.gpus.close() }

// Count is how many GPUs there are.
func (c *GPUControl) Count() int { return len(c.gpus.devices()) }

// Name is what no other GPU is called, its UUID; its number where the driver
// tells none.
func (c *GPUControl) Name(device int) string {
	if uuid := c.gpus.devices()[device].uuid; uuid != "" {
		return uuid
	}
	return fmt.Sprint(device)
}

// Visible are the GPUs that a command with the environment may use. It is an
// error where that cannot be told.
func (c *GPUControl) Visible(environment []string) ([]int, error) {
	return visibleGPUs(environment, c.gpus.devices())
}

// PowerLimit is the most the GPU may draw, in milliwatts.
func (c *GPUControl) PowerLimit(device int) (uint, error) { return c.gpus.powerLimit(device) }

// PowerBounds are the least and the most that its limit can be, in milliwatts.
func (c *GPUControl) PowerBounds(device int) (low, high uint, err error) {
	return c.gpus.powerBounds(device)
}

// SetPowerLimit sets the most the GPU may draw, in milliwatts. Only root may.
func (c *GPUControl) SetPowerLimit(device int, milliwatts uint) error {
	return c.gpus.setPowerLimit(device, milliwatts)
}

// HighestClock is the highest clock of the GPU's cores, in MHz.
func (c *GPUControl) HighestClock(device int) (uint, error) { return c.gpus.highestClock(device) }

// LimitClock keeps the GPU's cores at or below a clock, in MHz. Only root may.
func (c *GPUControl) LimitClock(device int, mhz uint) error {
	return c.gpus.lockClocks(device, 0, mhz)
}

// UnlockClocks lets the GPU choose its clocks again.
func (c *GPUControl) UnlockClocks(device int) error { return c.gpus.unlockClocks(device) }

// Confidential refuses GPUs that do not keep what they hold from their host. Developers'
// tools may look into them nevertheless.
func (c *GPUControl) Confidential() (tools bool, err error) {
	on, tools, err := c.gpus.confidential()
	if err == nil && !on {
		err = errors.New("confidential computing is off: the host turns it on, for example with NVIDIA's gpu-admin-tools")
	}
	return tools, err
}

// Attest is the GPU's report with the nonce, and the certificates of its key, as PEM.
func (c *GPUControl) Attest(device int, nonce [32]byte) (report, chain []byte, err error) {
	return c.gpus.attest(device, nonce)
}
