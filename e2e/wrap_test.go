package e2e_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// plainScript knows nothing of Tandem: it has options, and prints what it measures.
const plainScript = `import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()
print("training", args)
for epoch in range(1, args.epochs + 1):
    accuracy = (1 - (args.momentum - 0.7) ** 2) * (1 - 1 / (epoch + 1))
    print(f"epoch {epoch}/{args.epochs} loss=nan accuracy={accuracy}", flush=True)
print("saved")
`

// TestAPlainScriptIsTunedUnchanged: tandem.wrap hands it the parameters and the budget as
// arguments and reads its output; better trials are promoted. A script whose output never
// fits the pattern measures nothing, and its trials say which pattern that was.
func TestAPlainScriptIsTunedUnchanged(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	at.worker()
	wrapped := func(name, pattern string, trials int) (view protocol.StudyView, books export) {
		s := newStudy(t, name, threeRungs, "0", trials)
		s.rewrite("{x:", "{momentum:", "[python3, train.py]", `[python3, -m, tandem.wrap, '`+pattern+`', python3, train.py, "{flags}", "--epochs={epochs}"]`)
		if err := os.WriteFile(filepath.Join(filepath.Dir(s.file), "train.py"), []byte(plainScript), 0o600); err != nil {
			t.Fatal(err)
		}
		at.must("study", "create", s.file)
		until(t, "the study's end", func() bool {
			view = read[protocol.StudyView](t, at.must("study", "show", s.name, "--json"))
			return view.Status.Over()
		})
		return view, at.books(s.name)
	}

	view, books := wrapped("wrapped", `epoch (?P<epoch>\d+).* accuracy=(?P<accuracy>[.\d]+)`, 4)
	if p := view.Progress; view.Status != protocol.StudyCompleted || p.Promotions == 0 || p.Best == nil || p.Trials[trial.Failed] > 0 {
		t.Fatalf("the study is %s with %+v", view.Status, p)
	}
	reports, top := books.reports(t), false
	for _, one := range books.Trials {
		x, _ := one.Configuration["momentum"].Number()
		runs := reports[one.ID]
		top = top || len(runs) > 0 && runs[len(runs)-1].Epoch == 9
		for _, report := range runs {
			want := (1 - math.Pow(x-0.7, 2)) * (1 - 1/float64(report.Epoch+1))
			if got := float64(report.Metrics["accuracy"]); math.Abs(got-want) > 1e-9 {
				t.Errorf("trial %d with momentum %v reports %v after epoch %d, not %v", one.Number, x, got, report.Epoch, want)
			}
		}
	}
	if !top {
		t.Error("no trial was trained for the nine epochs of the top rung")
	}

	view, books = wrapped("unwrapped", "step (?P<epoch>[0-9]+) accuracy=(?P<accuracy>[.0-9]+)", 1)
	if p := view.Progress; view.Status != protocol.StudyFailed || p.Best != nil || p.Epochs > 0 || p.Trials[trial.Failed] != 1 {
		t.Errorf("with a pattern that finds nothing the study is %s with %+v", view.Status, p)
	}
	if said := books.Trials[0].Reason; !strings.Contains(said, "never had all of epoch, accuracy (step (?P<epoch>[0-9]+) accuracy=") {
		t.Errorf("the trial's reason is %q", said)
	}
}

// TestInitTunesAPlainScript: the command that "tandem init" writes into the file for a
// script as it is tunes that script.
func TestInitTunesAPlainScript(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "guessed", nineEpochs, "0", 1) // for its folder
	folder := filepath.Dir(s.file)
	script := filepath.Join(folder, "guessed.py")
	if err := os.WriteFile(script, []byte(plainScript), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := cli(t, nil, "init", script, "--output", s.file, "--force"); said.code != 0 || !strings.Contains(said.stdout, "tandem.wrap") {
		t.Fatalf("init says (%d)\n%s%s", said.code, said.stdout, said.stderr)
	}
	client, err := filepath.Abs("../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	s.rewrite("\ncommand: ", "\n# command: ", "\n# command: [python3, -m", "\nenvironment: {PYTHONPATH: "+client+"}\ncommand: [python3, -m", "trials: 50", "trials: 4", "\nsearch:", "\nsystem: off\nsearch:")
	got := cli(t, nil, "run", s.file, "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--json")
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	found := read[result](t, got.stdout).Study
	if p := found.Progress; p.Created != 4 || p.Trials[trial.Failed] > 0 || p.Best == nil || p.Best.Metric != "accuracy" || len(found.Definition.Space.Parameters) != 1 {
		t.Errorf("the study ended with %+v", p)
	}

	knows := filepath.Join(folder, "knows.py")
	if err := os.WriteFile(knows, []byte("import tandem\n"+plainScript), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := cli(t, nil, "init", knows, "--output", s.file, "--force"); said.code != 0 || strings.Contains(said.stdout, "tandem.wrap") {
		t.Errorf("of a script with the client init says (%d)\n%s%s", said.code, said.stdout, said.stderr)
	}
	if content, err := os.ReadFile(s.file); err != nil || strings.Contains(string(content), "wrap") {
		t.Errorf("its study file (%v):\n%s", err, content)
	}
}
