package agent

import (
	"strings"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/clock"
	"github.com/tandem-tune/tandem/workers/agent/process"
)

func TestOutcome(t *testing.T) {
	none := protocol.Directive{Action: protocol.Continue}
	pause := protocol.Directive{Action: protocol.Pause, Reason: "the study is paused"}
	stop := protocol.Directive{Action: protocol.Stop, Reason: "the study was stopped"}
	all, some := progress{first: 1, last: 9, epochs: 9, reported: true}, progress{first: 1, last: 2, epochs: 9, reported: true}
	refused, cutOff, resumed := some, some, progress{first: 4, last: 3, epochs: 9}
	refused.refusal, cutOff.unreachable = "metrics.accuracy is missing", true
	tests := []struct {
		name      string
		exit      process.Exit
		ended     ending
		directive protocol.Directive
		progress  progress
		errors    []string
		outcome   protocol.Outcome
		say       string
	}{
		{"all reported", process.Exit{}, ending{}, none, all, nil, protocol.BudgetReached, ""},
		{"all reported while drained", process.Exit{}, ending{drained, "left"}, none, all, nil, protocol.BudgetReached, ""},
		{"all reported, then failed", process.Exit{Code: 1}, ending{}, none, all, nil, protocol.CommandFailed, "exit code 1"},
		{"ended early", process.Exit{}, ending{}, none, some, nil, protocol.CommandFailed, "ended after epoch 2 of 9: one that is done early reports its last metrics as epoch 9"},
		{"ended early after a refusal", process.Exit{}, ending{}, none, refused, nil, protocol.CommandFailed, "metrics.accuracy is missing"},
		{"reported nothing", process.Exit{}, ending{}, none, resumed, nil, protocol.CommandFailed, "ended after epoch 3 of 9: it reported nothing"},
		{"paused", process.Exit{}, ending{}, pause, some, nil, protocol.Interrupted, "the study is paused"},
		{"failed when told to pause", process.Exit{Code: 1}, ending{}, pause, some, nil, protocol.CommandFailed, "exit code 1"},
		{"asked to end for a pause", process.Exit{Code: -1, Signal: syscall.SIGTERM}, ending{paused, "the study is paused"}, pause, some, nil, protocol.Interrupted, "the study is paused"},
		{"stopped", process.Exit{Code: 7}, ending{}, stop, some, nil, protocol.Interrupted, "the study was stopped"},
		{"drained", process.Exit{Code: -1, Signal: syscall.SIGTERM}, ending{drained, "left"}, none, some, nil, protocol.Interrupted, "left"},
		{"silent", process.Exit{Code: -1, Signal: syscall.SIGKILL, Killed: true}, ending{silent, "no report for 5 s"}, none, some, nil, protocol.CommandFailed, "no report for 5 s"},
		{"gave up on an absent server", process.Exit{Code: 1}, ending{}, none, cutOff, []string{"UnavailableError"}, protocol.Interrupted, "could not be reached: exit code 1: UnavailableError"},
		{"signal", process.Exit{Code: -1, Signal: syscall.SIGSEGV}, ending{}, none, some, nil, protocol.CommandFailed, "signal 11"},
		{"out of memory", process.Exit{Code: -1, Signal: syscall.SIGKILL, Peak: 3 << 30}, ending{}, none, some, nil, protocol.CommandFailed, "had 3.00 GiB"},
		{"killed by us", process.Exit{Code: -1, Signal: syscall.SIGKILL, Killed: true}, ending{}, none, some, nil, protocol.CommandFailed, "signal 9"},
		{"a broken GPU", process.Exit{Code: 1}, ending{}, none, some, []string{"RuntimeError: CUDA error: uncorrectable ECC error encountered", "and how to debug it"}, protocol.Vanished, "a GPU of its worker failed (exit code 1): RuntimeError: CUDA error: uncorrectable ECC"},
		{"a broken GPU behind the last report", process.Exit{Code: 1}, ending{}, none, all, []string{"GPU is lost"}, protocol.Vanished, "GPU is lost"},
		{"says why", process.Exit{Code: 2}, ending{}, none, some, []string{"a", "b"}, protocol.CommandFailed, "exit code 2: b\nstandard error ended with:\na\nb"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := outcomeOf(test.exit, test.ended, test.directive, test.progress, test.errors)
			if got.Outcome != test.outcome || !strings.Contains(got.Reason, test.say) {
				t.Errorf("got %+v, want %s: %s", got, test.outcome, test.say)
			}
		})
	}
}

func TestFenceComesBeforeTheServersDeadline(t *testing.T) {
	for _, lease := range []float64{0.5, 1, 60, 3600} {
		if at := fence(1000, lease); at <= 1000 || at >= 1000+clock.Moment(clock.Seconds(lease)) {
			t.Errorf("a lease of %g s is fenced %d ns after its renewal was sent", lease, at-1000)
		}
	}
}

// TestMemoryOfAGPUIsToldFromOther: only a GPU's may have been taken by a trial
// that shares it.
func TestMemoryOfAGPUIsToldFromOther(t *testing.T) {
	for name, test := range map[string]struct {
		exit   process.Exit
		errors []string
		want   bool
	}{
		"torch":                {process.Exit{Code: 1}, []string{"Traceback", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"}, true},
		"torch, with advice":   {process.Exit{Code: 1}, []string{"RuntimeError: CUDA error: out of memory", "For debugging consider passing CUDA_LAUNCH_BLOCKING=1"}, true},
		"jax":                  {process.Exit{Code: 1}, []string{"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes."}, true},
		"tensorflow":           {process.Exit{Code: 1}, []string{"ResourceExhaustedError: OOM when allocating tensor with shape[8]"}, true},
		"the machine's":        {process.Exit{Code: 1}, []string{"MemoryError"}, false},
		"at its limit as well": {process.Exit{Code: 1, OutOfMemory: true}, []string{"CUDA out of memory"}, false},
		"something else":       {process.Exit{Code: 1}, []string{"ValueError"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := outcomeOf(test.exit, ending{}, protocol.Directive{Action: protocol.Continue}, progress{last: 1, epochs: 3}, test.errors)
			if got.OutOfGPUMemory != test.want || got.Outcome != protocol.CommandFailed {
				t.Errorf("got %+v", got)
			}
		})
	}
}
