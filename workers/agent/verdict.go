package agent

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/gpu"
)

// lastErrorLines is how much of the end of standard error a reason has: of a Python
// traceback the script's own line as well, which stands above those of libraries.
const lastErrorLines = 12

// verdict says how a lease ended, from how its command did. A trial that
// reached its budget did so whatever ended it afterwards; what we or the server
// ended is given back, and so is what a broken GPU ended; everything else is
// the command's failure.
func verdict(result exit, ended ending, directive protocol.Directive, p progress, lastErrors []string) protocol.FinishRequest {
	interrupted := func(reason string) protocol.FinishRequest {
		return protocol.FinishRequest{Outcome: protocol.Interrupted, Reason: reason}
	}
	failed := func(reason string) protocol.FinishRequest {
		return protocol.FinishRequest{Outcome: protocol.CommandFailed, Reason: reason}
	}
	switch {
	case (result.ok() || ended.kind == spent) && p.complete():
		return protocol.FinishRequest{Outcome: protocol.BudgetReached}
	case ended.kind == silent:
		return failed(ended.reason)
	case ended.kind != notEnded:
		return interrupted(ended.reason)
	case directive.Action == protocol.Stop:
		return interrupted(directive.Reason)
	case p.unreachable:
		return interrupted("the command ended while the server could not be reached: " + describe(result, lastErrors))
	case !result.ok():
		if fault := gpu.Fault(lastErrors); fault != "" {
			return brokeHere(result, fault)
		}
		request := failed(describe(result, lastErrors))
		request.OutOfGPUMemory = !result.outOfMemory && lacksGPUMemory(lastErrors)
		return request
	case directive.Action == protocol.Pause:
		return interrupted(directive.Reason)
	default:
		return failed(fellShort(p))
	}
}

// brokeHere is how a lease ends whose command failed for this machine's sake:
// another worker is given the trial, whose own retries stay as they are.
func brokeHere(result exit, fault string) protocol.FinishRequest {
	return protocol.FinishRequest{Outcome: protocol.Vanished, Reason: fmt.Sprintf("%s (exit code %d): %s", protocol.GPUFailed, result.code, fault)}
}

// fellShort explains an end with code 0 before the budget.
func fellShort(p progress) string {
	reason := fmt.Sprintf("the command ended after epoch %d of %d", p.last, p.epochs)
	switch {
	case p.refusal != "":
		return reason + "; a report was refused: " + p.refusal
	case !p.reported:
		return reason + ": it reported nothing in this run (one JSON object with \"epoch\" and the metrics on a line of standard output, or the client)"
	default:
		return reason
	}
}

// memoryErrors are how languages and libraries say that there is no memory left,
// on the host or on the GPU.
var memoryErrors = []string{"MemoryError", "OutOfMemoryError", "CUDA out of memory", "CUDA error: out of memory", "std::bad_alloc", "Cannot allocate memory", "cannot allocate memory"}

// gpuMemoryErrors are how libraries say that a GPU has no memory left.
var gpuMemoryErrors = []string{
	"CUDA out of memory", "HIP out of memory", "CUDA error: out of memory", "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "hipErrorOutOfMemory",
	"RESOURCE_EXHAUSTED: Out of memory", "OOM when allocating tensor", "CUBLAS_STATUS_ALLOC_FAILED",
}

// lacksGPUMemory reports whether one of the last things that a command said is
// that a GPU has no memory left for it.
func lacksGPUMemory(lastErrors []string) bool {
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

// describe words how a command failed, with the end of its standard error.
func describe(result exit, lastErrors []string) string {
	reason := fmt.Sprintf("exit code %d", result.code)
	most := float64(result.peak) / (1 << 30)
	switch {
	case result.outOfMemory:
		reason = fmt.Sprintf("out of memory: the kernel ended a process of it at its limit (it had %.2f GiB at most; memory_gib is the limit)", most)
	case result.signal == syscall.SIGKILL && !result.killed:
		reason = fmt.Sprintf("killed by SIGKILL, and not by this worker: most often memory ran out (one of its processes had %.2f GiB; the kernel's log tells more)", most)
	case result.signal != 0:
		reason = fmt.Sprintf("ended by signal %d (%v)", int(result.signal), result.signal)
	}
	if !result.outOfMemory && lacksMemory(lastErrors) {
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
