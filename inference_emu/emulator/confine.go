package emulator

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/landlock-lsm/go-landlock/landlock"
	landlockcalls "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/workers/sandbox/filter"
)

// startBytes is what the process may take before the model's limit is set: this
// program's own heap, the library and its threads.
const startBytes = 1 << 30

// maxOpenFiles is how many descriptors the process may have: its own and the
// runtime's.
const maxOpenFiles = 64

// limit sets what needs nothing of the model and the library to be known.
func limit(o order) ([]Layer, error) {
	limits := []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_FSIZE, 0},
		{unix.RLIMIT_NOFILE, maxOpenFiles},
		{unix.RLIMIT_CPU, uint64(o.Seconds) + 1},
		{unix.RLIMIT_DATA, uint64(startBytes + o.Limits.ModelBytes + o.Limits.MemoryBytes)},
	}
	for _, one := range limits {
		if err := setLimit(one.resource, one.value); err != nil {
			return nil, fmt.Errorf("limit the process: %w", err)
		}
	}
	if err := landlockcalls.AllThreadsPrctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("give up new privileges: %w", err)
	}
	// Nobody may look into it or change it, not even a process of the same user.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("forbid tracing: %w", err)
	}
	return []Layer{
		{Name: "limits", Active: true, Detail: fmt.Sprintf("%d s of CPU time, no files written, no core dumps, %d descriptors", int(o.Seconds)+1, maxOpenFiles)},
		{Name: "no new privileges", Active: true, Detail: "no program can give it more rights"},
	}, nil
}

// setLimit lowers a limit for good.
func setLimit(resource int, value uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return err
	}
	value = min(value, now.Max)
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value})
}

// lockIn takes everything from the process that looking at a model does not need,
// and bounds its data. Where neither Landlock nor a filter of system calls can be
// had, the model is not looked at. Folder is one that may be listed, without reading a file of
// it; then Landlock alone keeps files closed, and has to be there.
func lockIn(dataBytes int64, folder string) ([]Layer, error) {
	if err := setLimit(unix.RLIMIT_DATA, uint64(dataBytes)); err != nil {
		return nil, fmt.Errorf("limit the memory: %w", err)
	}
	memory := Layer{Name: "memory", Active: true, Detail: fmt.Sprintf("%d MiB of data, those of library and program included", dataBytes>>20)}
	files, filter := byLandlock(folder), byFilter(folder != "")
	if folder != "" && !files.Active {
		return nil, problem.New(problem.Internal, "the execution provider lists its folder for each model, which cannot be allowed without opening all files on this machine: Landlock (%s)", files.Detail)
	}
	if !files.Active && !filter.Active {
		return nil, problem.New(problem.Internal, "a model that may be hostile is not loaded on this machine, because nothing would hold it: Landlock (%s), seccomp (%s). Use a kernel of 5.13 or newer, and a container that allows one of them", files.Detail, filter.Detail)
	}
	return []Layer{memory, files, filter}, nil
}

// byLandlock forbids all files and connections: what the process needs it has
// open already.
func byLandlock(folder string) Layer {
	layer := Layer{Name: "landlock"}
	version, err := landlockcalls.LandlockGetABIVersion()
	if err != nil || version < 1 {
		layer.Detail = "the kernel does not offer it"
		return layer
	}
	var listed []landlock.Rule
	if folder != "" {
		listed = append(listed, landlock.PathAccess(landlockcalls.AccessFSReadDir, folder))
	}
	if err := landlock.V11.BestEffort().Restrict(listed...); err != nil {
		layer.Detail = err.Error()
		return layer
	}
	layer.Active, layer.Detail = true, fmt.Sprintf("ABI %d: no file can be opened", version)
	if version >= 4 {
		layer.Detail += ", no TCP connection made"
	}
	return layer
}

// byFilter forbids all system calls but those of a computation, and of listing a folder.
func byFilter(lists bool) Layer {
	layer := Layer{Name: "seccomp"}
	convention, known := filter.Architecture()
	if !known {
		layer.Detail = "there is no filter for " + runtime.GOARCH
		return layer
	}
	if err := filter.Install(computation(convention, unix.Getpid(), lists), true); err != nil {
		layer.Detail = err.Error()
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
			layer.Detail = "the kernel does not offer it: " + layer.Detail
		}
		return layer
	}
	layer.Active, layer.Detail = true, "system calls of a computation only: no files, no connections, no other processes"
	return layer
}
