package e2e_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// sealedScript keeps weights that the server must not see, and looks for the key.
const sealedScript = `
import os
from pathlib import Path

import tandem

WEIGHTS = "-".join(["what", "the", "model", "has", "learned"])

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
`

// TestTheServerHoldsCiphertextOnly: trials of an encrypted study are promoted and move
// between two workers that hold its key. What they learned is found in no file of the
// server, and a worker without the key runs none of them.
func TestTheServerHoldsCiphertextOnly(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "sealed", threeRungs, "0", 6)
	folder := filepath.Dir(s.file)
	key := filepath.Join(folder, "workers.key")
	recipient := strings.TrimSpace(cli(t, nil, "keys", "create", "--out", key).stdout)
	if again := cli(t, nil, "keys", "create", "--out", key); again.code == 0 || !strings.Contains(again.stderr, "never overwritten") {
		t.Errorf("a key was overwritten: %s", again.stderr)
	}
	if err := os.WriteFile(filepath.Join(folder, "train.py"), []byte(sealedScript), 0o600); err != nil {
		t.Fatal(err)
	}
	s.rewrite("objective:", "encryption: {recipients: ["+recipient+"]}\nobjective:")
	at := newSite(t)
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
	checkNothingIsRead(t, at.data)

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
	if content, err := os.ReadFile(filepath.Join(model, "checkpoint")); err != nil || string(content) != "what-the-model-has-learned" {
		t.Errorf("the winner's checkpoint is %q, %v", content, err)
	}
	if shown := at.must("study", "show", s.name); !strings.Contains(shown, "encrypted to 1 key") {
		t.Errorf("shown is\n%s", shown)
	}
}

// checkNothingIsRead looks for what the model has learned in all files of the folder,
// and that there are checkpoints.
func checkNothingIsRead(t *testing.T, folder string) {
	t.Helper()
	encrypted := 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte("what-the-model-has-learned")) {
			t.Errorf("%s holds what the model has learned", path)
		}
		if bytes.HasPrefix(content, []byte("age-encryption.org/v1\n")) {
			encrypted++
		}
		return err
	})
	if err != nil || encrypted == 0 {
		t.Errorf("there are %d encrypted checkpoints: %v", encrypted, err)
	}
}
