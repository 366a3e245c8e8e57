package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/system"
)

// gpus are GPUs in memory: 100 to 300 W, 250 W at first, up to 2000 MHz.
type gpus struct {
	visible []int
	watts   []uint
	clocks  []uint // 0: unlocked
	refuses bool
}

func newGPUs(count int) *gpus {
	g := &gpus{watts: slices.Repeat([]uint{250_000}, count), clocks: make([]uint, count)}
	for device := range count {
		g.visible = append(g.visible, device)
	}
	return g
}

func (g *gpus) Count() int                          { return len(g.watts) }
func (g *gpus) Name(device int) string              { return fmt.Sprintf("GPU-%d", device) }
func (g *gpus) Visible([]string) ([]int, error)     { return g.visible, nil }
func (g *gpus) PowerLimit(device int) (uint, error) { return g.watts[device], nil }
func (g *gpus) PowerBounds(int) (uint, uint, error) { return 100_000, 300_000, nil }
func (g *gpus) HighestClock(int) (uint, error)      { return 2000, nil }
func (g *gpus) Close()                              {}

func (g *gpus) SetPowerLimit(device int, milliwatts uint) error {
	if g.refuses {
		return errors.New("this user may not talk to the NVIDIA driver")
	}
	g.watts[device] = milliwatts
	return nil
}

func (g *gpus) LimitClock(device int, mhz uint) error {
	g.clocks[device] = mhz
	return nil
}

func (g *gpus) UnlockClocks(device int) error {
	g.clocks[device] = 0
	return nil
}

func TestGPUPowerAndClock(t *testing.T) {
	machine := newGPUs(3)
	machine.visible = []int{0, 2}
	c := testControls(t, t.TempDir(), machine)
	run := &subject{environment: []string{}}
	power, clock := c.knobs[system.GPUPowerWatts], c.knobs[system.GPUClockMHz]
	_, first := power.set(run, space.Float(150.5))
	_, second := clock.set(run, space.Int(1200))
	if err := errors.Join(first, second); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(machine.watts, machine.clocks); got != "[150500 250000 150500] [1200 0 1200]" {
		t.Errorf("set are %s", got)
	}
	entries, err := readJournal(c.dials.journal.path)
	if err != nil || len(entries) != 4 {
		t.Errorf("the journal has %v, %v", entries, err)
	}
	for _, fault := range []struct {
		knob  knob
		value space.Value
		say   string
	}{
		{power, space.Int(50), "100 to 300 W"}, {power, space.String("low"), "no number"},
		{clock, space.Int(5000), "at most 2000 MHz"}, {clock, space.Int(0), "no number"},
	} {
		if _, err := fault.knob.set(run, fault.value); err == nil || !strings.Contains(err.Error(), fault.say) {
			t.Errorf("got %v, want %q", err, fault.say)
		}
	}
	// As the next agent does after this one was killed.
	if err := testControls(t, t.TempDir(), machine).dials.restore(c.dials.journal.path); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(machine.watts, machine.clocks); got != "[250000 250000 250000] [0 0 0]" {
		t.Errorf("put back are %s", got)
	}
	if err := testControls(t, t.TempDir(), newGPUs(1)).dials.restore(c.dials.journal.path); err == nil || !strings.Contains(err.Error(), "GPU-2") {
		t.Errorf("a GPU that is gone: %v", err)
	}
	power.unset(run)
	clock.unset(run)
}

func TestGPUThatMayNotBeSet(t *testing.T) {
	machine := newGPUs(1)
	machine.refuses = true
	c := testControls(t, t.TempDir(), machine)
	if _, err := c.knobs[system.GPUPowerWatts].available(); err == nil || !strings.Contains(err.Error(), "may not") {
		t.Errorf("got %v", err)
	}
	if _, err := c.knobs[system.GPUPowerWatts].set(&subject{}, space.Int(150)); err == nil || machine.watts[0] != 250_000 {
		t.Errorf("got %v, %v", err, machine.watts)
	}
	machine.visible = nil
	if _, err := c.knobs[system.GPUPowerWatts].set(&subject{}, space.Int(150)); err == nil || !strings.Contains(err.Error(), "may use no GPU") {
		t.Errorf("got %v", err)
	}
}

func TestVisibleGPUs(t *testing.T) {
	c := testControls(t, t.TempDir(), newGPUs(4))
	k := c.knobs[system.GPUs]
	steps := []struct {
		name        string
		environment []string
		number      int64
		want        string // what is added to the environment
	}{
		{"the first", nil, 2, "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1"},
		{"beside it", nil, 1, "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=2"},
		{"some twice", nil, 3, "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1,3"},
		{"none", nil, 0, "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="},
		{"of the owner's", []string{"CUDA_VISIBLE_DEVICES=9", "CUDA_VISIBLE_DEVICES=GPU-a, GPU-b"}, 1, "CUDA_VISIBLE_DEVICES=GPU-a"},
		{"beside that one", []string{"CUDA_VISIBLE_DEVICES=GPU-a,GPU-b"}, 1, "CUDA_VISIBLE_DEVICES=GPU-b"},
	}
	for i, step := range steps {
		run := &subject{environment: slices.Clone(step.environment), mark: fmt.Sprint(i)}
		if _, err := k.set(run, space.Int(step.number)); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := strings.Join(run.environment[len(step.environment):], " "); got != step.want {
			t.Errorf("%s: got %s, want %s", step.name, got, step.want)
		}
	}
	if _, err := k.set(&subject{}, space.Int(5)); err == nil || !strings.Contains(err.Error(), "4 GPUs, not 5") {
		t.Errorf("got %v", err)
	}
	none := &subject{}
	if _, err := testControls(t, t.TempDir(), nil).knobs[system.GPUs].set(none, space.Int(0)); err != nil || !slices.Contains(none.environment, "CUDA_VISIBLE_DEVICES=") {
		t.Errorf("no GPU of none: %v, %v", none.environment, err)
	}
}
