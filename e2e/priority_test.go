package e2e_test

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// urgentFile is a study whose trials this test trains by hand: the worker's owner
// does not allow its command.
const urgentFile = `
name: urgent
priority: 5
response_seconds: {mean: 0.5}
command: [python3, by_hand.py]
objective: {metric: loss, direction: minimize}
space: {x: {type: float, low: 0, high: 1}}
budget: {epochs: 2}
search: {method: random, seed: 3}
stop: {trials: 50}
`

// TestAStudyLeavesDataOutOnlyWhileAnotherIsUrgent has a worker train a study of
// low priority with a real script, while one of high priority comes, waits for a
// worker that the low one holds, and goes.
func TestAStudyLeavesDataOutOnlyWhileAnotherIsUrgent(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "patient", threeRungs, "0.01", 5000)
	file, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	content := strings.Replace(string(file), "seconds: 120", "seconds: 1200", 1) + "priority: -1\napproximation: {most_drop: 0.1}\n"
	if err := os.WriteFile(s.file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	at := newSite(t)
	at.must("study", "create", s.file)
	at.worker("--name", "rack", "--allow-command", "python3 train.py", "--pass-env", "PYTHONPATH,LEDGER,EPOCH_SECONDS")
	client, err := rest.New(rest.Options{URL: "http://" + at.listen, Token: strings.TrimSpace(at.token)})
	if err != nil {
		t.Fatal(err)
	}
	h := byHand{t, client, "hand-worker"}
	until(t, "a trial of the patient study has ended", func() bool { return h.told("patient").Met != nil })
	if told := h.told("patient"); told.Drop != 0 {
		t.Errorf("before anything is urgent: %+v", told)
	}

	if _, err := client.Register(t.Context(), protocol.WorkerRegistration{ID: h.id, Name: "hand", Slots: 1}); err != nil {
		t.Fatal(err)
	}
	held := h.lease()
	if _, err := client.CreateStudy(t.Context(), []byte(urgentFile), "application/yaml"); err != nil {
		t.Fatal(err)
	}
	var why string
	defer func() { t.Logf("the patient study: %s", why) }()
	until(t, "the patient study leaves data out", func() bool {
		h.beat(held)
		told := h.told("patient")
		why = told.Why
		return told.Drop == 0.1
	})
	until(t, "a trial of it was measured on less data", func() bool {
		h.beat(held)
		for _, one := range h.trials("patient") {
			for _, result := range one.Results {
				if result.Deflation != nil {
					if full := []float64{0.25, 0.5, 1}[result.Rung]; math.Abs(result.Budget.DataFraction-0.9*full) > 1e-9 {
						t.Errorf("trial %d used %g of the data at rung %d, want 0.9 of %g", one.Number, result.Budget.DataFraction, result.Rung, full)
					}
					return true
				}
			}
		}
		return false
	})
	if shown := at.must("study", "show", "patient"); !strings.Contains(shown, "10% of the data is left out") {
		t.Errorf("the study is shown as\n%s", shown)
	}

	if _, err := client.StopStudy(t.Context(), "urgent"); err != nil {
		t.Fatal(err)
	}
	until(t, "nothing is left out any more", func() bool { return h.told("patient").Drop == 0 })
	begun := len(h.trials("patient")) + 1 // but for one that was on its way to the worker
	until(t, "a trial that began since was measured", func() bool {
		all := h.trials("patient")
		for _, one := range all[min(begun, len(all)):] {
			if one.Deflation != nil {
				t.Fatalf("trial %d began when nothing was urgent, and leaves out %+v", one.Number, one.Deflation)
			}
			if len(one.Results) > 0 {
				return true
			}
		}
		return false
	})
	at.must("study", "stop", "patient")
}

// byHand is a worker that the test is.
type byHand struct {
	t      testing.TB
	client *rest.Client
	id     string
}

func (h byHand) told(study string) protocol.StudyDeflation {
	h.t.Helper()
	answer, err := h.client.Deflation(h.t.Context(), study)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer
}

// trials are the study's, by number.
func (h byHand) trials(study string) []protocol.RankedTrial {
	h.t.Helper()
	page, err := h.client.Trials(h.t.Context(), study, protocol.TrialQuery{Sort: "number", Limit: 10_000})
	if err != nil {
		h.t.Fatal(err)
	}
	return page.Trials
}

// lease takes a trial, of whichever study there is.
func (h byHand) lease() protocol.HeldLease {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	reply, err := h.client.Lease(ctx, protocol.LeaseRequest{Worker: h.id, WaitSeconds: 30})
	if err != nil || reply.Lease == nil {
		h.t.Fatalf("a trial to hold: %+v, %v", reply, err)
	}
	return protocol.HeldLease{Trial: reply.Lease.Trial, LeaseEpoch: reply.Lease.LeaseEpoch}
}

// beat says that the trial is still held.
func (h byHand) beat(held protocol.HeldLease) {
	h.t.Helper()
	if _, err := h.client.Heartbeat(h.t.Context(), h.id, protocol.Heartbeat{Leases: []protocol.HeldLease{held}}); err != nil {
		h.t.Fatal(err)
	}
}
