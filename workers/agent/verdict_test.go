package agent

import (
	"strings"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/clock"
)

func TestVerdict(t *testing.T) {
	none := protocol.Directive{Action: protocol.Continue}
	pause := protocol.Directive{Action: protocol.Pause, Reason: "the study is paused"}
	stop := protocol.Directive{Action: protocol.Stop, Reason: "the study was stopped"}
	all, some := progress{first: 1, last: 9, epochs: 9, reported: true}, progress{first: 1, last: 2, epochs: 9, reported: true}
	refused, cutOff, resumed := some, some, progress{first: 4, last: 3, epochs: 9}
	refused.refusal, cutOff.unreachable = "metrics.accuracy is missing", true
	tests := []struct {
		name      string
		exit      exit
		ended     ending
		directive protocol.Directive
		progress  progress
		errors    []string
		outcome   protocol.Outcome
		say       string
	}{
		{"all reported", exit{}, ending{}, none, all, nil, protocol.BudgetReached, ""},
		{"all reported while drained", exit{}, ending{drained, "left"}, none, all, nil, protocol.BudgetReached, ""},
		{"all reported, then failed", exit{code: 1}, ending{}, none, all, nil, protocol.CommandFailed, "exit code 1"},
		{"ended early", exit{}, ending{}, none, some, nil, protocol.CommandFailed, "ended after epoch 2 of 9"},
		{"ended early after a refusal", exit{}, ending{}, none, refused, nil, protocol.CommandFailed, "metrics.accuracy is missing"},
		{"reported nothing", exit{}, ending{}, none, resumed, nil, protocol.CommandFailed, "ended after epoch 3 of 9: it reported nothing"},
		{"paused", exit{}, ending{}, pause, some, nil, protocol.Interrupted, "the study is paused"},
		{"failed when told to pause", exit{code: 1}, ending{}, pause, some, nil, protocol.CommandFailed, "exit code 1"},
		{"asked to end for a pause", exit{code: -1, signal: syscall.SIGTERM}, ending{paused, "the study is paused"}, pause, some, nil, protocol.Interrupted, "the study is paused"},
		{"stopped", exit{code: 7}, ending{}, stop, some, nil, protocol.Interrupted, "the study was stopped"},
		{"drained", exit{code: -1, signal: syscall.SIGTERM}, ending{drained, "left"}, none, some, nil, protocol.Interrupted, "left"},
		{"silent", exit{code: -1, signal: syscall.SIGKILL, killed: true}, ending{silent, "no report for 5 s"}, none, some, nil, protocol.CommandFailed, "no report for 5 s"},
		{"gave up on an absent server", exit{code: 1}, ending{}, none, cutOff, []string{"UnavailableError"}, protocol.Interrupted, "could not be reached: exit code 1: UnavailableError"},
		{"signal", exit{code: -1, signal: syscall.SIGSEGV}, ending{}, none, some, nil, protocol.CommandFailed, "signal 11"},
		{"out of memory", exit{code: -1, signal: syscall.SIGKILL, peak: 3 << 30}, ending{}, none, some, nil, protocol.CommandFailed, "had 3.00 GiB"},
		{"killed by us", exit{code: -1, signal: syscall.SIGKILL, killed: true}, ending{}, none, some, nil, protocol.CommandFailed, "signal 9"},
		{"a broken GPU", exit{code: 1}, ending{}, none, some, []string{"RuntimeError: CUDA error: uncorrectable ECC error encountered", "and how to debug it"}, protocol.Vanished, "a GPU of its worker failed (exit code 1): RuntimeError: CUDA error: uncorrectable ECC"},
		{"a broken GPU behind the last report", exit{code: 1}, ending{}, none, all, []string{"GPU is lost"}, protocol.Vanished, "GPU is lost"},
		{"says why", exit{code: 2}, ending{}, none, some, []string{"a", "b"}, protocol.CommandFailed, "exit code 2: b\nstandard error ended with:\na\nb"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := verdict(test.exit, test.ended, test.directive, test.progress, test.errors)
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

func TestMemoryThatRanOutIsSaid(t *testing.T) {
	for name, test := range map[string]struct {
		exit   exit
		errors []string
		want   string
	}{
		"at the limit of its group":      {exit{code: -1, signal: syscall.SIGKILL, peak: 1 << 29, outOfMemory: true}, nil, "out of memory: the kernel ended a process of it at its limit (it had 0.50 GiB at most"},
		"a child of it":                  {exit{code: 1, peak: 1 << 29, outOfMemory: true}, []string{"a worker died"}, "out of memory: the kernel ended a process of it"},
		"python":                         {exit{code: 1, peak: 3 << 29}, []string{"Traceback", "MemoryError"}, "out of memory (one of its processes had 1.50 GiB at most): exit code 1: MemoryError"},
		"numpy":                          {exit{code: 1}, []string{"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 8 GiB"}, "out of memory ("},
		"cuda":                           {exit{code: 1}, []string{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"}, "out of memory ("},
		"said before something else was": {exit{code: 1}, []string{"MemoryError", "ValueError: x"}, "exit code 1: ValueError"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describe(test.exit, test.errors); !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestMemoryOfAGPUIsToldFromOther: only a GPU's may have been taken by a trial
// that shares it.
func TestMemoryOfAGPUIsToldFromOther(t *testing.T) {
	for name, test := range map[string]struct {
		exit   exit
		errors []string
		want   bool
	}{
		"torch":                {exit{code: 1}, []string{"Traceback", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"}, true},
		"torch, with advice":   {exit{code: 1}, []string{"RuntimeError: CUDA error: out of memory", "For debugging consider passing CUDA_LAUNCH_BLOCKING=1"}, true},
		"jax":                  {exit{code: 1}, []string{"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes."}, true},
		"tensorflow":           {exit{code: 1}, []string{"ResourceExhaustedError: OOM when allocating tensor with shape[8]"}, true},
		"the machine's":        {exit{code: 1}, []string{"MemoryError"}, false},
		"at its limit as well": {exit{code: 1, outOfMemory: true}, []string{"CUDA out of memory"}, false},
		"something else":       {exit{code: 1}, []string{"ValueError"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := verdict(test.exit, ending{}, protocol.Directive{Action: protocol.Continue}, progress{last: 1, epochs: 3}, test.errors)
			if got.OutOfGPUMemory != test.want || got.Outcome != protocol.CommandFailed {
				t.Errorf("got %+v", got)
			}
		})
	}
}
