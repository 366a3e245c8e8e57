package workercmd

import (
	"cmp"
	"fmt"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/edgecmd"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/power"
	"github.com/tandem-tune/tandem/workers/agent"
)

// OpenMeter opens the meter that the flags name, if they do, for the agent. Done ends it.
// Without one, and without watts in the flags, estimates are as this machine was calibrated.
func (o Options) OpenMeter(made *agent.Options) (done func(), err error) {
	if o.meter == "" {
		path, machine, err := calibrationOfHere()
		if err != nil || o.wattsPerCore > 0 || o.idleWattsPerCore > 0 {
			return func() {}, nil // without a state directory nothing was calibrated
		}
		known, err := power.Calibrations(path)
		if found, has := known[machine]; has {
			made.WattsPerCore, made.IdleWattsPerCore, made.WattsOrigin = found.WattsPerCore, found.IdleWattsPerCore, found.String()
		}
		return func() {}, err
	}
	made.Meter, done, err = edgecmd.OpenMeter(o.meter)
	return done, err
}

// meterCapability tries the meter that is named, else the kernel's sensors.
func meterCapability(source, root string) profiler.Capability {
	c := profiler.Capability{Name: "power meter"}
	opened, err := power.Open(power.Source(cmp.Or(source, "hwmon")), root)
	if err != nil {
		c.Reason = err.Error()
		c.Remedy = "name a program that prints the machine's watts: tandem worker --meter command:PROGRAM (docs/profiling.md)"
		return c
	}
	defer opened.Close()
	c.Available, c.Detail = true, fmt.Sprintf("%s: %.1f W now", opened.Name(), opened.Watts())
	if source == "" {
		c.Detail += "; tandem worker --meter hwmon uses it"
	}
	return c
}
