package agent

import (
	"fmt"
	"log/slog"
	"maps"
	"sync"

	"github.com/tandem-tune/tandem/profiler"
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
	set(s *subject, value space.Value) (how string, err error)
	// unset takes back what was set, if anything was.
	unset(s *subject)
	// held reports whether what was set was in force all the time since held was
	// asked last: another run may have wanted something else of the machine.
	held(s *subject) bool
}

// subject is a run as its knobs see it.
type subject struct {
	group *cgroup.Group
	// environment is the command's. Until it starts knobs may change it.
	environment []string
	process     *process // nil before the command is started
	cores       []int    // where it may run; nil: on all cores of the worker
	pinned      []int    // where its threads were put
	gpus        []int    // those the server gave it, by their place in the worker's list
	memory      memoryLimit
}

// processes are those of the command; none before it has started.
func (s *subject) processes() []int {
	if s.process == nil {
		return nil
	}
	return s.process.members()
}

// controls are the knobs of this machine. All runs of an agent share them.
type controls struct {
	knobs map[string]knob
	dials *dials
	gpus  *gpu.Driver
	// policies are the folders of the kernel's settings for the frequency of the
	// worker's cores; none where it has none.
	policies []string
}

// controlOptions say where the machine is.
type controlOptions struct {
	// root is prefixed to the paths of the kernel's settings.
	root     string
	openGPUs func() (gpu.Control, error)
}

func newControls(options controlOptions) *controls {
	c := &controls{gpus: gpu.NewDriver(options.openGPUs)}
	frequency, governor := cpuDial{root: options.root, file: frequencyFile}, cpuDial{root: options.root, file: governorFile}
	c.dials = newDials(map[string]turner{
		system.CPUFrequencyMHz: frequencyTurner{}, system.CPUGovernor: fileTurner{},
		system.GPUPowerWatts: powerTurner{c.gpus}, system.GPUClockMHz: clockTurner{c.gpus, &sync.Map{}},
	})
	allowed := allowedCores()
	c.policies = frequency.policies(allowed)
	c.knobs = map[string]knob{
		system.Cores:           &coresKnob{allowed: allowed, taken: map[*subject][]int{}},
		system.MemoryGiB:       &memoryKnob{folder: profiler.OldControlGroup("memory")},
		system.CPUFrequencyMHz: &dialKnob{name: system.CPUFrequencyMHz, dials: c.dials, places: frequency.places(allowed, frequencyText)},
		system.CPUGovernor:     &dialKnob{name: system.CPUGovernor, dials: c.dials, places: governor.places(allowed, governorText)},
		system.GPUs:            &gpusKnob{driver: c.gpus, own: ownDevices},
		system.GPUPowerWatts:   &dialKnob{name: system.GPUPowerWatts, dials: c.dials, places: gpuPlaces(c.gpus, powerText)},
		system.GPUClockMHz:     &dialKnob{name: system.GPUClockMHz, dials: c.dials, places: gpuPlaces(c.gpus, clockText), untold: true},
	}
	return c
}

// close lets go of the machine. Every run has to be released before.
func (c *controls) close() { c.gpus.Close() }

// settable names the knobs that can be set on this machine.
func (c *controls) settable() []string {
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

// apply makes the wanted configuration come true, as far as that is the agent's
// task. What cannot be applied is not in force, and the log says so once. The
// caller holds the reports.
func (r *run) apply() {
	wanted := r.wanted()
	for _, about := range system.Catalogue() {
		if about.Applier != system.Agent || !about.Live && r.seat.subject.process != nil {
			continue
		}
		value, has := wanted[about.Name]
		k := r.agent.controls.knobs[about.Name]
		if !has {
			k.unset(r.seat.subject)
			delete(r.setting.applied, about.Name)
			continue
		}
		how, err := k.set(r.seat.subject, value)
		if err != nil {
			k.unset(r.seat.subject)
			delete(r.setting.applied, about.Name)
			r.tellOnce(slog.LevelWarn, fmt.Sprintf("system: %s is not applied: %v", about.Name, err))
			continue
		}
		r.setting.applied[about.Name] = value
		if how != "" {
			r.tellOnce(slog.LevelInfo, fmt.Sprintf("system: %s is applied by %s", about.Name, how))
		}
	}
}

// tellOnce writes to the trial's log and the agent's, unless that was done.
func (r *run) tellOnce(level slog.Level, what string) {
	if r.setting.told[what] {
		return
	}
	r.setting.told[what] = true
	r.log.note("%s", what)
	r.logger.Log(r.ctx, level, what)
}

// release takes everything back that was applied to the run and not to its
// command.
func (r *run) release() {
	r.reporting.Lock()
	defer r.reporting.Unlock()
	r.seat.unset(false)
}

// kept is what was applied, without what did not stay in force until now.
func (r *run) kept() system.Configuration {
	kept := maps.Clone(r.setting.applied)
	for name := range r.setting.applied {
		if !r.agent.controls.knobs[name].held(r.seat.subject) {
			delete(kept, name)
		}
	}
	return kept
}
