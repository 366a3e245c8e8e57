package agent

import (
	"strings"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/protocol"
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
		{"out of memory", exit{code: -1, signal: syscall.SIGKILL, peak: 3 << 30}, ending{}, none, some, nil, protocol.CommandFailed, "had 3.0 GiB"},
		{"killed by us", exit{code: -1, signal: syscall.SIGKILL, killed: true}, ending{}, none, some, nil, protocol.CommandFailed, "signal 9"},
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
		if at := fence(1000, lease); at <= 1000 || at >= 1000+moment(seconds(lease)) {
			t.Errorf("a lease of %g s is fenced %d ns after its renewal was sent", lease, at-1000)
		}
	}
}
