// Package profilecmd is "tandem profile": the profiler that workers use, for a process of
// the user's own.
package profilecmd

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/proc"
)

// profileFlags are the flags of "tandem profile".
type profileFlags struct {
	interval time.Duration
	pid      int
}

// Command is "tandem profile".
func Command() *cobra.Command {
	var flags profileFlags
	command := &cobra.Command{
		Use:   "profile --attach PROCESS",
		Short: "Say what a process does to the machine, epoch by epoch",
		Long: `Profile a process that runs already, as workers profile trials: events of the
processor and the kernel in the threads it has and all it starts from now on, and
metrics of the host. Each line on standard input ends an epoch, and is answered by
one line of JSON with its profile. The Python client does so for trials in the
user's own process.`,
		Example: `  while sleep 10; do echo lap; done | tandem profile --attach 4242`,
		Args:    term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			if len(proc.Threads(flags.pid)) == 0 {
				return term.Misuse("--attach %d: there is no such process", flags.pid)
			}
			return flags.attach(command.Context(), command.InOrStdin(), command.OutOrStdout())
		},
	}
	command.Flags().DurationVar(&flags.interval, "interval", profiler.DefaultInterval, "time between samples")
	command.Flags().IntVar(&flags.pid, "attach", 0, "`process` that runs already, by its number")
	_ = command.MarkFlagRequired("attach")
	return command
}

const shortestInterval = 10 * time.Millisecond
