// Package profilecmd is "tandem profile": a command under the profiler that workers
// use, and the choice of its events.
package profilecmd

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/perf"
	"github.com/tandem-tune/tandem/profiler/proc"
	"github.com/tandem-tune/tandem/trial"
)

// profileFlags are the flags of "tandem profile".
type profileFlags struct {
	interval     time.Duration
	events       EventList
	json         bool
	wattsPerCore float64
	pid          int
}

// profiled is what "tandem profile" prints.
type profiled struct {
	Command         []string         `json:"command"`
	ExitCode        int              `json:"exit_code"`
	IntervalSeconds float64          `json:"interval_seconds"`
	Profile         profiler.Profile `json:"profile"`
	Energy          trial.Energy     `json:"energy"`
}

// Command is "tandem profile".
func Command() *cobra.Command {
	var flags profileFlags
	command := &cobra.Command{
		Use:   "profile [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run any command and say what it did to the machine",
		Long: `Run a command under the profiler that workers use, without a server: events of
the processor and the kernel, counted from the command's first instruction in
it and all it starts; metrics of the host; and energy. Of a trial, its page has this
for each epoch.

The command keeps the terminal and its exit code. The report goes to standard
error; with --json it is the only thing on standard output, and the command's
output goes to standard error.

With --attach a process is profiled that runs already, with the threads it has and
all it starts from now on. Each line on standard input ends an epoch, and is
answered by one line of JSON with its profile. The Python client does so for trials
in the user's own process.`,
		Example: `  tandem profile -- python3 train.py
  tandem profile --events software,instructions,'L1-dcache-*' -- ./a.out
  tandem profile --json -- python3 train.py | jq '.profile.events[] | {name, per_second}'
  while sleep 10; do echo lap; done | tandem profile --attach 4242`,
		Args: func(command *cobra.Command, args []string) error {
			attach := command.Flags().Changed("attach")
			switch {
			case attach && len(args) > 0:
				return term.Misuse("give a command to run, or --attach a process that runs already, not both")
			case attach && len(proc.Threads(flags.pid)) == 0:
				return term.Misuse("--attach %d: there is no such process", flags.pid)
			case !attach && len(args) == 0:
				return term.Misuse("give a command to run: tandem profile -- COMMAND [ARGUMENT...]")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			if flags.pid != 0 {
				return flags.attach(command.Context(), command.InOrStdin(), command.OutOrStdout())
			}
			return flags.run(args, command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	command.Flags().SetInterspersed(false)
	command.Flags().DurationVar(&flags.interval, "interval", profiler.DefaultInterval, "time between samples")
	AddEventsFlag(command, &flags.events)
	command.Flags().BoolVar(&flags.json, "json", false, "print JSON for scripts")
	command.Flags().IntVar(&flags.pid, "attach", 0, "`process` that runs already, by its number")
	command.Flags().Float64Var(&flags.wattsPerCore, "watts-per-core", 0, "power of a busy core, for energy estimates where there is no meter")
	return command
}

const shortestInterval = 10 * time.Millisecond

func (f *profileFlags) run(args []string, stdout, stderr io.Writer) error {
	if f.interval < shortestInterval {
		return term.Misuse("--interval must be at least %v, or the looking would be what is measured", shortestInterval)
	}
	passed := stdout
	if f.json {
		passed = stderr
	}
	result, err := f.profile(args, f.events.chosen(), passed, stderr)
	if err != nil {
		return err
	}
	if f.json {
		err = term.WriteJSON(stdout, result)
	} else {
		err = printProfiled(stderr, result)
	}
	if err == nil && result.ExitCode != 0 {
		return term.Ended{Code: result.ExitCode}
	}
	return err
}

// profile runs the command to its end.
func (f *profileFlags) profile(args []string, wanted []perf.Event, stdout, stderr io.Writer) (profiled, error) {
	command := exec.Command(args[0], args[1:]...)
	command.Stdin, command.Stderr = os.Stdin, stderr
	command.Stdout = stdout
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	launched, err := profiler.Launch(command, wanted, f.interval)
	if err != nil {
		return profiled{}, err
	}
	meter := newEnergyMeter(f.wattsPerCore, launched.Recorder)
	defer meter.close()
	result := profiled{Command: args, IntervalSeconds: f.interval.Seconds()}
	ended := make(chan error, 1)
	go func() { ended <- launched.Wait() }()
	waited := passSignals(command.Process, signals, ended)
	if command.ProcessState == nil {
		return result, waited
	}
	result.ExitCode = codeOf(command.ProcessState)
	result.Profile, result.Energy = launched.Recorder.Whole(), meter.energy()
	return result, nil
}

// passSignals hands signals on to the command until it has ended.
func passSignals(process *os.Process, signals <-chan os.Signal, ended <-chan error) error {
	for {
		select {
		case err := <-ended:
			return err
		case one := <-signals:
			fromTerminal := one == os.Interrupt || one == syscall.SIGQUIT
			if !fromTerminal || !inForeground() {
				_ = process.Signal(one) // it may have ended by itself
			}
		}
	}
}

// inForeground reports whether Ctrl-C in the terminal has already reached the
// command, which is in the same process group.
func inForeground() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// codeOf is the exit code as shells give it.
func codeOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// energyMeter measures energy the way a worker does.
type energyMeter struct {
	meter  *profiler.Meter
	window *profiler.Window
	ticker *time.Ticker
}

func newEnergyMeter(wattsPerCore float64, recorder *profiler.Recorder) *energyMeter {
	m := &energyMeter{meter: profiler.OpenMeter(profiler.MeterOptions{WattsPerCore: wattsPerCore, Cores: profiler.ThisMachine().Cores})}
	opened := false
	m.window = m.meter.Open(func() float64 {
		if !opened { // what it has used since its start belongs to it
			opened = true
			return 0
		}
		return recorder.CPUSeconds()
	})
	m.ticker = time.NewTicker(time.Minute)
	go func(meter *profiler.Meter, ticks <-chan time.Time) {
		for range ticks {
			meter.Sample()
		}
	}(m.meter, m.ticker.C)
	return m
}

// energy is what was used since the start.
func (m *energyMeter) energy() trial.Energy {
	energy := m.window.Lap()
	return trial.Energy{Joules: trial.Float(energy.Joules), Method: energy.Method}
}

func (m *energyMeter) close() {
	m.ticker.Stop()
	m.window.Close()
	m.meter.Close()
}
