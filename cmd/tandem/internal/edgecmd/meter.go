package edgecmd

import (
	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/power"
)

const meterHelp = "power meter of the whole machine: hwmon, hwmon:NAME, command:PROGRAM, which prints watts, a number a line, or http://HOST/PATH#FIELD of a smart plug or controller (docs/profiling.md)"

// AddMeterFlag adds the flag that names a power meter.
func AddMeterFlag(command *cobra.Command, source *string) {
	command.Flags().StringVar(source, "meter", "", meterHelp)
}

// OpenMeter opens the meter that the flag names; nil where it names none. Done ends it.
func OpenMeter(source string) (meter profiler.External, done func(), err error) {
	if source == "" {
		return nil, func() {}, nil
	}
	opened, err := power.Open(power.Source(source), "/")
	if err != nil {
		return nil, nil, term.Misuse("--meter: %w", err)
	}
	return opened, opened.Close, nil
}
