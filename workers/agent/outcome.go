package agent

import (
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/gpu"
	"github.com/tandem-tune/tandem/workers/agent/process"
)

// outcomeOf says how a lease ended, from how its command did. A trial that
// reached its budget did so whatever ended it afterwards; what we or the server
// ended is given back, and so is what a broken GPU ended; everything else is
// the command's failure.
func outcomeOf(result process.Exit, ended ending, directive protocol.Directive, p progress, lastErrors []string) protocol.FinishRequest {
	interrupted := func(reason string) protocol.FinishRequest {
		return protocol.FinishRequest{Outcome: protocol.Interrupted, Reason: reason}
	}
	failed := func(reason string) protocol.FinishRequest {
		return protocol.FinishRequest{Outcome: protocol.CommandFailed, Reason: reason}
	}
	switch {
	case (result.OK() || ended.kind == spent) && p.complete():
		return protocol.FinishRequest{Outcome: protocol.BudgetReached}
	case ended.kind == silent:
		return failed(ended.reason)
	case ended.kind != notEnded:
		return interrupted(ended.reason)
	case directive.Action == protocol.Stop:
		return interrupted(directive.Reason)
	case p.unreachable:
		return interrupted("the command ended while the server could not be reached: " + process.Describe(result, lastErrors))
	case !result.OK():
		if fault := gpu.Fault(lastErrors); fault != "" {
			return process.BrokeHere(result, fault)
		}
		request := failed(process.Describe(result, lastErrors))
		request.OutOfGPUMemory = !result.OutOfMemory && process.LacksGPUMemory(lastErrors)
		return request
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
		return reason + "; a report was refused: " + strings.ReplaceAll(p.refusal, "\n  ", "; ") // the first line is what people see
	case !p.reported:
		return reason + ": it reported nothing in this run (one JSON object with \"epoch\" and the metrics on a line of standard output, or the client)"
	default:
		return fmt.Sprintf("%s: one that is done early reports its last metrics as epoch %d", reason, p.epochs)
	}
}
