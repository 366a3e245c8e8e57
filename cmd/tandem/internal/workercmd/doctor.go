package workercmd

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/edgecmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu/emulator"
	"github.com/tandem-tune/tandem/inference_emu/onnxruntime"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/workers/agent/knob"
	"github.com/tandem-tune/tandem/workers/agent/probe"
	"github.com/tandem-tune/tandem/workers/sandbox"
)

// DoctorCommand is "tandem doctor".
func DoctorCommand() *cobra.Command {
	var asJSON, confidential bool
	var meter string
	var calibrate time.Duration
	var options profiler.DetectOptions
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can measure and control, and why not",
		Long: `Say what this machine can measure and control: performance counters, energy
meters (RAPL, NVML, --meter), cgroups, CPU frequency, what training and inference need,
which knobs a study can tune here, what the probing tasks took, and what holds
training scripts. What is missing comes with its reason and
the remedy. Nothing of it is required: a study runs without, and then says what
is an estimate.

With --confidential it says only what 'tandem worker --confidential' needs here, and ends
with 1 if something of that is missing.`,
		Example: `  tandem doctor
  tandem doctor --confidential
  tandem doctor --json | jq '.[] | select(.available | not)'
  tandem doctor --meter command:./plug --calibrate-power 1h`,
		Args: term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			if calibrate != 0 {
				return calibratePower(command.Context(), meter, calibrate, command.OutOrStdout())
			}
			if confidential {
				return printConfidential(command, asJSON)
			}
			found := append(append(profiler.Detect(command.Context(), options), knob.Capabilities("/")...), probe.Capability("/"), knob.Sprinting("/"), meterCapability(meter, "/"))
			found = append(found, emulator.Capabilities(command.Context(), onnxruntime.Options{Python: options.Python})...)
			found = append(append(found, sandbox.Detect(command.Context())...), confidentialCapability("/"))
			return term.PrintAnswer(command.OutOrStdout(), asJSON, found, printCapabilities)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON for scripts")
	command.Flags().BoolVar(&confidential, "confidential", false, "look only at what a worker in a confidential machine needs (docs/confidential.md)")
	edgecmd.AddMeterFlag(command, &meter)
	command.Flags().DurationVar(&calibrate, "calibrate-power", 0, "load this machine for so long, 10m to 24h, and fit the estimate of its power to --meter, for its workers")
	command.Flags().StringVar(&options.Python, "python", "python3", "the interpreter your scripts run with")
	command.Flags().StringVar(&options.DataDirectory, "data", ".", "folder whose free space is shown")
	return command
}

func printCapabilities(out io.Writer, found []profiler.Capability) error {
	said := "Everything Tandem can use is there."
	if missing := missingOf(found); missing > 0 {
		said = fmt.Sprintf("%d of %d are missing. Studies run without them; what depends on them is left out or labelled as an estimate.", missing, len(found))
	}
	if err := printEach(out, found); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "\n"+said)
	return err
}

// missingOf is how many are not available.
func missingOf(found []profiler.Capability) (missing int) {
	for _, one := range found {
		if !one.Available {
			missing++
		}
	}
	return missing
}

func printEach(out io.Writer, found []profiler.Capability) error {
	for _, c := range found {
		mark, detail := "yes", c.Detail
		if !c.Available {
			mark, detail = "no ", c.Reason
		}
		fmt.Fprintf(out, "%s  %-22s %s\n", mark, c.Name, format.Plain(detail))
		if c.Available && c.Reason != "" {
			fmt.Fprintf(out, "%28s%s\n", "", format.Plain(c.Reason))
		}
		if c.Remedy != "" {
			fmt.Fprintf(out, "%28s-> %s\n", "", format.Plain(c.Remedy))
		}
	}
	return nil
}
