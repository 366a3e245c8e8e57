package process

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// Exit is how a command ended.
type Exit struct {
	Code   int            // -1 when it was ended by a signal
	Signal syscall.Signal // 0 when it ended by itself
	Killed bool           // by us
	Peak   int64          // most memory that it, or one of its processes, had, in bytes
	// OutOfMemory says that the kernel ended a process of it at its limit.
	OutOfMemory bool
}

// OK reports whether the command ended well.
func (e Exit) OK() bool { return e.Code == 0 }

// AsTold reports whether the command ended as one does that is told to by SIGTERM.
func (e Exit) AsTold() bool {
	return e.OK() || e.Signal == syscall.SIGTERM || e.Code == 128+int(syscall.SIGTERM)
}

// LastErrorLines is how much of the end of standard error a reason has: of a Python
// traceback the script's own line as well, which stands above those of libraries.
const LastErrorLines = 12

// BrokeHere is how a lease ends whose command failed for this machine's sake:
// another worker is given the trial, whose own retries stay as they are.
func BrokeHere(result Exit, fault string) protocol.FinishRequest {
	return protocol.FinishRequest{Outcome: protocol.Vanished, Reason: fmt.Sprintf("%s (exit code %d): %s", protocol.GPUFailed, result.Code, fault)}
}

// memoryErrors are how languages and libraries say that there is no memory left,
// on the host or on the GPU.
var memoryErrors = []string{"MemoryError", "OutOfMemoryError", "CUDA out of memory", "CUDA error: out of memory", "std::bad_alloc", "Cannot allocate memory", "cannot allocate memory"}

// gpuMemoryErrors are how libraries say that a GPU has no memory left.
var gpuMemoryErrors = []string{
	"CUDA out of memory", "HIP out of memory", "CUDA error: out of memory", "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "hipErrorOutOfMemory",
	"RESOURCE_EXHAUSTED: Out of memory", "OOM when allocating tensor", "CUBLAS_STATUS_ALLOC_FAILED",
}

// LacksGPUMemory reports whether one of the last things that a command said is
// that a GPU has no memory left for it.
func LacksGPUMemory(lastErrors []string) bool {
	return slices.ContainsFunc(lastErrors, func(line string) bool {
		return slices.ContainsFunc(gpuMemoryErrors, func(said string) bool { return strings.Contains(line, said) })
	})
}

// lacksMemory reports whether the last thing that a command said is that it
// could not have memory.
func lacksMemory(lastErrors []string) bool {
	if len(lastErrors) == 0 {
		return false
	}
	last := lastErrors[len(lastErrors)-1]
	return slices.ContainsFunc(memoryErrors, func(said string) bool { return strings.Contains(last, said) })
}

// Describe words how a command failed, with the end of its standard error.
func Describe(result Exit, lastErrors []string) string {
	reason := fmt.Sprintf("exit code %d", result.Code)
	most := float64(result.Peak) / (1 << 30)
	switch {
	case result.OutOfMemory:
		reason = fmt.Sprintf("out of memory: the kernel ended a process of it at its limit (it had %.2f GiB at most; memory_gib is the limit)", most)
	case result.Signal == syscall.SIGKILL && !result.Killed:
		reason = fmt.Sprintf("killed by SIGKILL, and not by this worker: most often memory ran out (one of its processes had %.2f GiB; the kernel's log tells more)", most)
	case result.Signal != 0:
		reason = fmt.Sprintf("ended by signal %d (%v)", int(result.Signal), result.Signal)
	}
	if !result.OutOfMemory && lacksMemory(lastErrors) {
		reason = fmt.Sprintf("out of memory (one of its processes had %.2f GiB at most): %s", most, reason)
	}
	switch len(lastErrors) {
	case 0:
		return reason + ", with nothing on standard error"
	case 1:
		return reason + ": " + lastErrors[0]
	default:
		return reason + ": " + lastErrors[len(lastErrors)-1] + "\nstandard error ended with:\n" + strings.Join(lastErrors, "\n")
	}
}
