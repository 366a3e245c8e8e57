package e2e_test

import (
	"encoding/csv"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

func TestRunFromOneCommand(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "one-command", threeRungs, "0.01", 12)
	data := filepath.Join(t.TempDir(), "data")
	got := cli(t, nil, "run", s.file, "--data", data, "--listen", "127.0.0.1:0", "--slots", "2", "--json")
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	found := read[result](t, got.stdout)
	p := found.Study.Progress
	if found.Study.Status != protocol.StudyCompleted || p.Created != 12 || len(found.Study.Rungs) != 3 {
		t.Errorf("the study is %s with %d trials on %d rungs", found.Study.Status, p.Created, len(found.Study.Rungs))
	}
	if p.Promotions == 0 || p.Resumes < p.Promotions {
		t.Errorf("%d promotions, %d continued from a checkpoint", p.Promotions, p.Resumes)
	}
	if found.Recommendation.Best == nil || !found.Recommendation.FullBudget || found.Recommendation.Checkpoint == nil {
		t.Errorf("the recommendation is %+v", found.Recommendation)
	}
	if p.Energy.Joules <= 0 || p.Energy.Method == "" {
		t.Errorf("the energy is %+v", p.Energy)
	}
	checkTrainedOnce(t, s)
	if trained := len(s.entries("trained")); trained != p.Epochs {
		t.Errorf("%d epochs were trained, %d count", trained, p.Epochs)
	}

	// The same again is a new study, and the old one is still there.
	again := cli(t, nil, "run", s.file, "--data", data, "--listen", "127.0.0.1:0", "--slots", "2")
	if again.code != 0 || !strings.Contains(again.stdout, "Study one-command-2") {
		t.Errorf("exit code %d\n%s%s", again.code, again.stdout, again.stderr)
	}
	_, page, _ := strings.Cut(again.stdout, "while a server runs:")
	if address := regexp.MustCompile(`Web page: http://(127[0-9.:]+)/`).FindStringSubmatch(again.stdout); address == nil || !strings.Contains(page, "--listen "+address[1]+"\n") {
		t.Errorf("the server of %q would answer elsewhere: %v", page, address)
	}
	for _, wanted := range []string{"RANK", "Recommended: trial", "(estimate)", "continued from a checkpoint", "Web page: http://127.0.0.1:",
		"(there is a study one-command already, which is completed: "} {
		if !strings.Contains(again.stdout, wanted) {
			t.Errorf("the output lacks %q:\n%s", wanted, again.stdout)
		}
	}
}

func TestRunWithABudgetInSeconds(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "timed", "seconds, seconds: {min: 0.5, max: 4.5}, eta: 3", "0.1", 9) // starts of seconds must not spend it all
	got := cli(t, nil, "run", s.file, "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--json")
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	found := read[result](t, got.stdout)
	p := found.Study.Progress
	if found.Study.Status != protocol.StudyCompleted || p.Trials[trial.Failed] > 0 || p.Promotions == 0 || p.Resumes == 0 {
		t.Errorf("the study is %s: %+v", found.Study.Status, p)
	}
	if best := found.Recommendation; !best.FullBudget || float64(best.Seconds) < 4.5 || best.Best.Budget.Seconds != 4.5 {
		t.Errorf("the winner was trained for %v s of %+v", best.Seconds, best.Best)
	}
	checkTrainedOnce(t, s)
	if trained := len(s.entries("trained")); trained != p.Epochs {
		t.Errorf("%d epochs were trained, %d count", trained, p.Epochs)
	}
}

// A script without a client cannot hear that its budget is spent: it is ended.
func TestABudgetInSecondsEndsAScriptWithoutAClient(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "study.yaml")
	script := `e=0; while true; do e=$((e+1)); sleep 0.05; echo "{\"epoch\": $e, \"accuracy\": 0.5}"; done`
	content := "name: endless\ncommand: [sh, -c, '" + script + "']\nobjective: {metric: accuracy, direction: maximize}\n" +
		"space: {x: {type: float, low: 0, high: 1}}\nbudget: {seconds: 0.3}\nstop: {trials: 2, seconds: 60}\nretry: {failures: 0}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	got := cli(t, nil, "run", file, "--data", filepath.Join(folder, "data"), "--listen", "127.0.0.1:0", "--json")
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	found := read[result](t, got.stdout)
	if p := found.Study.Progress; p.Trials[trial.Completed] != 2 || p.TrialSeconds < 0.6 || p.TrialSeconds > 10 {
		t.Errorf("%+v", p)
	}
}

func TestAnyLanguageOnStandardOutput(t *testing.T) {
	t.Parallel()
	got := cli(t, nil, "run", "../examples/any-language/study.yaml", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--json")
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	found := read[result](t, got.stdout)
	if p := found.Study.Progress; p.Trials[trial.Failed] > 0 || p.Resumes == 0 || p.Best == nil {
		t.Errorf("the study ended with %+v", p)
	}
}

func TestFailingScript(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "failing", threeRungs, "not a number", 20)
	got := cli(t, nil, "run", s.file, "--data", t.TempDir(), "--listen", "127.0.0.1:0")
	if got.code != 3 {
		t.Errorf("exit code %d, want 3: no result\n%s%s", got.code, got.stdout, got.stderr)
	}
	if !strings.Contains(got.stdout+got.stderr, "could not convert string to float") {
		t.Errorf("nobody says why:\n%s%s", got.stdout, got.stderr)
	}
}

// TestAStudyInWhichEveryTrialFailsIsFailed: it has fewer trials than stop.failures, so
// that its search comes to its end.
func TestAStudyInWhichEveryTrialFailsIsFailed(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "all-fail", threeRungs, "not a number", 2)
	got := cli(t, nil, "run", s.file, "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--json")
	if got.code != 3 {
		t.Errorf("exit code %d, want 3: no result\n%s%s", got.code, got.stdout, got.stderr)
	}
	found := read[result](t, got.stdout)
	const why = "the search is finished, and no trial was measured: 2 of 2 failed; the commonest reason (2 of 2): exit code 1"
	if found.Study.Status != protocol.StudyFailed || !strings.HasPrefix(found.Study.Reason, why) {
		t.Errorf("the study is %s: %s", found.Study.Status, found.Study.Reason)
	}
	if !strings.Contains(got.stderr, "2 of 2 failed") || !strings.Contains(got.stderr, "could not convert string to float") {
		t.Errorf("nobody says why:\n%s", got.stderr)
	}
}

// What a study fails of is in its reason, though its trials have names of their own.
func TestAMisspeltMetricIsTheReason(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "study.yaml")
	content := "name: misspelt\ncommand: [sh, -c, 'echo \"{\\\"epoch\\\": 1, \\\"val_loss\\\": 0.5}\"']\nobjective: {metric: loss, direction: minimize}\n" +
		"space: {x: {type: float, low: 0, high: 1}}\nbudget: {epochs: 1}\nstop: {trials: 2}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	got := cli(t, nil, "run", file, "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--json")
	const why = "2 of 2 failed; the commonest reason (2 of 2): the command ended after epoch 0 of 1; a report was refused: the report is not valid; " +
		"metrics.loss: the objective loss is missing in the report that ends the budget (reported: val_loss)"
	if found := read[result](t, got.stdout); !strings.Contains(found.Study.Reason, why) {
		t.Errorf("the study is %s: %s", found.Study.Status, found.Study.Reason)
	}
}

func TestBrokenStudyFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "study.yaml")
	broken := "name: broken\ncommand: [true]\nobjective: [{metric: loss, direction: minimise}]\nspace: {x: {type: float, low: 3, high: 1}}\n"
	if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	got := cli(t, nil, "run", file, "--data", filepath.Join(t.TempDir(), "data"))
	if got.code != 2 {
		t.Errorf("exit code %d, want 2", got.code)
	}
	for _, wanted := range []string{"direction", "minimise", "line 3", "space.x", "line 4"} {
		if !strings.Contains(got.stderr, wanted) {
			t.Errorf("the message lacks %q:\n%s", wanted, got.stderr)
		}
	}
}

// TestExample runs the example the quick start runs, in small: TANDEM_EXAMPLE
// is its name and TANDEM_EXAMPLE_PYTHON its interpreter (scripts/setup-python
// prints both).
func TestExample(t *testing.T) {
	t.Parallel()
	example, python := os.Getenv("TANDEM_EXAMPLE"), os.Getenv("TANDEM_EXAMPLE_PYTHON")
	if example == "" || python == "" {
		t.Skip("TANDEM_EXAMPLE and TANDEM_EXAMPLE_PYTHON are not set; scripts/test sets them")
	}
	folder, err := filepath.Abs(filepath.Join("../examples", example))
	if err != nil {
		t.Fatal(err)
	}
	full, err := os.ReadFile(filepath.Join(folder, "study.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	small := strings.NewReplacer("max: 9}", "max: 2}", "max: 27}", "max: 2}", "eta: 3", "eta: 2",
		"trials: 27", "trials: 4", "trials: 40", "trials: 4").Replace(string(full)) + "\ndirectory: " + folder + "\n"
	file := filepath.Join(t.TempDir(), "study.yaml")
	if err := os.WriteFile(file, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	got := cli(t, nil, "run", file, "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--path", filepath.Dir(python), "--json")
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	found := read[result](t, got.stdout)
	p := found.Study.Progress
	if p.Created != 4 || p.Promotions == 0 || p.Resumes == 0 || p.Trials[trial.Failed] > 0 {
		t.Errorf("the study ended with %+v", p)
	}
	if p.Best == nil || p.Best.Value < 0.6 {
		t.Errorf("the best is %+v", p.Best)
	}
}

func readCSV(t *testing.T, text string) []map[string]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("not CSV: %v\n%s", err, text)
	}
	var list []map[string]string
	for _, row := range rows[1:] {
		named := map[string]string{}
		for i, name := range rows[0] {
			named[name] = row[i]
		}
		list = append(list, named)
	}
	return list
}

// Names of metrics may have spaces: in objectives, constraints, queries, exports and REST.
func TestMetricsMayHaveSpaces(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "study.yaml")
	script := `x=${TANDEM_PARAMS#*:}; echo "{\"epoch\": 1, \"val accuracy\": ${x%?}, \"val loss\": ${x%?}, \"top 5\": 0.25}"`
	content := "name: spaced\ncommand: [sh, -c, '" + script + "']\nobjective: {metric: val accuracy, direction: maximize}\nconstraints: {metric: val loss, max: 0.5}\n" +
		"space: {x: {values: [0.25, 0.5, 0.75]}}\nsearch: {method: grid}\nbudget: {policy: epochs, epochs: {min: 1, max: 1}}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	at := newSite(t)
	at.worker("--slots", "1")
	at.must("study", "create", file, "--watch")
	query := `"val accuracy" > 0.3 and "val loss" < 0.7 and "top 5" = 0.25 order by "val loss" desc`
	for from, text := range map[string]string{
		"the command line": at.must("study", "trials", "spaced", "--where", query, "--json"),
		"REST":             at.get("/api/v1/studies/spaced/trials?query=" + url.QueryEscape(query)),
	} {
		page := read[protocol.TrialPage](t, text)
		if x, is := page.Trials[0].Configuration["x"].Number(); len(page.Trials) != 1 || !is || x != 0.5 || page.Trials[0].Results[0].Violation != 0 {
			t.Errorf("%s answers %s", from, text)
		}
	}
	if best := at.must("study", "recommend", "spaced"); !strings.Contains(best, "val accuracy 0.5") {
		t.Errorf("the best that keeps the limit is not recommended: %s", best)
	}
	rows, err := csv.NewReader(strings.NewReader(at.must("study", "export", "spaced"))).ReadAll()
	if err != nil || !slices.Contains(rows[0], "value_val accuracy") || len(rows) != 4 {
		t.Errorf("the table is %v: %v", rows, err)
	}
}
