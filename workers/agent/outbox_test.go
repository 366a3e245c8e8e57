package agent

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

func noRestore(string) error { return nil }

// open opens a workspace as an agent does.
func openIn(t *testing.T, scratch string) *workspace {
	t.Helper()
	w, err := openWorkspace(scratch, noRestore, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// AbandonedOutbox leaves the folder of an agent that was killed while it
// reported the epochs under the lease, of which some were answered; it was just
// writing when it was killed.
func AbandonedOutbox(t *testing.T, scratch string, held protocol.HeldLease, epochs, answered []int) {
	t.Helper()
	w := openIn(t, scratch)
	o, err := w.openOutbox(held)
	if err != nil {
		t.Fatal(err)
	}
	for _, epoch := range epochs {
		if err := o.keep(protocol.Report{LeaseEpoch: held.LeaseEpoch, Epoch: epoch, Metrics: map[string]trial.Float{"accuracy": 0.5}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, epoch := range answered {
		if err := o.answered(epoch); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(o.file, `{"report":{"lease_epoch":1,"ep`); err != nil {
		t.Fatal(err)
	}
	_ = o.file.Close()
	w.group.Remove()
	if err := w.lock.Close(); err != nil { // as the kernel does
		t.Fatal(err)
	}
}

func epochsOf(l letter) string {
	text := ""
	for _, report := range l.reports {
		text += fmt.Sprintf("%d:%g ", report.Epoch, float64(report.Metrics["loss"]))
	}
	return text
}

func TestAnOutboxHasWhatWasNotAnswered(t *testing.T) {
	w := openIn(t, t.TempDir())
	held := protocol.HeldLease{Trial: "s-7", LeaseEpoch: 3}
	o, err := w.openOutbox(held)
	if err != nil {
		t.Fatal(err)
	}
	keep := func(epoch int, loss trial.Float) {
		if err := o.keep(protocol.Report{LeaseEpoch: 3, Epoch: epoch, Metrics: map[string]trial.Float{"loss": loss}}); err != nil {
			t.Fatal(err)
		}
	}
	keep(1, 10)
	keep(2, 20)
	if err := o.answered(1); err != nil {
		t.Fatal(err)
	}
	keep(4, 40)
	keep(3, 30) // as the script reported them
	keep(2, 21) // the same epoch again, now measured
	if err := o.answered(9); err != nil {
		t.Fatal(err)
	}
	got, err := o.seal()
	if err != nil || got.held != held || epochsOf(got) != "2:21 4:40 3:30 " {
		t.Errorf("it has %+v: %s, %v", got.held, epochsOf(got), err)
	}
	keep(5, 50) // too late, and no fault
	if again, err := readLetter(o.path); err != nil || epochsOf(again) != epochsOf(got) {
		t.Errorf("afterwards it has %s, %v", epochsOf(again), err)
	}
	o.remove()
	if _, err := os.Stat(o.path); err == nil {
		t.Error("it is still there")
	}
	if err := w.close(); err != nil {
		t.Error(err)
	}
}

func TestAnOutboxSurvivesTheNextAgentToo(t *testing.T) {
	scratch := t.TempDir()
	held := protocol.HeldLease{Trial: "s-7", LeaseEpoch: 3}
	AbandonedOutbox(t, scratch, held, []int{1, 2, 3}, []int{1})
	for life := range 3 { // each is killed before it has told anything
		w := openIn(t, scratch)
		if len(w.inherited) != 1 || w.inherited[0].held != held || epochsOf(w.inherited[0]) != "2:0 3:0 " {
			t.Fatalf("life %d has inherited %+v", life, w.inherited)
		}
		w.group.Remove()
		if err := w.lock.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w := openIn(t, scratch)
	if err := os.Remove(w.inherited[0].path); err != nil { // it was told
		t.Fatal(err)
	}
	w.group.Remove()
	if err := w.lock.Close(); err != nil {
		t.Fatal(err)
	}
	last := openIn(t, scratch)
	if len(last.inherited) != 0 {
		t.Errorf("what was told is inherited: %+v", last.inherited)
	}
	if err := last.close(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(scratch, "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestNoRoomForAnOutboxIsNoFault(t *testing.T) {
	var o *outbox
	if o.keep(protocol.Report{}) != nil || o.answered(1) != nil {
		t.Error("an outbox that is not there refuses something")
	}
	if _, err := o.seal(); err == nil {
		t.Error("an outbox that is not there has something")
	}
	o.remove()
	path := filepath.Join(t.TempDir(), "torn.jsonl")
	if err := os.WriteFile(path, []byte(`{"lease":{"trial_i`), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := readLetter(path); err == nil {
		t.Errorf("a file that was torn at once is read as %+v", l)
	}
}
