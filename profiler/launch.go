package profiler

import (
	"errors"

	"golang.org/x/sys/unix"
)

// AwaitEnd returns when a child of this process has ended, and leaves it as a
// zombie: what it has used can still be read.
func AwaitEnd(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
