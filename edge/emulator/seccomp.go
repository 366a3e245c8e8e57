package emulator

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
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

// Where the fields of the kernel's struct seccomp_data are. Arguments are of 64
// bits; their lower halves come first on the processors we have a filter for.
const (
	callAt     = 0
	audited    = 4
	argumentAt = 16
)

// filter is a program that allows the calls of a computation: threads, but no
// processes; signals and cores for this process only.
func filter(audit uint32, pid int) []unix.SockFilter {
	const (
		allow  = unix.SECCOMP_RET_ALLOW
		refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		// Told that the newer call does not exist, the C library makes threads
		// with clone, whose flags a filter can see.
		missing = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	jump := func(how uint16, value uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | how, Jt: yes, Jf: no, K: value}
	}
	end := func(with uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with}
	}
	program := []unix.SockFilter{load(audited), jump(unix.BPF_JEQ, audit, 1, 0), end(refuse), load(callAt)}
	for _, call := range computing() {
		program = append(program, jump(unix.BPF_JEQ, call, 0, 1), end(allow))
	}
	program = append(program, jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), end(missing))
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
		program = append(program, jump(unix.BPF_JEQ, one.call, 0, 4), load(argumentAt), jump(one.how, one.value, 0, 1), end(allow), end(refuse))
	}
	return append(program, end(refuse))
}

// install puts the program before the system calls of all threads.
func install(program []unix.SockFilter) error {
	set := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, code := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&set)))
	runtime.KeepAlive(program)
	if code != 0 {
		return code
	}
	return nil
}
