package e2e_test

import (
	"bytes"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/failpoint"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// sealedScript keeps weights that the server must not see, with what it read of its data,
// which it tries to change, and looks for the key.
const sealedScript = `
import os
from pathlib import Path

import tandem

DATA = tandem.dataset("scans") if "TANDEM_DATA_SCANS" in os.environ else Path("scans")
WEIGHTS = "-".join(["what", "the", "model", "has", "learned"]) + (DATA / "a" / "patients.csv").read_text()

def note(what, trial, epoch):
    with Path(os.environ["LEDGER"]).open("a", encoding="utf-8") as ledger:
        ledger.write(f"{what} {trial.number} {trial.rung} {epoch} {os.getpid()}\n")

def load(path):
    if Path(path).read_text() != WEIGHTS:
        raise SystemExit("the checkpoint is another one")

trial = tandem.current_trial()
if trial.first_epoch > 1:
    trial.restore(load)
    note("restored", trial, trial.first_epoch)
for epoch in trial.epochs():
    trial.report(accuracy=(1 - (trial.params["x"] - 0.7) ** 2) * (1 - 1 / (epoch + 1)))
    trial.checkpoint(lambda path: Path(path).write_text(WEIGHTS))
    note("kept", trial, epoch)
try:
    Path("workers.key").read_text()
    note("stolen", trial, 0)
except OSError:
    pass
try:
    (DATA / "another.csv").write_text("x")
    note("written", trial, 0)
except OSError:
    pass
`

// canaries are what no server may see: of the model, and of the data.
var canaries = []string{"what-the-model-has-learned", "patient-zero"}

// newSealed is a study with sealedScript, and its data beside it.
func newSealed(t *testing.T, name, budget string, trials int) study {
	t.Helper()
	s := newStudy(t, name, budget, "0", trials)
	folder := filepath.Dir(s.file)
	data := filepath.Join(folder, "scans", "a")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{filepath.Join(folder, "train.py"): sealedScript, filepath.Join(data, "patients.csv"): canaries[1]} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// encrypted makes a key, and has the study use it, for its data too, of which no other copy
// stays.
func (s study) encrypted(t *testing.T, at *tap) (key string) {
	t.Helper()
	folder := filepath.Dir(s.file)
	key, set := filepath.Join(folder, "workers.key"), filepath.Join(t.TempDir(), "scans.tde")
	recipient := strings.TrimSpace(cli(t, nil, "keys", "create", "--out", key).stdout)
	at.must("dataset", "encrypt", filepath.Join(folder, "scans"), "--name", "scans", "--identity", key, "--output", set)
	made := read[protocol.Dataset](t, at.must("dataset", "publish", set, "--json"))
	if err := os.RemoveAll(filepath.Join(folder, "scans")); err != nil {
		t.Fatal(err)
	}
	s.rewrite("objective:", "encryption: {recipients: ["+recipient+"], datasets: {scans: "+made.Artifact+"}}\nobjective:")
	return key
}

// tap is a site whose server hears everything through it.
type tap struct {
	*site
	mutex     sync.Mutex
	heard     bytes.Buffer
	encrypted int // files that found saw
	canaries  []string
}

// newTap listens between the clients and the server.
func newTap(t *testing.T, args ...string) *tap {
	t.Helper()
	at := newSite(t, args...)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	here := *at
	one := &tap{site: &here, canaries: canaries}
	here.listen = listener.Addr().String()
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for from, err := listener.Accept(); err == nil; from, err = listener.Accept() {
			go one.pass(from, at.listen)
		}
	}()
	return one
}

func (one *tap) Write(p []byte) (int, error) {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	return one.heard.Write(p)
}

func (one *tap) pass(from net.Conn, server string) {
	defer from.Close()
	to, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(to, io.TeeReader(from, one))
		_ = to.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(from, to)
	_ = to.Close()
}

// found are the canaries in what the server heard, and in all its files.
func (one *tap) found(t *testing.T) (heard, kept []string) {
	t.Helper()
	one.mutex.Lock()
	defer one.mutex.Unlock()
	for _, canary := range one.canaries {
		if bytes.Contains(one.heard.Bytes(), []byte(canary)) {
			heard = append(heard, canary)
		}
		err := filepath.WalkDir(one.data, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			if bytes.Contains(content, []byte(canary)) {
				kept = append(kept, canary)
			}
			if bytes.HasPrefix(content, []byte("age-encryption.org/v1\n")) {
				one.encrypted++
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	return heard, kept
}

// TestInTheClearTheServerKnowsAll: what the test below looks for is found where nothing is
// encrypted.
func TestInTheClearTheServerKnowsAll(t *testing.T) {
	t.Parallel()
	s, at := newSealed(t, "clear", threeRungs, 6), newTap(t)
	at.worker("--name", "first", "--allow-read", filepath.Dir(s.file))
	at.must("study", "create", s.file, "--watch")
	heard, kept := at.found(t)
	for _, canary := range canaries {
		if !slices.Contains(heard, canary) || !slices.Contains(kept, canary) {
			t.Errorf("of %s nothing is found: heard %v, kept %v", canary, heard, kept)
		}
	}
}

// TestTheServerHoldsCiphertextOnly: trials of an encrypted study with an encrypted data set
// are promoted and move between two workers that hold its key. What they learned, and from
// what, is found in no byte that the server hears and in no file of it, and a worker without
// the key runs none of them.
func TestTheServerHoldsCiphertextOnly(t *testing.T) {
	t.Parallel()
	s := newSealed(t, "sealed", threeRungs, 6)
	at := newTap(t)
	key := s.encrypted(t, at)
	if again := cli(t, nil, "keys", "create", "--out", key); again.code == 0 || !strings.Contains(again.stderr, "never overwritten") {
		t.Errorf("a key was overwritten: %s", again.stderr)
	}
	if refused := at.cli("dataset", "publish", s.file); refused.code == 0 || !strings.Contains(refused.stderr, "nothing was sent") {
		t.Errorf("a file in the clear: %s", refused.stderr)
	}
	without := at.worker("--name", "without")
	at.must("study", "create", s.file)
	until(t, "the reason why it waits", func() bool {
		waits := read[protocol.StudyView](t, at.must("study", "show", s.name, "--json")).Waits
		return len(waits) == 1 && strings.Contains(waits[0].Reason, "tandem worker --identity FILE")
	})
	first := at.worker("--name", "first", "--identity", key)
	until(t, "a checkpoint", func() bool { return len(s.entries("kept")) > 0 })
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	at.worker("--name", "second", "--identity", key)
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	if p := found.Study.Progress; p.Created != 6 || p.Promotions == 0 || p.Resumes == 0 || p.Trials[trial.Failed] > 0 || len(s.entries("restored")) == 0 {
		t.Errorf("the study ended with %+v after %d restored checkpoints", p, len(s.entries("restored")))
	}
	workers := read[[]protocol.Worker](t, at.must("workers", "--json"))
	if strings.Contains(without.Output(), "leased") {
		t.Errorf("the worker without the key ran a trial:\n%s", without.Output())
	}
	if len(s.entries("stolen")) > 0 && workers[0].Sandbox.Complete() {
		t.Error("the script could read the key")
	}
	if len(s.entries("written")) > 0 && workers[0].Sandbox.Complete() {
		t.Error("the script could change its data")
	}
	if heard, kept := at.found(t); len(heard)+len(kept) > 0 || at.encrypted == 0 {
		t.Errorf("the server heard %v, and keeps %v, with %d encrypted files", heard, kept, at.encrypted)
	}

	model := filepath.Join(t.TempDir(), "model")
	if refused := at.cli("study", "checkpoint", s.name, "--output", model+"-refused"); refused.code == 0 || !strings.Contains(refused.stderr, "--identity FILE") {
		t.Errorf("without the key it says %s", refused.stderr)
	}
	if _, err := os.Stat(model + "-refused"); !os.IsNotExist(err) {
		t.Errorf("what was refused left a folder: %v", err)
	}
	if said := at.must("study", "checkpoint", s.name, "--output", model, "--identity", key); strings.Contains(said, "not checked") {
		t.Error(said)
	}
	if content, err := os.ReadFile(filepath.Join(model, "checkpoint")); err != nil || string(content) != strings.Join(canaries, "") {
		t.Errorf("the winner's checkpoint is %q, %v", content, err)
	}
	if shown := at.must("study", "show", s.name); !strings.Contains(shown, "encrypted to 1 key") {
		t.Errorf("shown is\n%s", shown)
	}
	at.must("dataset", "delete", read[struct{ Datasets []protocol.Dataset }](t, at.must("dataset", "list", "--json")).Datasets[0].Artifact)
	if left := at.must("dataset", "list"); !strings.Contains(left, "There is no data set") {
		t.Error(left)
	}
}

// TestAKilledWorkerLeavesNothingInTheClear: a worker is killed between encrypting a
// checkpoint and sending it. The trial goes on from the one before, and what lay in the
// clear on the machine goes with the next worker's start.
func TestAKilledWorkerLeavesNothingInTheClear(t *testing.T) {
	t.Parallel()
	breakable, err := forTests()
	if err != nil {
		t.Fatal(err)
	}
	s, at := newSealed(t, "killed", nineEpochs, 1), newTap(t)
	folder, scratch := filepath.Dir(s.file), t.TempDir()
	key := s.encrypted(t, at)
	line := append(append([]string{"worker", "--probe", "never", "--scratch", scratch}, opened(t)...), "--identity", key)
	fired := filepath.Join(t.TempDir(), "fired")
	killed, err := launch.Start(breakable, append(at.environment(), "TANDEM_FAILPOINTS="+string(failpoint.AgentPacked)+"=kill@3", "TANDEM_FAILPOINTS_FIRED="+fired), line...)
	if err != nil {
		t.Fatal(err)
	}
	endsWith(t, killed)
	at.must("study", "create", s.file)
	until(t, "the worker's end", killed.Ended)
	if _, err := os.Stat(fired + "." + string(failpoint.AgentPacked)); err != nil {
		t.Fatalf("it did not break there: %v\n%s", err, killed.Output())
	}
	memory := inMemory(t, scratch)
	if len(holding(t, scratch)) == 0 {
		t.Fatal("there was nothing to remove: no file of its scratch folder holds something in the clear")
	}
	// Any worker that starts on this machine, such as another test's, removes what is in memory.
	until(t, "its data set in memory, or the end of that", func() bool {
		_, err := os.Stat(memory)
		return os.IsNotExist(err) || len(holding(t, memory)) > 0
	})
	next, err := launch.Start(binary, at.environment(), line...)
	if err != nil {
		t.Fatal(err)
	}
	endsWith(t, next)
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	kept, restored := s.entries("kept"), s.entries("restored")
	// The script may have been answered that its third checkpoint is packed, before the kill.
	if len(kept) == 10 && kept[2].epoch == 3 && kept[2].pid == kept[0].pid {
		kept = slices.Delete(kept, 2, 3)
	}
	if len(restored) != 1 || restored[0].epoch != 3 || len(kept) != 9 || kept[1].epoch != 2 || kept[2].epoch != 3 || kept[2].pid == kept[0].pid || found.Study.Progress.Trials[trial.Failed] > 0 {
		t.Errorf("of 9 epochs, with the worker killed at the third, there are restored %v and kept %v: %+v", restored, kept, found.Study.Progress)
	}
	if err := next.Stop(); err != nil {
		t.Error(err)
	}
	if lies := holding(t, scratch, memory, folder); len(lies) > 0 {
		t.Errorf("in the clear there is still %v", lies)
	}
	if heard, kept := at.found(t); len(heard)+len(kept) > 0 || at.encrypted == 0 {
		t.Errorf("the server heard %v, and keeps %v, with %d encrypted files", heard, kept, at.encrypted)
	}
}

// inMemory is the folder in memory of the worker with that scratch folder.
func inMemory(t *testing.T, scratch string) string {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(scratch, "w*", "memory"))
	if err != nil || len(records) != 1 {
		t.Fatalf("there are the records %v: %v", records, err)
	}
	content, err := os.ReadFile(records[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// holding are the files in the folders that hold a canary.
func holding(t *testing.T, folders ...string) (found []string) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if os.IsNotExist(err) || err == nil && !entry.Type().IsRegular() {
				return nil
			}
			if err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			if slices.ContainsFunc(canaries, func(canary string) bool { return bytes.Contains(content, []byte(canary)) }) {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	return found
}
