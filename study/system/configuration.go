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

// Demand is how many cores a training keeps busy with the configuration: its
// cores, or its threads where they are fewer; every core of the machine where it
// has neither.
func (c Configuration) Demand(machine int) int {
	demand := machine
	for _, name := range []string{CPUThreads, Cores} {
		if n, ok := c[name].Number(); ok {
			demand = min(demand, int(n))
		}
	}
	return max(1, demand)
}
