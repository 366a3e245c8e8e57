package poolcmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/demand"
)

// autoscaleFlags say what is done with machines when the advice changes.
type autoscaleFlags struct {
	wake, sleep    string
	apply          bool
	every, timeout time.Duration
	pace           demand.Pace
}

func autoscaleCommand(server *term.Connection) *cobra.Command {
	var flags autoscaleFlags
	command := &cobra.Command{
		Use:   "autoscale",
		Short: "Run your own commands that put machines to sleep and wake them, as the server drains workers",
		Long: `Ask for advice ("tandem pool advice") again and again, and run a command of yours
for each machine that may sleep or is to be woken: an argument vector, split at
spaces, without a shell. {name} and {id} in it stand for the worker's; it has
TANDEM_WORKER, TANDEM_WORKER_ID, TANDEM_POOL_WANTED and TANDEM_POOL_AWAKE in its
environment. For GPUs that no known worker has, --wake runs once with {name} and
{id} empty and TANDEM_POOL_MISSING set to how many.

Workers are drained, and given trials again, by the server itself ("tandem serve
--autoscale on"). A machine may sleep when the server has drained its worker, its
trials have ended, and that was so --steady times in a row; it is woken at once
when it is wanted, and then left alone for --pause. Without --apply nothing is
run: it prints what it would do. A command that fails is told, and tried again
after the pause.`,
		Example: `  tandem pool autoscale --wake "wakeonlan {name}" --sleep "ssh {name} systemctl suspend"
  tandem pool autoscale --apply --wake "/usr/local/bin/start-gpu {name}" --sleep "/usr/local/bin/stop-gpu {name}"`,
		Args: term.Arguments(0, "no arguments; the commands are --wake and --sleep"),
		RunE: func(command *cobra.Command, _ []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			client, err := server.Open()
			if err != nil {
				return err
			}
			return flags.run(command.Context(), client, command.OutOrStdout())
		},
	}
	own := command.Flags()
	own.StringVar(&flags.wake, "wake", "", "command that wakes a worker, or starts machines")
	own.StringVar(&flags.sleep, "sleep", "", "command that puts a machine to sleep whose worker was drained and runs nothing")
	own.BoolVar(&flags.apply, "apply", false, "run the commands; without it, only print them")
	own.DurationVar(&flags.every, "every", time.Minute, "how often to ask for advice: 10s at least")
	own.DurationVar(&flags.timeout, "timeout", 5*time.Minute, "how long a command may take")
	own.IntVar(&flags.pace.Steady, "steady", 5, "how many times in a row a machine must be free to sleep")
	own.DurationVar(&flags.pace.Pause, "pause", 15*time.Minute, "how long a machine is left alone that was woken")
	return command
}

// check refuses flags that cannot be meant.
func (f *autoscaleFlags) check() error {
	if f.wake == "" && f.sleep == "" {
		return term.Misuse("--wake and --sleep are both missing: name a command that wakes machines, or one that puts them to sleep")
	}
	if f.every < 10*time.Second || f.timeout <= 0 || f.pace.Steady < 1 || f.pace.Pause < 0 {
		return term.Misuse("--every (%v) must be at least 10s, --timeout (%v) above 0, --steady (%d) at least 1, --pause (%v) not negative", f.every, f.timeout, f.pace.Steady, f.pace.Pause)
	}
	return nil
}

// run asks and acts until the context ends. A server that does not answer is
// asked again.
func (f *autoscaleFlags) run(ctx context.Context, client *rest.Client, out io.Writer) error {
	if !f.apply {
		fmt.Fprintln(out, "Nothing is run: this only prints what it would do. With --apply it does it.")
	}
	if pool, err := client.Pool(ctx); err != nil {
		return err
	} else if pool.Autoscale != nil && pool.Autoscale.Mode != protocol.AutoscaleOn {
		fmt.Fprintf(out, "The server drains no workers by itself (--autoscale %s), so no machine may sleep: start it with --autoscale on.\n", pool.Autoscale.Mode)
	}
	ticker := time.NewTicker(f.every)
	defer ticker.Stop()
	for {
		advice, err := client.PoolAdvice(ctx, protocol.PoolAdviceQuery{})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case term.ExitCode(ctx, err) == term.ExitUnreachable:
			fmt.Fprintf(out, "%s  no advice: %v\n", time.Now().Format(time.TimeOnly), err)
		case err != nil:
			return err
		default:
			f.act(ctx, advice, out)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// act does what is due by the advice.
func (f *autoscaleFlags) act(ctx context.Context, advice protocol.PoolAdvice, out io.Writer) {
	steps := make([]demand.Step, len(advice.Workers))
	for i, one := range advice.Workers {
		action := demand.Action(one.Action)
		if action == demand.Drain || action == demand.Wake && !one.Silent {
			action = demand.Keep // the server does that, and no machine has to be touched
		}
		steps[i] = demand.Step{
			Host:   demand.Host{ID: one.ID, Name: one.Name, Capacity: one.Capacity, Trials: one.Trials},
			Action: action, Reason: one.Reason,
		}
	}
	due, more := f.pace.Due(time.Now(), steps, advice.Missing)
	for _, one := range due {
		command := f.wake
		if one.Action == demand.Sleep {
			command = f.sleep
		}
		f.do(ctx, advice, one, command, out)
	}
	if more {
		step := demand.Step{Action: demand.Wake, Reason: fmt.Sprintf("%g %s are wanted that no known worker has", advice.Missing, advice.Unit)}
		f.do(ctx, advice, step, f.wake, out)
	}
}

// do runs a command for one worker, and says so.
func (f *autoscaleFlags) do(ctx context.Context, advice protocol.PoolAdvice, step demand.Step, command string, out io.Writer) {
	name := step.Host.Name
	if name == "" {
		name = "more machines"
	}
	fmt.Fprintf(out, "%s  %s %s: %s\n", time.Now().Format(time.TimeOnly), step.Action, format.Plain(name), format.Plain(step.Reason))
	words := argv(command, step.Host)
	switch {
	case len(words) == 0:
		fmt.Fprintf(out, "          no command is given for that (--%s)\n", step.Action)
		return
	case !f.apply:
		fmt.Fprintf(out, "          would run: %s\n", format.Plain(strings.Join(words, " ")))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	process := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // it is the operator's own command
	process.Env = append(os.Environ(),
		"TANDEM_WORKER="+step.Host.Name, "TANDEM_WORKER_ID="+step.Host.ID,
		fmt.Sprintf("TANDEM_POOL_WANTED=%g", advice.Wanted), fmt.Sprintf("TANDEM_POOL_AWAKE=%g", advice.Awake), fmt.Sprintf("TANDEM_POOL_MISSING=%g", advice.Missing))
	process.WaitDelay = time.Second
	said, err := process.CombinedOutput()
	for line := range strings.Lines(string(said)) {
		fmt.Fprintf(out, "          %s\n", format.Plain(strings.TrimSpace(line)))
	}
	if err != nil {
		fmt.Fprintf(out, "          %s failed: %v\n", format.Plain(words[0]), err)
	}
}

// argv is the command for a worker. A name with spaces stays one argument, and a
// worker, who chooses its name, cannot make a flag of it: a leading dash is left
// out.
func argv(command string, host demand.Host) []string {
	fill := strings.NewReplacer("{name}", strings.TrimLeft(host.Name, "-"), "{id}", host.ID)
	words := strings.Fields(command)
	for i, word := range words {
		words[i] = fill.Replace(word)
	}
	return words
}
