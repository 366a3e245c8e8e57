package study_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

const aPolicy = "0e12345678901234567890123456789012345678901234567890123456789012"

func (w *world) registerConfidential(id, policy string) {
	w.t.Helper()
	if _, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: id, Name: id, Slots: 1, Confidential: &protocol.Claim{TEE: "tdx", Policy: policy},
		Sandbox: &protocol.Sandbox{Mode: "strict", Layers: []string{"all"}}}); err != nil {
		w.t.Fatal(err)
	}
}

// Trials of a confidential study go to machines that say that they are of its policy,
// which run nothing else, and the server keeps nothing that was not declared.
func TestConfidentialStudiesRunWhereTheirPolicyIs(t *testing.T) {
	in(func(t *testing.T, w *world) {
		made := w.create("objective:", "encryption: {recipients: ["+aRecipient+"]}\nconfidential: {policy: "+aPolicy+", metrics: {accuracy: {low: 0, high: 1, round: 0.01}}}\nobjective:")
		rack := w.as(workerOf("rack"))
		rack.register("box")
		rack.registerWithKey("keyed", aRecipient)
		rack.registerConfidential("other", strings.Repeat("0", 64))
		for _, worker := range []string{"box", "keyed", "other"} {
			if lease := rack.lease(worker); lease != nil {
				t.Errorf("%s has %+v", worker, lease)
			}
		}
		if waits := w.view(made.ID).Waits; len(waits) != 1 || !strings.Contains(waits[0].Reason, "tandem worker --confidential auto --broker URL --policy "+aPolicy) {
			t.Errorf("it waits for %+v", waits)
		}
		if wanted, err := w.service.Wanted(w.ctx); err != nil || len(wanted.Studies) > 0 {
			t.Errorf("a launcher is told %+v, %v", wanted, err)
		}
		rack.registerConfidential("cvm", aPolicy)
		lease := rack.mustLease("cvm")
		if lease.Confidential == nil || lease.Confidential.Policy != aPolicy || lease.Sandbox != "strict" {
			t.Errorf("the lease has %+v", lease)
		}
		for say, metrics := range map[string]map[string]trial.Float{"metric_not_declared": {"accuracy": 0.5, "patient-zero": 0}, "metric_too_precise": {"accuracy": 0.123456}} {
			_, err := rack.service.Report(rack.ctx, lease.Trial, protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Seconds: 1, Metrics: metrics})
			if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), say) || strings.Contains(err.Error(), "patient-zero") {
				t.Errorf("%v: %v", metrics, err)
			}
		}
		report := protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Seconds: 1, Metrics: map[string]trial.Float{"accuracy": 0.12}, Attestation: "signed", Profile: &trial.Profile{Host: map[string]trial.Float{"tree.resident_bytes": 1 << 20}}}
		if _, err := rack.service.Report(rack.ctx, lease.Trial, report); err != nil {
			t.Fatal(err)
		}
		if reports, err := w.store.Reports(w.ctx, lease.Trial); err != nil || reports[0].Profile != nil || reports[0].Attestation != "signed" {
			t.Errorf("it keeps %+v, %v", reports, err)
		}
		if err := rack.service.AppendLog(rack.ctx, lease.Trial, protocol.LogChunk{LeaseEpoch: lease.LeaseEpoch, Text: "patient-zero"}); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "log_refused") {
			t.Errorf("a log: %v", err)
		}
		if err := rack.service.KeepSamples(rack.ctx, lease.Trial, trial.Samples{LeaseEpoch: lease.LeaseEpoch, Seconds: 1}); !problem.Is(err, problem.Invalid) {
			t.Errorf("samples: %v", err)
		}
	})(t)
}

// A broker that is away is no worker's fault: none is excluded, and the study says it.
func TestNoWorkerIsBlamedForABroker(t *testing.T) {
	in(func(t *testing.T, w *world) {
		made := w.create("objective:", "encryption: {recipients: ["+aRecipient+"]}\nconfidential: {policy: "+aPolicy+", metrics: {accuracy: {low: 0, high: 1, round: 0.01}}}\nobjective:")
		rack := w.as(workerOf("rack"))
		rack.registerConfidential("first", aPolicy)
		rack.registerConfidential("second", aPolicy)
		for range 3 {
			for _, worker := range []string{"first", "second"} {
				lease := rack.mustLease(worker)
				if _, err := rack.service.Finish(rack.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.Interrupted, Reason: protocol.NoKey + "the broker did not answer"}); err != nil {
					t.Fatal(err)
				}
				if waits := w.view(made.ID).Waits; len(waits) != 1 || !strings.Contains(waits[0].Reason, "worker "+worker+" gave trial 0 back: no key can be had now") {
					t.Errorf("it waits for %+v", waits)
				}
			}
		}
		leases := map[string]*protocol.Lease{"first": rack.mustLease("first"), "second": rack.mustLease("second")}
		for worker, lease := range leases {
			if _, err := rack.service.Finish(rack.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.Interrupted, Reason: protocol.NoKey + "refused to " + worker}); err != nil {
				t.Fatal(err)
			}
		}
		if said := fmt.Sprint(w.view(made.ID).Waits); !strings.Contains(said, "refused to first") || !strings.Contains(said, "refused to second") {
			t.Errorf("of two workers without a key it says %s", said)
		}
		if one := w.trials(made.ID)[0]; one.Failures > 0 || len(one.FailedStarts) > 0 {
			t.Errorf("the trial has %+v", one)
		}
	})(t)
}

func TestAConfidentialWorkerRunsNothingElse(t *testing.T) {
	in(func(t *testing.T, w *world) {
		made := w.create()
		rack := w.as(workerOf("rack"))
		rack.registerConfidential("cvm", aPolicy)
		if lease := rack.lease("cvm"); lease != nil {
			t.Errorf("it has %+v", lease)
		}
		if waits := w.view(made.ID).Waits; len(waits) != 1 || !strings.Contains(waits[0].Reason, "without --identity or --confidential") {
			t.Errorf("it waits for %+v", waits)
		}
	})(t)
}

// keyOf is how far the trial is with its key, and how many lines of the log tell of trials.
func (w *world) keyOf(lease *protocol.Lease) (trial.Attestation, int) {
	w.t.Helper()
	one := w.trial(lease.Trial)
	if one.Attestation == nil {
		w.t.Fatalf("trial %s is none of a confidential study", lease.Trial)
	}
	return *one.Attestation, w.log(one.Study)
}

// People see that a trial waits for its key, from the lease to what its worker says.
func TestPeopleSeeThatATrialIsAttesting(t *testing.T) {
	in(func(t *testing.T, w *world) {
		made := w.create("objective:", "encryption: {recipients: ["+aRecipient+"]}\nconfidential: {policy: "+aPolicy+", metrics: {accuracy: {low: 0, high: 1, round: 0.01}}}\nobjective:")
		rack := w.as(workerOf("rack"))
		rack.registerConfidential("cvm", aPolicy)
		told := func(want protocol.Disclosed) {
			t.Helper()
			if got := w.view(made.ID).Progress.Disclosed; got == nil || *got != want {
				t.Errorf("the study says %+v, not %+v", got, want)
			}
		}
		beat := func(lease *protocol.Lease, keyed bool) {
			t.Helper()
			held := []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch, Keyed: keyed}}
			if reply, err := rack.service.Heartbeat(rack.ctx, "cvm", protocol.Heartbeat{Leases: held}); err != nil || len(reply.Lost) > 0 {
				t.Fatalf("%+v, %v", reply, err)
			}
		}
		told(protocol.Disclosed{})
		lease := rack.mustLease("cvm")
		if key, _ := w.keyOf(lease); key.State != trial.Attesting || key.LeaseEpoch != lease.LeaseEpoch || !strings.HasSuffix(w.trial(lease.Trial).Reason, "asks the broker for its key") {
			t.Errorf("a lease has %+v: %s", key, w.trial(lease.Trial).Reason)
		}
		_, lines := w.keyOf(lease)
		beat(lease, false)
		if key, now := w.keyOf(lease); key.State != trial.Attesting || now != lines {
			t.Errorf("a heartbeat without the key leaves %+v, and %d lines after %d", key, now, lines)
		}
		told(protocol.Disclosed{Attesting: 1})
		beat(lease, true)
		beat(lease, true)
		if key, now := w.keyOf(lease); key.State != trial.KeyReleased || now != lines+1 || w.trial(lease.Trial).Reason != "the broker released the key" || w.trial(lease.Trial).State != trial.Leased {
			t.Errorf("two with it leave %+v, and %d lines after %d", key, now, lines)
		}
		told(protocol.Disclosed{Released: 1})
		if _, err := rack.service.Report(rack.ctx, lease.Trial, protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Seconds: 1, Attestation: "signed", Metrics: map[string]trial.Float{"accuracy": 0.12}}); err != nil {
			t.Fatal(err)
		}
		told(protocol.Disclosed{Released: 1, Bits: 7})
		if key, _ := w.keyOf(lease); !key.Kept || key.State != trial.KeyReleased {
			t.Errorf("a report with the broker's word leaves %+v", key)
		}
		rack.registerConfidential("second", aPolicy)
		second := rack.mustLease("second") // reports, though no heartbeat said that it has the key
		report := protocol.Report{LeaseEpoch: second.LeaseEpoch, Epoch: 1, Seconds: 1, Metrics: map[string]trial.Float{"accuracy": 0.12}}
		if _, err := rack.service.Report(rack.ctx, second.Trial, report); err != nil {
			t.Fatal(err)
		}
		told(protocol.Disclosed{Released: 2, Bits: 14})
		for i, end := range []protocol.FinishRequest{
			{Outcome: protocol.Interrupted, Reason: protocol.CannotRun + "the broker released no key: unknown_measurement", KeyRefused: "unknown_measurement"},
			{Outcome: protocol.Interrupted, Reason: protocol.NoKey + "the broker did not answer"},
		} {
			rack.registerConfidential([]string{"third", "fourth"}[i], aPolicy)
			lease := rack.mustLease([]string{"third", "fourth"}[i])
			end.LeaseEpoch = lease.LeaseEpoch
			if _, err := rack.service.Finish(rack.ctx, lease.Trial, end); err != nil {
				t.Fatal(err)
			}
			want := []trial.Attestation{{State: trial.KeyRefused, Code: "unknown_measurement", LeaseEpoch: lease.LeaseEpoch, Refused: 1}, {State: trial.KeyUnanswered, LeaseEpoch: lease.LeaseEpoch, Refused: 1}}[i]
			if key, _ := w.keyOf(lease); key.State != want.State || key.Code != want.Code || key.Refused != want.Refused || key.LeaseEpoch != want.LeaseEpoch || w.trial(lease.Trial).State != trial.Queued {
				t.Errorf("%+v leaves %+v", end, key)
			}
		}
		told(protocol.Disclosed{Released: 2, Refused: 1, Bits: 14})
		rack.registerConfidential("fifth", aPolicy)
		failing := rack.mustLease("fifth") // its script fails at once, before a heartbeat
		if _, err := rack.service.Finish(rack.ctx, failing.Trial, protocol.FinishRequest{LeaseEpoch: failing.LeaseEpoch, Outcome: protocol.CommandFailed, Keyed: true}); err != nil {
			t.Fatal(err)
		}
		if key, _ := w.keyOf(failing); key.State != trial.KeyReleased {
			t.Errorf("a script that failed had %+v", key)
		}
		w.replays(made)
	})(t)
}

// Whatever a worker says of keys, a study that is not confidential has none.
func TestOrdinaryTrialsNeverAttest(t *testing.T) {
	in(func(t *testing.T, w *world) {
		made := w.create(oneRung...)
		w.register("box")
		lease := w.mustLease("box")
		before := w.log(made.ID)
		if _, err := w.service.Heartbeat(w.ctx, "box", protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch, Keyed: true}}}); err != nil {
			t.Fatal(err)
		}
		if one := w.trial(lease.Trial); one.Attestation != nil || w.log(made.ID) != before || w.view(made.ID).Progress.Disclosed != nil || strings.Contains(one.Reason, "key") {
			t.Errorf("it has %+v: %s", one.Attestation, one.Reason)
		}
	})(t)
}
