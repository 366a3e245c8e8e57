package profilecmd

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/perf"
	"github.com/tandem-tune/tandem/profiler/proc"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/process"
)

// attached is a line that "tandem profile --attach" prints: first how much is counted,
// then a profile for each line that it reads.
type attached struct {
	// Level is how much of the process may be counted ([perf.Level]), and Missing why
	// it is not all.
	Level   perf.Level     `json:"level,omitempty"`
	Missing string         `json:"missing,omitempty"`
	Profile *trial.Profile `json:"profile,omitempty"`
}

// attach profiles a process that runs already. Each line of commands ends an epoch, and
// is answered by one line with its profile, as a worker reports it.
func (f *profileFlags) attach(ctx context.Context, commands io.Reader, out io.Writer) error {
	if f.interval < shortestInterval {
		return term.Misuse("--interval must be at least %v, or the looking would be what is measured", shortestInterval)
	}
	counters := perf.Attach(f.pid, perf.Events())
	said := attached{Level: counters.Level()}
	if missing := counters.Missing(); said.Level == perf.HostLevel && len(missing) > 0 {
		said.Missing = missing[0].Reason
	}
	recorder := profiler.Record(counters, profiler.RecorderOptions{Leader: f.pid, Interval: f.interval})
	defer recorder.Stop()
	recorder.Lap() // what it did before is no epoch's
	lines, answers := make(chan struct{}), json.NewEncoder(out)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(commands); scanner.Scan(); {
			lines <- struct{}{}
		}
	}()
	if err := answers.Encode(said); err != nil {
		return err
	}
	alive := time.NewTicker(time.Second)
	defer alive.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-alive.C:
			if len(proc.Threads(f.pid)) == 0 {
				return nil // it has ended
			}
		case _, more := <-lines:
			if !more {
				return nil
			}
			if err := answers.Encode(attached{Profile: process.CompactProfile(recorder.Lap())}); err != nil {
				return err
			}
		}
	}
}
