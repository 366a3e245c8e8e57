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
parser.add_argument("--x", type=float, default=0.5)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()
print("training", args)
for epoch in range(1, args.epochs + 1):
    accuracy = (1 - (args.x - 0.7) ** 2) * (1 - 1 / (epoch + 1))
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
		s.rewrite("[python3, train.py]", `[python3, -m, tandem.wrap, '`+pattern+`', python3, train.py, "{flags}", "--epochs={epochs}"]`)
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
		x, _ := one.Configuration["x"].Number()
		runs := reports[one.ID]
		top = top || len(runs) > 0 && runs[len(runs)-1].Epoch == 9
		for _, report := range runs {
			want := (1 - math.Pow(x-0.7, 2)) * (1 - 1/float64(report.Epoch+1))
			if got := float64(report.Metrics["accuracy"]); math.Abs(got-want) > 1e-9 {
				t.Errorf("trial %d with x = %v reports %v after epoch %d, not %v", one.Number, x, got, report.Epoch, want)
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
