package enclave

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/study/definition"
)

// Quiet is how a script's lease ended, without a word of a confidential one.
func Quiet(lease protocol.Lease, end protocol.FinishRequest) protocol.FinishRequest {
	if lease.Confidential == nil {
		return end
	}
	said := map[protocol.Outcome]string{protocol.BudgetReached: "", protocol.CommandFailed: "the command failed: its output stays on the machine (confidential.log)"}
	reason, known := said[end.Outcome]
	if !known {
		reason = "the command ended early"
	}
	if strings.Contains(end.Reason, "metric_not_declared") {
		reason = "metric_not_declared: the command failed after a report with a metric that is not in confidential.metrics"
	}
	return protocol.FinishRequest{Outcome: end.Outcome, Reason: reason}
}

// hushed is an error whose text is another.
type hushed struct {
	error
	text string
}

func (h hushed) Error() string { return h.text }
func (h hushed) Unwrap() error { return h.error }

// named are names of files: what is quoted, and paths in memory.
var named = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|/dev/shm/[^:]*`)

// Hushed is an error about a lease's data and checkpoint without the names of files there.
func Hushed(lease protocol.Lease, err error) error {
	if lease.Confidential == nil || err == nil {
		return err
	}
	return hushed{err, named.ReplaceAllString(err.Error(), "a file")}
}

// Tail is the end of a failed script's output, if its study keeps that: only the study's
// recipients can read it.
func Tail(lease protocol.Lease, outcome protocol.Outcome, lines []string) (string, error) {
	if lease.Confidential == nil || lease.Confidential.Log != definition.LogTail || outcome != protocol.CommandFailed || len(lines) == 0 {
		return "", nil
	}
	return sealed.Armour(strings.Join(lines, "\n")+"\n", lease.Recipients)
}

// Scratch is where such a worker keeps its files unless it is told another folder.
func Scratch() string { return fmt.Sprintf("/dev/shm/tandem-confidential-%d", os.Getuid()) }

// The file systems that are in memory.
const tmpfs, ramfs = 0x01021994, 0x858458f6

// Harden refuses a machine on whose disks something of this process could come to lie: the
// folder must be in memory, and there must be no swap. Then there are no core dumps.
func Harden(root, scratch string) error {
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return err
	}
	if err := errors.Join(InMemory(scratch), Unswapped(root)); err != nil {
		return err
	}
	// Where a program takes core dumps, a limit of 0 holds nothing back, but 1 does.
	return syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{Cur: 1, Max: 1})
}

// InMemory refuses a folder that is not in memory.
func InMemory(scratch string) error {
	var about syscall.Statfs_t
	if err := syscall.Statfs(scratch, &about); err != nil {
		return fmt.Errorf("--scratch %s: %w", scratch, err)
	}
	if kind := uint32(about.Type); kind != tmpfs && kind != ramfs { //nolint:gosec // magic numbers have 32 bits
		return fmt.Errorf("--scratch %s is on a disk, which the host reads: leave it out, or name a folder in memory", scratch)
	}
	return nil
}

// Unswapped refuses a machine whose memory is swapped to a disk.
func Unswapped(root string) error {
	swaps, err := os.ReadFile(filepath.Join(root, "proc/swaps"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, line := range strings.Split(string(swaps), "\n")[1:] {
		if line != "" && !strings.HasPrefix(line, "/dev/zram") {
			return fmt.Errorf("memory is swapped to %s, which the host reads: swapoff -a", strings.Fields(line)[0])
		}
	}
	return nil
}
