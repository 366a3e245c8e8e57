package sandbox

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	// largestFile is how large a file may become, in bytes.
	largestFile = 64 << 30
	// mostProcesses is how many processes and threads the user may have when a
	// command starts one more, where the worker has no limit itself.
	mostProcesses = 32 << 10
)

// setLimits lowers limits for good. The kernel counts processes by user: half of
// what the worker may have leaves it, and all others, the other half. Root is
// not counted.
func setLimits() (string, error) {
	var processes unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &processes); err != nil {
		return "", err
	}
	most := uint64(mostProcesses)
	if processes.Max != unix.RLIM_INFINITY {
		most = min(most, processes.Max/2)
	}
	for resource, value := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: largestFile, unix.RLIMIT_NPROC: most} {
		if err := lower(resource, value); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("no core dumps, files of up to %d GiB, %d processes and threads of the user (root has no such limit)", largestFile>>30, most), nil
}

func lower(resource int, value uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return err
	}
	value = min(value, now.Max)
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: min(value, now.Cur), Max: value})
}

// dropCapabilities leaves none, and none to be had again.
func dropCapabilities() (string, error) {
	for capability := range uintptr(64) {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) { // the kernel knows no more
			break
		}
		if err != nil && !errors.Is(err, unix.EPERM) { // without the right to, there is nothing to be had either
			return "", fmt.Errorf("the kernel refuses: %w", err)
		}
	}
	// Kernels before 4.3 have no ambient ones.
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return "", fmt.Errorf("the kernel refuses: %w", err)
	}
	header, none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capset(&header, &none[0]); err != nil {
		return "", fmt.Errorf("the kernel refuses: %w", err)
	}
	return "none is kept", nil
}

// mayMount reports whether this process may make mounts in a namespace of its
// own without being a user of its own.
func mayMount() bool {
	header, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}
