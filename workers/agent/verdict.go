package agent

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/tandem-tune/tandem/protocol"
)

// verdict says how a lease ended, from how its command did. A trial that
// reached its budget did so whatever ended it afterwards; what we or the server
// ended is given back; everything else is the command's failure.
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
		return failed(describe(result, lastErrors))
	case directive.Action == protocol.Pause:
		return interrupted(directive.Reason)
	default:
		return failed(fellShort(p))
	}
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

// describe words how a command failed, with the end of its standard error.
func describe(result exit, lastErrors []string) string {
	reason := fmt.Sprintf("exit code %d", result.code)
	switch {
	case result.signal == syscall.SIGKILL && !result.killed:
		reason = fmt.Sprintf("killed by SIGKILL, and not by this worker: most often memory ran out (one of its processes had %.1f GiB; the kernel's log tells more)",
			float64(result.peak)/(1<<30))
	case result.signal != 0:
		reason = fmt.Sprintf("ended by signal %d (%v)", int(result.signal), result.signal)
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
