package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/trial"
)

// TestInitMakesAScriptATrial: what tandem init writes and says is all that a script
// with options lacks to be tuned.
func TestInitMakesAScriptATrial(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	script := filepath.Join(folder, "fit.py")
	const plain = `import argparse, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--epochs", type=int, default=9)
args = parser.parse_args()
state = [1.0]
def load(path): state[0] = float(pathlib.Path(path).read_text())
def save(path): pathlib.Path(path).write_text(str(state[0]))
def train_one_epoch(): state[0] *= 1 - min(0.9, args.lr * 16 / args.batch_size)
def evaluate(): return state[0]
val_loss = None
`
	write := func(path, content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(script, plain)
	answer := cli(t, nil, "init", script, "--json")
	if answer.code != 0 {
		t.Fatalf("exit code %d: %s", answer.code, answer.stderr)
	}
	made := read[struct{ File, Lines string }](t, answer.stdout)
	write(script, plain+made.Lines)
	content, err := os.ReadFile(made.File)
	if err != nil {
		t.Fatal(err)
	}
	client, err := filepath.Abs("../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	write(made.File, strings.Replace(string(content), "trials: 50", "trials: 4", 1)+"\nenvironment: {PYTHONPATH: "+client+"}\n")
	if plan := cli(t, nil, "study", "plan", made.File); plan.code != 0 {
		t.Errorf("the plan fails: %s", plan.stderr)
	}
	got := cli(t, nil, "run", made.File, "--data", filepath.Join(folder, "data"), "--listen", "127.0.0.1:0", "--json")
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	p := read[result](t, got.stdout).Study.Progress
	if p.Created != 4 || p.Trials[trial.Failed] > 0 || p.Resumes == 0 || p.Best == nil || p.Best.Metric != "val_loss" {
		t.Errorf("the study ended with %+v", p)
	}
}
