package knob

import (
	"errors"
	"os"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/workers/agent/gpu"
)

// Capabilities says of every knob of the catalogue whether trials on this machine can
// have it set, by whom, or why not. root is prefixed to the paths of the
// kernel's settings, "/" for this machine. Nothing is changed.
func Capabilities(root string) []profiler.Capability {
	c := New(Options{Root: root, OpenGPUs: gpu.Open})
	defer c.Close()
	var list []profiler.Capability
	for _, about := range system.Catalogue() {
		one := profiler.Capability{Name: "knob " + about.Name}
		if about.Applier == system.Script {
			one.Available, one.Detail = true, "can be set: the training script applies it"
			list = append(list, one)
			continue
		}
		how, err := c.knobs[about.Name].available()
		switch {
		case err != nil:
			one.Reason = err.Error()
		default:
			one.Available, one.Detail = true, "can be set"
			if how != "" {
				one.Detail += ": " + how
			}
		}
		list = append(list, one)
	}
	return list
}

// rootOnly is the reason why what cannot be tried cannot be set.
func rootOnly() error {
	if os.Geteuid() != 0 {
		return errors.New("only root may change it")
	}
	return nil
}
