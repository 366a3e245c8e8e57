package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// noisyScript measures with noise of its seed, and OFFSET more than it should.
const noisyScript = `import json, os, random

x = json.loads(os.environ["TANDEM_PARAMS"])["x"]
noise = random.Random(int(os.environ["TANDEM_SEED"])).gauss(0, float(os.environ["NOISE"]))
for epoch in range(1, int(os.environ["TANDEM_EPOCHS"]) + 1):
    accuracy = (1 - (x - 0.7) ** 2) * (1 - 1 / (epoch + 1)) + noise + float(os.environ["OFFSET"])
    print(json.dumps({"epoch": epoch, "accuracy": accuracy}), flush=True)
`

// TestStudiesAreCompared: two runs of the same study show no difference, one that measures
// more is better, and one whose repeats have no noise tells nothing of chance.
func TestStudiesAreCompared(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	at.worker("--slots", "1") // the search goes the same way each time
	all := []string{"one", "copy", "again", "offset", "silent"}
	for i, offset := range []string{"0, NOISE: 0.01", "0, NOISE: 0.01", "0, NOISE: 0.01", "0.2, NOISE: 0.01", "0.1, NOISE: 0"} {
		s := newStudy(t, all[i], "epochs, epochs: {min: 2, max: 2}, eta: 3", "0", 2)
		s.rewrite("LEDGER", "OFFSET: "+offset+", LEDGER", "seed: 7}", "seed: 7, initial: [{x: 0.7}], repeats: {trials: 1, times: 4}}")
		if all[i] == "again" {
			s.rewrite("seed: 7", "seed: 8")
		}
		if err := os.WriteFile(filepath.Join(filepath.Dir(s.file), "train.py"), []byte(noisyScript), 0o600); err != nil {
			t.Fatal(err)
		}
		at.must("study", "create", s.file)
	}
	for _, name := range all {
		at.must("study", "watch", name)
	}
	type spent struct {
		Trial   *int
		Seconds float64
		Energy  struct{ Joules float64 }
	}
	found := read[struct {
		Target  struct{ Value float64 }
		Studies []struct {
			spent
			Measured int
			Reached  *spent
		}
		Differences []struct {
			Verdict   string
			Value     float64
			Low, High *float64
			Pairs     int
		}
	}](t, at.must(append(append([]string{"study", "compare"}, all...), "--json")...))
	same, chance, more, unknown := found.Differences[0], found.Differences[1], found.Differences[2], found.Differences[3]
	if same.Verdict != "no difference" || same.Value != 0 || same.Low != nil {
		t.Errorf("a copy differs by %+v", same)
	}
	if chance.Verdict != "no difference" || chance.Value == 0 || *chance.Low >= 0 || *chance.High <= 0 {
		t.Errorf("one with other seeds differs by %+v", chance)
	}
	if more.Verdict != "better" || more.Pairs != 3 || *more.Low > 0.2 || *more.High < 0.2 || *more.Low <= 0 {
		t.Errorf("one that measures 0.2 more differs by %+v", more)
	}
	if unknown.Verdict != "unknown" || unknown.Low != nil {
		t.Errorf("one without noise differs by %+v", unknown)
	}
	for i, one := range found.Studies {
		if one.Measured != 2 {
			t.Errorf("study %d has %d measured trials", i, one.Measured)
		}
		if i == 3 && (one.Reached == nil || one.Reached.Seconds <= 0 || one.Reached.Seconds >= one.Seconds || one.Reached.Energy.Joules > one.Energy.Joules) {
			t.Errorf("of %+v the target took %+v", one.spent, one.Reached)
		}
		if i < 3 && one.Reached != nil {
			t.Errorf("study %d reached %g, near the best of all", i, found.Target.Value)
		}
	}
	text := at.must("study", "compare", "one", "copy", "--target", "0.3")
	for _, wanted := range []string{"Target: accuracy 0.3 (--target)", "copy against one: no difference in accuracy: 3 repeats of each came to the same values", "Note: each study ran once"} {
		if !strings.Contains(text, wanted) || strings.Contains(text, "not reached") {
			t.Errorf("compare lacks %q:\n%s", wanted, text)
		}
	}
	if far := at.must("study", "compare", "one", "copy", "--target", "2"); strings.Count(far, "not reached") != 4 {
		t.Errorf("a target that none has:\n%s", far)
	}

	other := newStudy(t, "other", nineEpochs, "0", 1)
	other.rewrite("metric: accuracy, direction: maximize", "metric: loss, direction: minimize")
	at.must("study", "create", other.file)
	for said, args := range map[string][]string{
		"one has the objective maximize accuracy, other has minimize loss": {"one", "other"},
		"study one is named twice":                 {"one", "one"},
		"two studies or more":                      {"one"},
		"did you mean copy?":                       {"one", "coppy"},
		"invalid argument \"much\" for \"--target": {"one", "copy", "--target", "much"},
	} {
		if got := at.cli(append([]string{"study", "compare"}, args...)...); got.code == 0 || !strings.Contains(got.stderr, said) {
			t.Errorf("compare %v: exit code %d, %s", args, got.code, got.stderr)
		}
	}
}
