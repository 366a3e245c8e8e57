package system

import (
	"maps"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/study/space"
)

// Configuration is one choice of knobs, by name.
type Configuration map[string]space.Value

// Key is the configuration in one line, such as "cores=2 cpu_threads=1": equal
// exactly for equal configurations.
func (c Configuration) Key() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, name+"="+c[name].String())
	}
	return strings.Join(parts, " ")
}

// Equal reports whether both have the same knobs with the same values.
func (c Configuration) Equal(other Configuration) bool { return maps.Equal(c, other) }

// With returns the configuration with the other's values in place of its own.
func (c Configuration) With(other Configuration) Configuration {
	both := make(Configuration, len(c)+len(other))
	maps.Copy(both, c)
	maps.Copy(both, other)
	return both
}

// Demand is how many cores a training keeps busy with the configuration: as many as
// its threads, or its loader's processes where they are more, but no more than its cores;
// every core of the machine where it has neither threads nor cores.
func (c Configuration) Demand(machine int) int {
	demand := machine
	if threads, ok := c[CPUThreads].Number(); ok {
		demand = min(machine, int(max(threads, number(c, LoaderWorkers))))
	}
	if cores, ok := c[Cores].Number(); ok {
		demand = min(demand, int(cores))
	}
	return max(1, demand)
}
