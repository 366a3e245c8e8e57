package system

import (
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/study/space"
)

// Objective is what the best configuration has least of.
type Objective string

// The objectives.
const (
	// Seconds: the time an epoch keeps the machine. A training that takes half
	// of the cores lets another one run beside it, so its seconds count half,
	// unless nothing else is waiting for those cores.
	Seconds Objective = "seconds"
	// Joules: the energy of an epoch.
	Joules Objective = "joules"
	// Cost: the rent of what an epoch occupies, seconds times the share of the
	// cores, whether or not somebody waits for the rest.
	Cost Objective = "cost"
)

// MaxConfigurations bounds the grid of a study's knobs.
const MaxConfigurations = 256

// Tuned is a knob with the values to choose from.
type Tuned struct {
	Name string `json:"name"`
	// Values are tried; the first is the default, except for threads and cores,
	// whose default is the most the machine has. Empty ("auto", threads and
	// cores only): powers of two up to the machine's cores.
	Values []space.Value `json:"values,omitempty"`
}

// Settings are the knobs of a study that are tuned while its trials run.
type Settings struct {
	Objective Objective `json:"objective"`
	Tuned     []Tuned   `json:"tuned"`
}

// counted reports whether the knob is a number of cores or threads.
func counted(name string) bool { return name == CPUThreads || name == Cores }

// on returns the values a machine with that many cores can have.
func (t Tuned) on(cores int) []space.Value {
	if !counted(t.Name) {
		return t.Values
	}
	if len(t.Values) == 0 {
		return UpTo(cores)
	}
	var values []space.Value
	for _, value := range t.Values {
		if n, ok := value.Number(); ok && int(n) <= max(1, cores) {
			values = append(values, value)
		}
	}
	if len(values) == 0 { // a smaller machine than the user thought of
		values = []space.Value{space.Int(int64(max(1, cores)))}
	}
	return values
}

// UpTo are the powers of two up to that many cores, and the cores.
func UpTo(cores int) []space.Value {
	var values []space.Value
	for n := 1; n < cores; n *= 2 {
		values = append(values, space.Int(int64(n)))
	}
	return append(values, space.Int(int64(max(1, cores))))
}

// Grid returns every configuration of the tuned knobs on a machine with that
// many cores, at most MaxConfigurations of them, those with more threads than
// cores left out. The constants are in each of them.
func (s Settings) Grid(constants Configuration, cores int) []Configuration {
	grid := []Configuration{maps.Clone(constants)}
	if grid[0] == nil {
		grid[0] = Configuration{}
	}
	for _, knob := range s.Tuned {
		var wider []Configuration
		for _, partial := range grid {
			for _, value := range knob.on(cores) {
				wider = append(wider, partial.With(Configuration{knob.Name: value}))
			}
		}
		grid = wider[:min(len(wider), MaxConfigurations)]
	}
	sane := slices.DeleteFunc(slices.Clone(grid), func(c Configuration) bool {
		threads, tuned := c[CPUThreads].Number()
		bound, bounded := c[Cores].Number()
		return tuned && bounded && threads > bound
	})
	if len(sane) == 0 {
		return grid
	}
	return sane
}

// Code is the part of a configuration that is tuned and that a process has to load code
// for.
func (s Settings) Code(of Configuration) Configuration {
	part := Configuration{}
	for _, tuned := range s.Tuned {
		if knob, known := Find(tuned.Name); known && knob.Loads {
			part[tuned.Name] = of[tuned.Name]
		}
	}
	return part
}

// Default is the configuration of the grid that a training would get if nothing
// were tuned: the most threads and cores there are, and the first value of every
// other knob.
func (s Settings) Default(constants Configuration, cores int) Configuration {
	left := s.Grid(constants, cores)
	for _, knob := range s.Tuned {
		best := left[0][knob.Name]
		if counted(knob.Name) {
			for _, one := range left {
				if most, _ := best.Number(); number(one, knob.Name) > most {
					best = one[knob.Name]
				}
			}
		}
		left = slices.DeleteFunc(slices.Clone(left), func(c Configuration) bool { return c[knob.Name] != best })
	}
	return left[0]
}

func number(c Configuration, name string) float64 {
	n, _ := c[name].Number()
	return n
}
