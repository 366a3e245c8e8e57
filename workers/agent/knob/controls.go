// Package knob applies system parameters to runs from outside of their commands:
// cores, memory, frequency, GPUs. What belongs to the machine is noted in a journal
// before it is changed.
package knob

import (
	"sync"

	"github.com/tandem-tune/tandem/profiler/proc"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/workers/agent/cgroup"
	"github.com/tandem-tune/tandem/workers/agent/gpu"
)

// knob applies one system parameter of the catalogue to runs, from outside of
// their commands. Runs may be set at the same time.
type knob interface {
	// available says how this machine can set it; the error says why not.
	available() (how string, err error)
	// set brings a value into force, before the command starts and again
	// between its epochs: the same value again is harmless. how names the means
	// where there are several. After an error nothing of it is in force.
	set(s *Subject, value space.Value) (how string, err error)
	// unset takes back what was set, if anything was.
	unset(s *Subject)
	// held reports whether what was set was in force all the time since held was
	// asked last: another run may have wanted something else of the machine.
	held(s *Subject) bool
}

// Command is a started command as its knobs see it.
type Command interface {
	// Members are its processes that run now.
	Members() []int
	// Grouped reports whether it runs in the control group that was made for it.
	Grouped() bool
}

// Subject is a run as its knobs see it.
type Subject struct {
	Group *cgroup.Group
	// Environment is the command's. Until it starts knobs may change it.
	Environment []string
	Command     Command // nil before it is started
	Cores       []int   // where it may run; nil: on all cores of the worker
	GPUs        []int   // those the server gave it, by their place in the worker's list
	pinned      []int   // where its threads were put
	memory      memoryLimit
}

// processes are those of the command; none before it has started.
func (s *Subject) processes() []int {
	if s.Command == nil {
		return nil
	}
	return s.Command.Members()
}

// MemoryMovable reports whether the memory of a process that runs can be bounded
// anew for another run.
func (s *Subject) MemoryMovable() bool {
	_, grouped := s.memory.(groupLimit)
	return s.memory == nil || grouped
}

// Shortage is how many processes the kernel has ended at the limit of memory so
// far, and the most memory there was, in bytes; bounded is false without a limit.
func (s *Subject) Shortage() (ended, peak int64, bounded bool) {
	if s.memory == nil {
		return 0, 0, false
	}
	ended, peak = s.memory.shortage(s)
	return ended, peak, true
}

// Controls are the knobs of this machine. All runs of an agent share them.
type Controls struct {
	knobs   map[string]knob
	devices *devices
	gpus    *gpu.Driver
	// policies are the folders of the kernel's settings for the frequency of the
	// worker's cores; none where it has none.
	policies []string
	root     string
}

// Options say where the machine is.
type Options struct {
	// Root is prefixed to the paths of the kernel's settings.
	Root     string
	OpenGPUs func() (gpu.Control, error)
}

// New returns the knobs of the machine; Close gives them back.
func New(options Options) *Controls {
	c := &Controls{root: options.Root, gpus: gpu.NewDriver(options.OpenGPUs)}
	frequency, governor := cpuSetting{root: options.Root, file: frequencyFile}, cpuSetting{root: options.Root, file: governorFile}
	c.devices = newDevices(map[string]access{
		system.CPUFrequencyMHz: frequencyAccess{}, system.CPUGovernor: fileAccess{},
		system.GPUPowerWatts: powerAccess{c.gpus}, system.GPUClockMHz: clockAccess{c.gpus, &sync.Map{}},
	})
	allowed := allowedCores()
	c.policies = frequency.policies(allowed)
	c.knobs = map[string]knob{
		system.Cores:           &coresKnob{allowed: allowed, taken: map[*Subject][]int{}},
		system.MemoryGiB:       &memoryKnob{folder: proc.OldControlGroup("memory")},
		system.CPUFrequencyMHz: &deviceKnob{name: system.CPUFrequencyMHz, devices: c.devices, places: frequency.places(allowed, frequencyText)},
		system.CPUGovernor:     &deviceKnob{name: system.CPUGovernor, devices: c.devices, places: governor.places(allowed, governorText)},
		system.GPUs:            &gpusKnob{driver: c.gpus, own: ownDevices},
		system.GPUPowerWatts:   &deviceKnob{name: system.GPUPowerWatts, devices: c.devices, places: gpuPlaces(c.gpus, powerText)},
		system.GPUClockMHz:     &deviceKnob{name: system.GPUClockMHz, devices: c.devices, places: gpuPlaces(c.gpus, clockText), untold: true},
	}
	return c
}

// Close gives the driver of the GPUs back. Every run has to be released before.
func (c *Controls) Close() { c.gpus.Close() }

// GPULost asks the driver whether a GPU of this machine is gone for good.
func (c *Controls) GPULost() error { return c.gpus.Lost() }

// Journal has the old values of what is changed of the machine noted in the file.
func (c *Controls) Journal(path string) { c.devices.journal.path = path }

// Restore puts back what the journal of a dead agent has.
func (c *Controls) Restore(journal string) error { return c.devices.restore(journal) }

// Available says how this machine can have the knob set; the error says why not.
func (c *Controls) Available(knob string) (how string, err error) { return c.knobs[knob].available() }

// Set brings a value of the knob into force for the subject until Unset.
func (c *Controls) Set(s *Subject, knob string, value space.Value) error {
	_, err := c.knobs[knob].set(s, value)
	return err
}

// Unset takes the knob's value back, if it was set.
func (c *Controls) Unset(s *Subject, knob string) { c.knobs[knob].unset(s) }

// Release takes back what was set for the subject: all, or what can be set anew
// while its command runs.
func (c *Controls) Release(s *Subject, all bool) {
	for name, k := range c.knobs {
		if about, _ := system.Find(name); all || about.Live {
			k.unset(s)
		}
	}
}

// Settable names the knobs that can be set on this machine.
func (c *Controls) Settable() []string {
	var names []string
	for _, about := range system.Catalogue() {
		if k, ours := c.knobs[about.Name]; ours {
			if _, err := k.available(); err == nil {
				names = append(names, about.Name)
			}
		}
	}
	return names
}
