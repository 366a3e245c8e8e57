// Package launched runs a command under the profiler that workers use.
package launched

import (
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/perf"
)

// Launched is a command that runs under a recorder.
type Launched struct {
	// Recorder records the command; it has stopped when Wait returns.
	Recorder *profiler.Recorder
	ended    chan error
}

// Command starts the command and counts the events in it and in all it starts,
// looking at it once an interval (0: [profiler.DefaultInterval]).
func Command(command *exec.Cmd, wanted []perf.Event, interval time.Duration) (*Launched, error) {
	l := &Launched{ended: make(chan error, 1)}
	started := make(chan error, 1)
	go func() {
		// Never unlocked: what is started from this thread is counted too.
		runtime.LockOSThread()
		counters := perf.OpenCounters(wanted)
		if err := command.Start(); err != nil {
			counters.Close()
			started <- err
			return
		}
		l.Recorder = profiler.Record(counters, profiler.RecorderOptions{Leader: command.Process.Pid, Interval: interval, Environment: command.Environ()})
		started <- nil
		profiler.AwaitEnd(command.Process.Pid)
		l.Recorder.Stop()
		l.ended <- command.Wait()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start the command: %w", err)
	}
	return l, nil
}

// Wait waits for the command, not for what it leaves behind. The error is that
// of [exec.Cmd.Wait].
func (l *Launched) Wait() error { return <-l.ended }
