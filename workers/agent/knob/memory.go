package knob

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/workers/agent/cgroup"
)

// memoryKnob bounds a command's memory by the best means there is: its control
// group (v2), a memory group of v1, or the data limit of each process.
type memoryKnob struct {
	// folder is this process's memory group of v1; empty without one.
	folder string
	number atomic.Int64
}

// memoryLimit is one means.
type memoryLimit interface {
	how() string
	// set bounds the memory of the command, and of its processes where it has
	// started.
	set(s *Subject, bytes int64) error
	// shortage is how many processes the kernel has ended at the limit so far, and
	// the most memory there was, in bytes; 0 where it does not tell.
	shortage(s *Subject) (ended, peak int64)
	unset(s *Subject)
}

func (k *memoryKnob) available() (string, error) {
	switch {
	case cgroup.CanEnable(cgroup.Folder(), "memory"):
		return groupLimit{}.how(), nil
	case k.folder != "" && unix.Access(k.folder, unix.W_OK) == nil:
		return (&oldGroupLimit{}).how(), nil
	default:
		return processLimit{}.how() + ", since this user may not make control groups with the memory controller", nil
	}
}

func (k *memoryKnob) set(s *Subject, value space.Value) (string, error) {
	gibibytes, isNumber := value.Number()
	if !isNumber || gibibytes <= 0 || gibibytes > 1<<20 {
		return "", fmt.Errorf("%v is no number of GiB", value)
	}
	bytes := int64(gibibytes * (1 << 30))
	if _, grouped := s.memory.(groupLimit); grouped && s.Command != nil && !s.Command.Grouped() {
		s.memory = nil // the kernel refused to start it there
	}
	if s.memory == nil {
		s.memory = k.choose(s)
	}
	if s.memory == nil {
		return "", nil // the limit of its processes, once there are any
	}
	if err := s.memory.set(s, bytes); err != nil {
		return "", err
	}
	return s.memory.how(), nil
}

func (k *memoryKnob) choose(s *Subject) memoryLimit {
	if (s.Command == nil || s.Command.Grouped()) && s.Group.Enable("memory") {
		return groupLimit{}
	}
	if s.Command != nil {
		return processLimit{}
	}
	// A process takes only what it asks for from now on into a group of v1.
	if group := k.oldGroup(); group != nil {
		return group
	}
	return nil
}

func (k *memoryKnob) oldGroup() memoryLimit {
	if k.folder == "" {
		return nil
	}
	cgroup.SweepVersion1(k.folder)
	group := filepath.Join(k.folder, fmt.Sprintf("%s%d-memory-%d", cgroup.Prefix, os.Getpid(), k.number.Add(1)))
	if os.Mkdir(group, 0o755) != nil {
		return nil
	}
	return &oldGroupLimit{group}
}

func (k *memoryKnob) unset(s *Subject) {
	if s.memory != nil {
		s.memory.unset(s)
		s.memory = nil
	}
}

func (k *memoryKnob) held(*Subject) bool { return true }

// groupLimit bounds the run's control group (v2).
type groupLimit struct{}

func (groupLimit) how() string { return "the limit of the control group (v2)" }

func (groupLimit) set(s *Subject, bytes int64) error {
	// The kernel would end the command rather than refuse.
	if used := memoryStat(s.Group.File("memory.stat"), "anon"); used > bytes {
		return tooMuchUsed(used)
	}
	return os.WriteFile(s.Group.File("memory.max"), []byte(strconv.FormatInt(bytes, 10)), 0)
}

func (groupLimit) shortage(s *Subject) (ended, peak int64) {
	return memoryStat(s.Group.File("memory.events"), "oom_kill"), wholeNumber(s.Group.File("memory.peak"))
}

func (groupLimit) unset(s *Subject) {
	_ = os.WriteFile(s.Group.File("memory.max"), []byte("max"), 0) // gone with its group, if that is gone
}

// oldGroupLimit bounds a memory group of v1, which is made for the run.
type oldGroupLimit struct{ folder string }

func (*oldGroupLimit) how() string { return "the limit of a memory control group (v1)" }

func (l *oldGroupLimit) set(s *Subject, bytes int64) error {
	if used := memoryStat(filepath.Join(l.folder, "memory.stat"), "total_rss"); used > bytes {
		return tooMuchUsed(used)
	}
	limit := filepath.Join(l.folder, "memory.limit_in_bytes")
	if err := os.WriteFile(limit, []byte(strconv.FormatInt(bytes, 10)), 0); err != nil {
		return fmt.Errorf("the kernel refuses it: %w", err)
	}
	return eachProcess(s, func(pid int) error {
		return os.WriteFile(filepath.Join(l.folder, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
	})
}

func (l *oldGroupLimit) shortage(*Subject) (ended, peak int64) {
	return memoryStat(filepath.Join(l.folder, "memory.oom_control"), "oom_kill"), wholeNumber(filepath.Join(l.folder, "memory.max_usage_in_bytes"))
}

// unset moves what still runs back to where it came from.
func (l *oldGroupLimit) unset(*Subject) {
	outside := filepath.Join(filepath.Dir(l.folder), "cgroup.procs")
	for deadline := time.Now().Add(cgroup.Patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for _, pid := range cgroup.Processes(l.folder) {
			_ = os.WriteFile(outside, []byte(strconv.Itoa(pid)), 0) // it may have ended
		}
		if os.Remove(l.folder) == nil || errors.Is(unix.Access(l.folder, unix.F_OK), unix.ENOENT) {
			return
		}
	}
}

// processLimit bounds the data of each process alone.
type processLimit struct{}

func (processLimit) how() string { return "the data limit of each process (RLIMIT_DATA)" }

func (processLimit) set(s *Subject, bytes int64) error {
	for _, pid := range s.processes() {
		if used := memoryStat(fmt.Sprintf("/proc/%d/status", pid), "VmData:"); used > bytes {
			return tooMuchUsed(used)
		}
	}
	return eachProcess(s, func(pid int) error { return limitData(pid, uint64(bytes)) })
}

// shortage knows of none: such a process is refused memory, and not ended.
func (processLimit) shortage(*Subject) (ended, peak int64) { return 0, 0 }

func (processLimit) unset(s *Subject) {
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_DATA, &own) == nil {
		_ = eachProcess(s, func(pid int) error { return limitData(pid, own.Cur) }) // they may have ended
	}
}

// limitData sets the limit that a process may move itself, up to the other one.
func limitData(pid int, bytes uint64) error {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &limit); err != nil {
		return err
	}
	limit.Cur = min(bytes, limit.Max)
	return unix.Prlimit(pid, unix.RLIMIT_DATA, &limit, nil)
}

func tooMuchUsed(bytes int64) error {
	return fmt.Errorf("the command has %.2f GiB already", float64(bytes)/(1<<30))
}

// eachProcess does something with each process of the command, those too that
// are started meanwhile. One that ends meanwhile is no fault.
func eachProcess(s *Subject, do func(pid int) error) error {
	done := map[int]bool{}
	for range pinRounds {
		fresh := 0
		for _, pid := range s.processes() {
			if done[pid] {
				continue
			}
			done[pid] = true
			fresh++
			if err := do(pid); err != nil && unix.Kill(pid, 0) != unix.ESRCH {
				return fmt.Errorf("the kernel refuses it: %w", err)
			}
		}
		if fresh == 0 {
			break
		}
	}
	return nil
}

// memoryStat is a number of a file of the kernel, in bytes; 0 if it is not there.
func memoryStat(path, name string) int64 {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != name {
			continue
		}
		number, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return 0
		}
		if len(fields) > 2 && fields[2] == "kB" {
			number <<= 10
		}
		return number
	}
	return 0
}

// wholeNumber is the number that is all of a file of the kernel; 0 if it is not
// there.
func wholeNumber(path string) int64 {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	number, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	if err != nil {
		return 0
	}
	return number
}
