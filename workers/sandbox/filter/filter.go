// Package filter answers: how is a program for the kernel's filter of system
// calls written and put in place?
//
// It holds the instructions that such programs are made of, and where in the
// kernel's struct seccomp_data they find what they look at. Which calls a
// process may make is the business of whoever writes a program.
package filter

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where the fields of the kernel's struct seccomp_data are, in bytes.
const (
	// CallAt is the number of the call.
	CallAt = 0
	// ArchitectureAt is the calling convention; see [Architecture].
	ArchitectureAt = 4
	firstArgument  = 16
)

// foreignCalls is where the numbers of calls begin that amd64 has for a second
// calling convention with the same name (x32).
const foreignCalls = 0x4000_0000

// Low is where the lower half of an argument is, counted from 0. Arguments have
// 64 bits; their lower halves come first on the processors that [Architecture]
// knows.
func Low(argument uint32) uint32 { return firstArgument + 8*argument }

// High is where the upper half of an argument is, counted from 0.
func High(argument uint32) uint32 { return Low(argument) + 4 }

// Architecture is the calling convention of this program, as the kernel names
// it; known is false on processors that there are no programs for.
func Architecture() (convention uint32, known bool) {
	convention, known = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	return convention, known
}

// Load looks at four bytes of the call.
func Load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

// Jump passes over as many instructions as the answer says: how is unix.BPF_JEQ,
// unix.BPF_JGE or unix.BPF_JSET, which ask whether what was loaded equals the
// value, is at least the value, or shares a bit with it.
func Jump(how uint16, value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | how, Jt: yes, Jf: no, K: value}
}

// End ends the program with [Allow] or what [Refuse] returns.
func End(with uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with}
}

// Allow lets the call pass.
const Allow = unix.SECCOMP_RET_ALLOW

// Refuse has the call fail with the error.
func Refuse(with unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(with) }

// Begin is how programs begin: calls by another convention than this program's,
// which have other numbers, fail as not permitted. Then the number is loaded.
func Begin(convention uint32) []unix.SockFilter {
	refuse := End(Refuse(unix.EPERM))
	program := []unix.SockFilter{Load(ArchitectureAt), Jump(unix.BPF_JEQ, convention, 1, 0), refuse, Load(CallAt)}
	if convention == unix.AUDIT_ARCH_X86_64 {
		program = append(program, Jump(unix.BPF_JGE, foreignCalls, 0, 1), refuse)
	}
	return program
}

// Install puts the program before the system calls of this thread and of all it
// starts, or of all threads of this process. The thread must have given up new
// privileges before.
func Install(program []unix.SockFilter, allThreads bool) error {
	flags := uintptr(0)
	if allThreads {
		flags = unix.SECCOMP_FILTER_FLAG_TSYNC
	}
	set := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, code := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&set)))
	runtime.KeepAlive(program)
	if code != 0 {
		return code
	}
	return nil
}
