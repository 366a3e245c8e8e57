package profiler

import (
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"github.com/tandem-tune/tandem/profiler/perf"
)

// Launched is a command that runs under a recorder.
type Launched struct {
	// Recorder records the command; it has stopped when Wait returns.
	Recorder *Recorder
	ended    chan error
}

// Launch starts the command and counts the events in it and in all it starts,
// looking at it once an interval (0: [DefaultInterval]).
func Launch(command *exec.Cmd, wanted []perf.Event, interval time.Duration) (*Launched, error) {
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
		l.Recorder = Record(counters, RecorderOptions{Leader: command.Process.Pid, Interval: interval, Environment: command.Environ()})
		started <- nil
		AwaitEnd(command.Process.Pid)
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

// Whole returns what happened since the start.
func (r *Recorder) Whole() Profile {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.sample(true)
	return r.whole.profile(r.events, r.counters.Level(), r.absent())
}
