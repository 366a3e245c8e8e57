package workspace

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/agenttest"
)

func noRestore(string) error { return nil }

// open opens a workspace as an agent does.
func openIn(t *testing.T, scratch string) *Workspace {
	t.Helper()
	w, err := Open(scratch, "living-worker", "", noRestore, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func epochsOf(l Letter) string {
	text := ""
	for _, report := range l.Reports {
		text += fmt.Sprintf("%d:%g ", report.Epoch, float64(report.Metrics["loss"]))
	}
	return text
}

func TestAnOutboxHasWhatWasNotAnswered(t *testing.T) {
	w := openIn(t, t.TempDir())
	held := protocol.HeldLease{Trial: "s-7", LeaseEpoch: 3}
	o, err := w.OpenOutbox(held)
	if err != nil {
		t.Fatal(err)
	}
	keep := func(epoch int, loss trial.Float) {
		if err := o.Keep(protocol.Report{LeaseEpoch: 3, Epoch: epoch, Metrics: map[string]trial.Float{"loss": loss}}); err != nil {
			t.Fatal(err)
		}
	}
	keep(1, 10)
	keep(2, 20)
	if err := o.Answered(1); err != nil {
		t.Fatal(err)
	}
	keep(4, 40)
	keep(3, 30) // as the script reported them
	keep(2, 21) // the same epoch again, now measured
	if err := o.Answered(9); err != nil {
		t.Fatal(err)
	}
	got, err := o.Seal()
	if err != nil || got.Held != held || epochsOf(got) != "2:21 4:40 3:30 " {
		t.Errorf("it has %+v: %s, %v", got.Held, epochsOf(got), err)
	}
	keep(5, 50) // too late, and no fault
	if again, err := readLetter(o.path); err != nil || epochsOf(again) != epochsOf(got) {
		t.Errorf("afterwards it has %s, %v", epochsOf(again), err)
	}
	o.Remove()
	if _, err := os.Stat(o.path); err == nil {
		t.Error("it is still there")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestAnOutboxSurvivesTheNextAgentToo(t *testing.T) {
	scratch := t.TempDir()
	held := protocol.HeldLease{Trial: "s-7", LeaseEpoch: 3}
	agenttest.AbandonedOutbox(t, scratch, held, []int{1, 2, 3}, []int{1})
	for life, dead := range []string{"killed-worker", "living-worker", "living-worker"} { // each is killed before it has told anything
		w := openIn(t, scratch)
		if len(w.Dead) != 1 || w.Dead[0] != dead {
			t.Errorf("life %d follows %v, not %s", life, w.Dead, dead)
		}
		if len(w.Inherited) != 1 || w.Inherited[0].Held != held || epochsOf(w.Inherited[0]) != "2:0 3:0 " {
			t.Fatalf("life %d has inherited %+v", life, w.Inherited)
		}
		w.group.Remove()
		if err := w.lock.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w := openIn(t, scratch)
	if err := os.Remove(w.Inherited[0].Path); err != nil { // it was told
		t.Fatal(err)
	}
	w.group.Remove()
	if err := w.lock.Close(); err != nil {
		t.Fatal(err)
	}
	last := openIn(t, scratch)
	if len(last.Inherited) != 0 {
		t.Errorf("what was told is inherited: %+v", last.Inherited)
	}
	if err := last.Close(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(scratch, "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestNoRoomForAnOutboxIsNoFault(t *testing.T) {
	var o *Outbox
	if o.Keep(protocol.Report{}) != nil || o.Answered(1) != nil {
		t.Error("an outbox that is not there refuses something")
	}
	if _, err := o.Seal(); err == nil {
		t.Error("an outbox that is not there has something")
	}
	o.Remove()
	path := filepath.Join(t.TempDir(), "torn.jsonl")
	if err := os.WriteFile(path, []byte(`{"lease":{"trial_i`), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := readLetter(path); err == nil {
		t.Errorf("a file that was torn at once is read as %+v", l)
	}
}

// The number of a dead agent's command may mean a stranger by now, who leads a
// process group of its own.
func TestTheNextAgentLeavesStrangersAlone(t *testing.T) {
	stranger := exec.Command("sleep", "1000")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := stranger.Start(); err != nil {
		t.Skipf("no sleep: %v", err)
	}
	t.Cleanup(func() {
		_ = stranger.Process.Kill() // it may have ended
		_ = stranger.Wait()
	})
	number := stranger.Process.Pid

	scratch := t.TempDir()
	dead := openIn(t, scratch)
	dead.group.Remove()
	for _, record := range []string{groupRecord, socketsRecord} { // names of what was, with the number in them
		if err := os.WriteFile(filepath.Join(dead.directory, record), fmt.Appendf(nil, "/nonexistent/tandem-%d-a", number), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := dead.lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := openIn(t, scratch).Close(); err != nil {
		t.Fatal(err)
	}
	if !agenttest.ChildRuns(number) {
		t.Error("the stranger was ended")
	}
}

// What lies in memory goes with the worker, and with the start of the next one if it is killed.
func TestWhatIsInMemoryDoesNotStay(t *testing.T) {
	scratch := t.TempDir()
	killed, closed, never, gone := openIn(t, scratch), openIn(t, scratch), openIn(t, scratch), openIn(t, filepath.Join(scratch, "gone"))
	folders := []string{killed.Memory(), closed.Memory(), gone.Memory()}
	for _, folder := range folders {
		if about, err := os.Stat(folder); err != nil || about.Mode().Perm() != 0o700 {
			t.Fatalf("%s: %v, %v", folder, about, err)
		}
		if err := os.MkdirAll(filepath.Join(folder, "a", "b"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if again := closed.Memory(); again != folders[1] {
		t.Errorf("it has another one: %s", again)
	}
	if err := errors.Join(closed.Close(), never.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(folders[0]); err != nil {
		t.Errorf("that of a worker that lives went: %v", err)
	}
	// As when their processes end, and somebody removes the scratch folder of one.
	if err := errors.Join(killed.lock.Close(), killed.memoryLock.Close(), gone.lock.Close(), gone.memoryLock.Close(), os.RemoveAll(gone.directory)); err != nil {
		t.Fatal(err)
	}
	if err := openIn(t, scratch).Close(); err != nil {
		t.Error(err)
	}
	for _, folder := range folders {
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			t.Errorf("%s: %v", folder, err)
		}
	}
}

// An agent that was killed just now may still be dying when the next one starts.
func TestADyingAgentIsWaitedFor(t *testing.T) {
	scratch := t.TempDir()
	dead := openIn(t, scratch)
	dead.group.Remove()
	ended := make(chan error, 1)
	go func() {
		time.Sleep(dying / 4)
		ended <- dead.lock.Close()
	}()
	next := openIn(t, scratch)
	if err := <-ended; err != nil || len(next.Dead) != 1 {
		t.Errorf("it follows %v, %v", next.Dead, err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

// Of two workers of one name with one scratch folder, the second does not start while the
// first one's process has the folder. Others share it: the placebo.
func TestTheSecondWorkerOfANameIsRefused(t *testing.T) {
	scratch, quiet := t.TempDir(), slog.New(slog.NewTextHandler(io.Discard, nil))
	open := func(name string) (*Workspace, error) { return Open(scratch, "id-of-"+name, name, noRestore, quiet) }
	first, err := open("box")
	if err != nil {
		t.Fatal(err)
	}
	told := fmt.Sprintf("process %d runs as worker box with the scratch folder %s already: end it, or start this worker with another --name", os.Getpid(), scratch)
	if second, err := open("box"); err == nil || !strings.HasPrefix(err.Error(), told) {
		t.Fatalf("%v, %v", second, err)
	}
	for _, name := range []string{"box-2", "", ""} {
		other, err := open(name)
		if err != nil {
			t.Fatalf("a worker named %q: %v", name, err)
		}
		defer other.Close()
	}
	if _, err := open("box"); err == nil || !strings.HasPrefix(err.Error(), told) {
		t.Errorf("among others: %v", err)
	}
	first.group.Remove()
	if err := first.lock.Close(); err != nil { // as when its process is killed
		t.Fatal(err)
	}
	next, err := open("box")
	if err != nil || len(next.Dead) != 1 || next.Dead[0] != "id-of-box" {
		t.Fatalf("the next one: %v", err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if again, err := open("box"); err != nil || again.Close() != nil {
		t.Errorf("once that one has ended: %v", err)
	}
}
