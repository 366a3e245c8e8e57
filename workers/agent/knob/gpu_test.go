package knob

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/workers/agent/agenttest"
	"github.com/tandem-tune/tandem/workers/agent/gpu"
)

func TestGPUPowerAndClock(t *testing.T) {
	machine := agenttest.NewGPUs(3)
	machine.Shown = []int{0, 2}
	c := testControls(t, t.TempDir(), machine)
	run := &Subject{Environment: []string{}}
	power, clock := c.knobs[system.GPUPowerWatts], c.knobs[system.GPUClockMHz]
	_, first := power.set(run, space.Float(150.5))
	_, second := clock.set(run, space.Int(1200))
	if err := errors.Join(first, second); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(machine.Power, machine.Clocks); got != "[150500 250000 150500] [1200 0 1200]" {
		t.Errorf("set are %s", got)
	}
	entries, err := readJournal(c.devices.journal.path)
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
	if err := testControls(t, t.TempDir(), machine).devices.restore(c.devices.journal.path); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(machine.Power, machine.Clocks); got != "[250000 250000 250000] [0 0 0]" {
		t.Errorf("put back are %s", got)
	}
	if err := testControls(t, t.TempDir(), agenttest.NewGPUs(1)).devices.restore(c.devices.journal.path); err == nil || !strings.Contains(err.Error(), "GPU-2") {
		t.Errorf("a GPU that is gone: %v", err)
	}
	power.unset(run)
	clock.unset(run)
}

func TestGPUThatMayNotBeSet(t *testing.T) {
	machine := agenttest.NewGPUs(1)
	machine.Refuses = true
	c := testControls(t, t.TempDir(), machine)
	if _, err := c.knobs[system.GPUPowerWatts].available(); err == nil || !strings.Contains(err.Error(), "may not") {
		t.Errorf("got %v", err)
	}
	if _, err := c.knobs[system.GPUPowerWatts].set(&Subject{}, space.Int(150)); err == nil || machine.Power[0] != 250_000 {
		t.Errorf("got %v, %v", err, machine.Power)
	}
	machine.Shown = nil
	if _, err := c.knobs[system.GPUPowerWatts].set(&Subject{}, space.Int(150)); err == nil || !strings.Contains(err.Error(), "may use no GPU") {
		t.Errorf("got %v", err)
	}
}

// A command sees the GPUs that the server gave its trial, by their places among
// those that the worker may use.
func TestVisibleGPUs(t *testing.T) {
	k := &gpusKnob{driver: gpu.NewDriver(func() (gpu.Control, error) { return agenttest.NewGPUs(4), nil })}
	for name, test := range map[string]struct {
		own   string
		given bool
		gpus  []int
		want  string // what is added to the environment
	}{
		"two of the machine's": {"", false, []int{1, 3}, "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=1,3"},
		"none":                 {"", false, nil, "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="},
		"of the worker's":      {"GPU-a, GPU-b,GPU-c", true, []int{0, 2}, "CUDA_VISIBLE_DEVICES=GPU-a,GPU-c"},
		"none of none":         {"-1", true, nil, "CUDA_VISIBLE_DEVICES="},
	} {
		k.own = func() (string, bool) { return test.own, test.given }
		run := &Subject{Environment: []string{"CUDA_VISIBLE_DEVICES=9"}, GPUs: test.gpus} // the last one counts
		if _, err := k.set(run, space.Int(int64(len(test.gpus)))); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := strings.Join(run.Environment[1:], " "); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
	if _, err := k.set(&Subject{}, space.Int(5)); err == nil || !strings.Contains(err.Error(), "gave the trial 0 GPUs, not 5") {
		t.Errorf("got %v", err)
	}
	k.own = func() (string, bool) { return "", true }
	if _, err := k.set(&Subject{GPUs: []int{1}}, space.Int(1)); err == nil || !strings.Contains(err.Error(), "GPU 1, and this worker may use 0") {
		t.Errorf("got %v", err)
	}
}

// What the server gave is wanted, whatever the study's system section says of it.
func TestTheGPUsOfTheLeaseAreWanted(t *testing.T) {
	two := 2
	lease := protocol.Lease{System: map[string]space.Value{system.GPUs: space.Int(4), system.CPUThreads: space.Int(1)}, GPUs: []int{0, 3}, GPUCount: &two}
	if wanted := Wanted(lease); wanted[system.GPUs] != space.Int(2) || wanted[system.CPUThreads] != space.Int(1) || lease.System[system.GPUs] != space.Int(4) {
		t.Errorf("wanted is %v", wanted)
	}
}
