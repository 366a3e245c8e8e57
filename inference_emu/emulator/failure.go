package emulator

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	"github.com/tandem-tune/tandem/internal/problem"
)

// whyEnded is the reason for which a job is not done: the caller's wish, a limit,
// what the process said, or how it ended.
func whyEnded(caller, bounded context.Context, ended *ending, answered error, job Job) error {
	switch {
	case caller.Err() != nil:
		return caller.Err()
	case bounded.Err() != nil:
		return problem.New(problem.Exhausted, "the emulation took longer than %v and was ended: a model that does not come to an end, or one that needs more time (--timeout)", job.Limits.Wall)
	case answered != nil:
		return answered
	case outOfMemory(ended.printed):
		return problem.New(problem.Exhausted, "the model needs more memory than the %d MiB it may have: allow more with --memory, or a smaller batch", job.Limits.MemoryBytes>>20)
	}
	signal, killed := ended.signal()
	switch {
	case !ended.ready:
		return problem.New(problem.NotFound, "ONNX Runtime at %s cannot be used: loading it ended the process (%v)%s", job.Library, ended.err, lastLine(ended.printed))
	case signal == syscall.SIGKILL:
		return problem.New(problem.Exhausted, "the kernel killed the emulation, most likely because the machine has no memory left: allow less with --memory, or a smaller batch")
	case killed:
		return problem.New(problem.Invalid, "the model made ONNX Runtime crash (%v)%s. Nothing else was affected", signal, lastLine(ended.printed))
	}
	return problem.New(problem.Internal, "the emulation process ended early (%v)%s", ended.err, lastLine(ended.printed))
}

// ending is how a process ended, what it printed at the end, and whether it had
// got as far as the model.
type ending struct {
	err     error
	printed string
	ready   bool
}

func (e *ending) signal() (syscall.Signal, bool) {
	var exit *exec.ExitError
	if !errors.As(e.err, &exit) {
		return 0, false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return status.Signal(), ok && status.Signaled()
}

// lastLine is the first line of a Go crash, else the last one that was printed.
func lastLine(printed string) string {
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	shown := lines[len(lines)-1]
	for _, line := range lines {
		if strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "terminate called") {
			shown = line
			break
		}
	}
	const longest = 300
	if shown = shown[:min(len(shown), longest)]; shown == "" {
		return ""
	}
	return fmt.Sprintf(": %q", shown)
}
