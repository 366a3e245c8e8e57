package probe

import (
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/workers/agent/gpu"
	"github.com/tandem-tune/tandem/workers/agent/knob"
	"github.com/tandem-tune/tandem/workers/workload"
)

// Capability says at which settings the probing tasks run on this machine, what
// keeps them from others, and what they took when a worker of this user ran them
// last. root is prefixed to the paths of the kernel's settings, "/" for this
// machine. Nothing is run or changed.
func Capability(root string) profiler.Capability {
	c := knob.New(knob.Options{Root: root, OpenGPUs: gpu.Open})
	defer c.Close()
	p := Prober{Machine: Machine(profiler.ThisMachine()), Controls: c}
	settings, reasons := p.settings()
	var at []string
	for _, setting := range settings[1:] {
		at = append(at, setting.String())
	}
	var tasks []string
	for _, task := range workload.Tasks() {
		tasks = append(tasks, task.Name)
	}
	one := profiler.Capability{Name: "probing", Available: true, Detail: strings.Join(tasks, ", ") + " as the machine is"}
	if len(at) > 0 {
		one.Detail += ", and at " + strings.Join(at, ", ")
	}
	one.Reason = strings.Join(reasons, "; ")
	kept, err := newestProbes(p.Machine.Type())
	switch {
	case err != nil:
		one.Remedy = "what they took before cannot be read, so that a worker runs them again: " + err.Error()
	case kept == nil:
		one.Remedy = "they have not run here yet: a worker runs them when it starts, unless it is started with --probe never"
	default:
		var took []string
		for _, probe := range kept.Probes {
			if probe.Setting == "" {
				took = append(took, fmt.Sprintf("%s %.3g s, %.3g J", probe.Workload, probe.Seconds, probe.Joules))
			}
		}
		one.Detail += fmt.Sprintf("; on %s they took: %s (%s)", kept.At.Format("2006-01-02"), strings.Join(took, "; "), kept.Probes[0].Method)
	}
	return one
}

// newestProbes are the last ones of this user's workers on a type of machine;
// nil if there are none.
func newestProbes(machine string) (newest *keptMachine, err error) {
	path, err := DefaultFile()
	if err != nil {
		return nil, err
	}
	kept, err := readKept(path)
	for kind, one := range kept.Machines {
		if strings.HasPrefix(kind, machine+"; ") && len(one.Probes) > 0 && (newest == nil || one.At.After(newest.At)) {
			newest = &one
		}
	}
	return newest, err
}
