package knob

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/workers/agent/gpu"
)

const (
	visibleDevices = "CUDA_VISIBLE_DEVICES"
	deviceOrder    = "CUDA_DEVICE_ORDER"
)

// gpusKnob lets a command see the GPUs that the server gave its trial, and no
// others.
type gpusKnob struct {
	driver *gpu.Driver
	// own is what this worker may use of its machine, as CUDA_VISIBLE_DEVICES has
	// it; given is false where nothing was said.
	own func() (list string, given bool)
}

// ownDevices is what this process was told that it may use.
func ownDevices() (string, bool) { return os.LookupEnv(visibleDevices) }

func (k *gpusKnob) available() (string, error) {
	control, err := k.driver.Get()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, of %d", visibleDevices, control.Count()), nil
}

func (k *gpusKnob) set(s *Subject, value space.Value) (string, error) {
	wanted, isNumber := value.Number()
	if !isNumber || wanted < 0 {
		return "", fmt.Errorf("%v is no number of GPUs", value)
	}
	if int(wanted) != len(s.GPUs) {
		return "", fmt.Errorf("the server gave the trial %d GPUs, not %v", len(s.GPUs), value)
	}
	entries, given := k.entries()
	shown := make([]string, 0, len(s.GPUs))
	for _, gpu := range s.GPUs {
		switch {
		case !given:
			shown = append(shown, strconv.Itoa(gpu))
		case gpu < len(entries):
			shown = append(shown, entries[gpu])
		default:
			return "", fmt.Errorf("the server gave the trial GPU %d, and this worker may use %d (%s)", gpu, len(entries), visibleDevices)
		}
	}
	if !given {
		s.Environment = append(s.Environment, deviceOrder+"=PCI_BUS_ID") // as the driver numbers them
	}
	s.Environment = append(s.Environment, visibleDevices+"="+strings.Join(shown, ","))
	return "", nil
}

// entries are the GPUs that this worker may use, in the order in which it
// registered them, if it was told which.
func (k *gpusKnob) entries() (entries []string, given bool) {
	list, given := k.own()
	for entry := range strings.SplitSeq(list, ",") {
		if entry = strings.TrimSpace(entry); entry != "" && entry != "-1" {
			entries = append(entries, entry)
		}
	}
	return entries, given
}

func (k *gpusKnob) unset(*Subject) {}

func (k *gpusKnob) held(*Subject) bool { return true }

// UsableGPUs are the names of those of the machine's GPUs that this worker may
// use, in the order in which its commands would see them, and the memory of each.
func (c *Controls) UsableGPUs(machine profiler.Machine) (names []string, bytes []int64) {
	list, given := ownDevices()
	if !given || len(machine.GPUs) == 0 {
		return machine.GPUs, machine.GPUMemoryBytes
	}
	control, err := c.gpus.Get()
	if err != nil {
		return machine.GPUs, machine.GPUMemoryBytes
	}
	visible, err := control.Visible([]string{visibleDevices + "=" + list})
	if err != nil {
		return machine.GPUs, machine.GPUMemoryBytes
	}
	for _, gpu := range visible {
		if gpu < len(machine.GPUs) && gpu < len(machine.GPUMemoryBytes) {
			names, bytes = append(names, machine.GPUs[gpu]), append(bytes, machine.GPUMemoryBytes[gpu])
		}
	}
	return names, bytes
}
