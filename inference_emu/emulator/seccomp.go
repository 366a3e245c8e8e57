package emulator

import (
	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/workers/sandbox/filter"
)

// computing are the system calls that a computation in this process needs, once
// all is loaded: memory, threads, time, signals, and what is open already. What
// is not here fails as not permitted.
func computing() []uint32 {
	return []uint32{
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_LSEEK, unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_FCNTL,
		unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_BRK,
		unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETCPU, unix.SYS_MEMBARRIER, unix.SYS_RSEQ, unix.SYS_SET_ROBUST_LIST, unix.SYS_SET_TID_ADDRESS,
		unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_NANOSLEEP, unix.SYS_GETTIMEOFDAY,
		unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_DELETE, unix.SYS_SETITIMER,
		unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
		unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
		unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETRUSAGE, unix.SYS_GETRANDOM, unix.SYS_SYSINFO, unix.SYS_UNAME,
		unix.SYS_RESTART_SYSCALL, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	}
}

// computation is a program that allows the calls of a computation: threads, but
// no processes; signals and cores for this process only. If it lists, files are Landlock's.
func computation(convention uint32, pid int, lists bool) []unix.SockFilter {
	allow, refuse := filter.End(filter.Allow), filter.End(filter.Refuse(unix.EPERM))
	program := filter.Begin(convention)
	calls := computing()
	if lists {
		calls = append(calls, unix.SYS_OPENAT, unix.SYS_GETDENTS64, unix.SYS_NEWFSTATAT)
	}
	for _, call := range calls {
		program = append(program, filter.Jump(unix.BPF_JEQ, call, 0, 1), allow)
	}
	// Told that the newer call does not exist, the C library makes threads with
	// clone, whose flags a filter can see.
	program = append(program, filter.Jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), filter.End(filter.Refuse(unix.ENOSYS)))
	// Told that nothing is a link (readlink, 89), OpenVINO takes the path of its folder as it is.
	if convention == unix.AUDIT_ARCH_X86_64 {
		program = append(program, filter.Jump(unix.BPF_JEQ, 89, 0, 1), filter.End(filter.Refuse(unix.EINVAL)))
	}
	// The rest depends on the first argument.
	for _, one := range []struct {
		call, value uint32
		how         uint16
	}{
		{unix.SYS_CLONE, unix.CLONE_THREAD, unix.BPF_JSET},
		{unix.SYS_TGKILL, uint32(pid), unix.BPF_JEQ},
		{unix.SYS_SCHED_SETAFFINITY, 0, unix.BPF_JEQ},
		{unix.SYS_PRCTL, unix.PR_SET_NAME, unix.BPF_JEQ},
	} {
		program = append(program, filter.Jump(unix.BPF_JEQ, one.call, 0, 4), filter.Load(filter.Low(0)), filter.Jump(one.how, one.value, 0, 1), allow, refuse)
	}
	return append(program, refuse)
}
