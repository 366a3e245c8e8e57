// Package sharing measures what decides about several trainings on one GPU: the
// prediction of utilization and memory, that of interference, and packing.
package sharing

import (
	"context"
	"fmt"
)

// Options are what the commands of bench/pool are told.
type Options struct {
	// Data is the folder with the recorded traces, Profiles the file with what
	// Collect recorded.
	Data, Profiles string
	// Collect is the file to record into, Python an interpreter with PyTorch, and
	// Minutes how long that may take.
	Collect, Python string
	Minutes         float64
	// Trace is what the names of the jobs that colocate replays contain; all where it is
	// empty.
	Trace string
	// Runs is how often to repeat, with other seeds.
	Runs int
}

// Measure runs a command: utilization, learning, interference or colocate.
func Measure(command string, o Options) error {
	switch {
	case o.Runs < 1:
		return fmt.Errorf("-runs %d: at least one is needed", o.Runs)
	case command == "utilization" && o.Collect != "":
		return collect(context.Background(), o.Python, o.Minutes, o.Collect)
	case command == "utilization":
		return utilizations(o.Profiles, o.Runs)
	case command == "learning":
		return learning(o.Profiles, o.Runs)
	case command == "interference":
		return interferences(o.Profiles, o.Data, o.Runs)
	case command == "colocate":
		return colocate(o)
	}
	return fmt.Errorf("%q is none of utilization, learning, interference and colocate", command)
}
