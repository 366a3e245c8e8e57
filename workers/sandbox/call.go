package sandbox

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/workers/sandbox/filter"
)

// refused are system calls that training has no use for, and that reach parts of
// the kernel where faults were found again and again, or what other layers leave
// open: mounts, modules, other processes, keys, programs in the kernel, system
// calls by way of memory (io_uring), counters.
func refused() []uint32 {
	return []uint32{
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
		unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_QUOTACTL,
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_PTRACE, unix.SYS_SETNS,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_SYSLOG,
	}
}

// lookingIn are calls by which one process uses what another has: memory, files.
// Libraries that train with many processes use them among these; Landlock
// confines them to that.
func lookingIn() []uint32 {
	return []uint32{unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP}
}

// newNamespaces are the flags of clone and unshare that make some.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// refuseCalls puts the filter in place; confined says that Landlock keeps the
// command from looking into other processes.
func (o order) refuseCalls(confined bool) (string, error) {
	convention, known := filter.Architecture()
	if !known {
		return "", fmt.Errorf("there is no filter for %s", runtime.GOARCH)
	}
	if err := filter.Install(o.program(convention, confined), false); err != nil {
		return "", fmt.Errorf("the kernel or the container refuses a filter: %w", err)
	}
	detail := "no mounts, keys, tracing, counters, io_uring, new namespaces, limits of others"
	if o.Offline {
		detail += "; no network"
	}
	return detail, nil
}

func (o order) program(convention uint32, confined bool) []unix.SockFilter {
	allow, refuse := filter.End(filter.Allow), filter.End(filter.Refuse(unix.EPERM))
	program := filter.Begin(convention)
	calls := refused()
	if !confined {
		calls = append(calls, lookingIn()...)
	}
	for _, call := range calls {
		program = append(program, filter.Jump(unix.BPF_JEQ, call, 0, 1), refuse)
	}
	// Told that the newer call does not exist, the C library makes threads with
	// clone, whose flags a filter can see.
	program = append(program, filter.Jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), filter.End(filter.Refuse(unix.ENOSYS)))
	for _, call := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		program = append(program, filter.Jump(unix.BPF_JEQ, call, 0, 4), filter.Load(filter.Low(0)), filter.Jump(unix.BPF_JSET, newNamespaces, 0, 1), refuse, allow)
	}
	// Limits of this process, or of others to read.
	program = append(program, filter.Jump(unix.BPF_JEQ, unix.SYS_PRLIMIT64, 0, 8),
		filter.Load(filter.Low(0)), filter.Jump(unix.BPF_JEQ, 0, 0, 1), allow,
		filter.Load(filter.Low(2)), filter.Jump(unix.BPF_JEQ, 0, 0, 2),
		filter.Load(filter.High(2)), filter.Jump(unix.BPF_JEQ, 0, 1, 0), refuse)
	// What is left of prlimit64 is allowed, as all other calls but socket are.
	families := []uint32{unix.AF_UNIX, unix.AF_NETLINK}
	if !o.Offline {
		families = append(families, unix.AF_INET, unix.AF_INET6)
	}
	program = append(program, filter.Load(filter.CallAt), filter.Jump(unix.BPF_JEQ, unix.SYS_SOCKET, 1, 0), allow, filter.Load(filter.Low(0)))
	for _, family := range families {
		program = append(program, filter.Jump(unix.BPF_JEQ, family, 0, 1), allow)
	}
	return append(program, filter.End(filter.Refuse(unix.EAFNOSUPPORT)))
}
