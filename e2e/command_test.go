package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/protocol"
)

func TestControlFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "controlled", nineEpochs, "0.1", 3)
	at := newSite(t)
	if plan := read[budget.Plan](t, at.must("study", "plan", s.file, "--json")); plan.Epochs != 27 {
		t.Errorf("the plan is %+v, want 27 epochs", plan)
	}
	if list := at.must("study", "list"); !strings.Contains(list, "No studies yet") {
		t.Errorf("a plan left something:\n%s", list)
	}
	at.must("study", "create", s.file)
	if again := at.cli("study", "create", s.file); again.code != 1 || !strings.Contains(again.stderr, "exists already") {
		t.Errorf("the same name again: exit code %d, %s", again.code, again.stderr)
	}
	if typo := at.cli("study", "pause", "controled"); typo.code != 1 || !strings.Contains(typo.stderr, `there is no study "controled" of an administrator: a user's is OWNER:NAME; did you mean controlled?`) {
		t.Errorf("a typo in the name: exit code %d, %s", typo.code, typo.stderr)
	}
	if text := at.must("study", "enqueue", s.name, "-p", "x=0.05"); !strings.Contains(text, "1 configuration enqueued") {
		t.Errorf("enqueue says:\n%s", text)
	}
	for _, amendment := range []string{`{"add_tags":["paper","baseline"]}`, `{"note":"first line\nand the second"}`, `{"remove_tags":["paper"]}`} {
		if status, answer := at.ask("POST", "/api/v1/studies/"+s.name+"/annotate", amendment); status != 200 {
			t.Errorf("%s: %d, %s", amendment, status, answer)
		}
	}
	if view := read[protocol.StudyView](t, at.must("study", "show", s.name, "--json")); strings.Join(view.Tags, " ") != "baseline" || view.Note != "first line\nand the second" {
		t.Errorf("the study has the tags %q and the note %q", view.Tags, view.Note)
	}
	if status, answer := at.ask("POST", "/api/v1/studies/"+s.name+"/annotate", `{"add_tags":["two words"]}`); status != 422 || !strings.Contains(answer, "add_tags[0]") {
		t.Errorf("a tag of two words: %d, %s", status, answer)
	}
	if wrong := at.cli("study", "enqueue", s.name, "-p", "nothing=1"); wrong.code != 2 || !strings.Contains(wrong.stderr, "not a parameter") {
		t.Errorf("a parameter that there is not: exit code %d, %s", wrong.code, wrong.stderr)
	}
	if none := at.cli("study", "enqueue", s.name); none.code != 2 || !strings.Contains(none.stderr, "--file") {
		t.Errorf("nothing to enqueue: exit code %d, %s", none.code, none.stderr)
	}
	at.worker()
	until(t, "two acknowledged epochs", func() bool { return len(s.entries("acknowledged")) >= 2 })
	at.must("study", "pause", s.name)
	show := func() protocol.StudyView {
		return read[protocol.StudyView](t, at.must("study", "show", s.name, "--json"))
	}
	until(t, "the trial to be given back", func() bool { return show().Progress.Trials["queued"] == 1 })
	if view := show(); view.Status != protocol.StudyPaused || view.Progress.Epochs == 9 {
		t.Errorf("the study is %s with %d epochs", view.Status, view.Progress.Epochs)
	}
	at.must("study", "resume", s.name)
	read[result](t, at.must("study", "watch", s.name, "--json"))
	checkBooks(t, s, at.books(s.name))
	checkTrainedOnce(t, s)

	if text := at.must("study", "importance", s.name); !strings.Contains(text, "10 measured trials") {
		t.Errorf("with three trials the importance is:\n%s", text)
	}
	if text := at.must("study", "replay", s.name); !strings.Contains(text, "came out the same") {
		t.Errorf("the replay says:\n%s", text)
	}
	for _, wanted := range []string{"RANK", "completed", "(estimate)"} {
		if text := at.must("study", "show", s.name); !strings.Contains(text, wanted) {
			t.Errorf("show lacks %q:\n%s", wanted, text)
		}
	}
	export := filepath.Join(t.TempDir(), "export.csv")
	if err := os.WriteFile(export, []byte(at.must("study", "export", s.name)), 0o600); err != nil {
		t.Fatal(err)
	}
	warm := at.must("study", "create", s.file, "--name", "warm", "--warm-start", export, "--warm-start-from", s.name)
	if !strings.Contains(warm, "Begins with 3 results of export.csv") || !strings.Contains(warm, "of controlled") {
		t.Errorf("a warm start says:\n%s", warm)
	}
	if wrong := at.cli("study", "create", s.file, "--name", "warmer", "--warm-start", s.file); wrong.code != 2 || !strings.Contains(wrong.stderr, "wrong number of fields") {
		t.Errorf("a warm start from a study file: exit code %d, %s", wrong.code, wrong.stderr)
	}
	report := filepath.Join(t.TempDir(), "report.html")
	if text := at.must("study", "report", s.name, "-o", report); !strings.Contains(text, report) {
		t.Errorf("report says:\n%s", text)
	}
	if page, err := os.ReadFile(report); err != nil || !strings.Contains(string(page), `"environment":{"EPOCH_SECONDS":"..."`) || !strings.Contains(string(page), `"metric":"accuracy"`) || strings.Contains(string(page), s.ledger) {
		t.Errorf("the report is %.500s: %v", page, err)
	}

	at.must("study", "delete", "warm", "--yes")
	if rows := readCSV(t, at.must("study", "export", s.name)); len(rows) != 3 || rows[0]["state"] != "completed" {
		t.Errorf("the CSV has %d rows: %v", len(rows), rows)
	}
	if text := at.must("study", "trial", s.name, "0"); !strings.Contains(text, "LEASED") && !strings.Contains(text, "leased") {
		t.Errorf("the trial has no history:\n%s", text)
	}
	if detail := read[protocol.TrialDetail](t, at.must("study", "trial", s.name, "0", "--json")); len(detail.Reports) == 0 || detail.Reports[0].Profile == nil || detail.Reports[0].Profile.Host["machine.cpu_user"] <= 0 {
		t.Errorf("the trial has no profile: %+v", detail.Reports)
	}
	if stop := at.cli("study", "stop", s.name); stop.code != 1 || !strings.Contains(stop.stderr, "completed") {
		t.Errorf("stopping what is over: exit code %d, %s", stop.code, stop.stderr)
	}
	if ask := at.cli("study", "delete", s.name); ask.code != 2 || !strings.Contains(ask.stderr, "--yes") {
		t.Errorf("delete without a terminal: exit code %d, %s", ask.code, ask.stderr)
	}
	at.must("study", "delete", s.name, "--yes")
	if gone := at.cli("study", "show", s.name); gone.code != 1 || !strings.Contains(gone.stderr, "controlled") {
		t.Errorf("a deleted study: exit code %d, %s", gone.code, gone.stderr)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "tokens", nineEpochs, "0.1", 1)
	at := newSite(t)
	viewer := strings.TrimSpace(at.must("token", "create", "--scope", "viewer", "--name", "dashboard"))
	as := func(token string) []string {
		return []string{"TANDEM_SERVER=http://" + at.listen, "TANDEM_TOKEN=" + token}
	}
	if got := cli(t, as(viewer), "study", "list"); got.code != 0 {
		t.Errorf("a viewer may not look: %s", got.stderr)
	}
	if got := cli(t, as(viewer), "study", "create", s.file); got.code != 1 || !strings.Contains(got.stderr, "viewer") {
		t.Errorf("a viewer created a study: exit code %d, %s", got.code, got.stderr)
	}
	if got := cli(t, as(""), "study", "list"); got.code != 1 || !strings.Contains(got.stderr, "TANDEM_TOKEN") {
		t.Errorf("without a token: exit code %d, and no advice: %s", got.code, got.stderr)
	}
	id := strings.Split(viewer, "_")[2]
	at.must("token", "revoke", id)
	if got := cli(t, as(viewer), "study", "list"); got.code == 0 {
		t.Error("a revoked token is still accepted")
	}
	if list := at.must("token", "list"); strings.Contains(list, "dashboard") || !strings.Contains(list, "first start") {
		t.Errorf("the tokens are:\n%s", list)
	}
}

func TestExitCodesAndHelp(t *testing.T) {
	t.Parallel()
	nobody := []string{"TANDEM_SERVER=http://127.0.0.1:1", "TANDEM_TOKEN=x"}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--help"}, 0, "tandem run study.yaml"},
		{[]string{"study", "create", "--help"}, 0, "--watch"},
		{[]string{"completion", "bash"}, 0, "complete"},
		{[]string{"studdy"}, 2, "studdy"},
		{[]string{"study", "remove"}, 2, "remove"},
		{[]string{"run"}, 2, "study file"},
		{[]string{"run", "missing.yaml"}, 2, "missing.yaml"},
		{[]string{"serve", "--prot", "1"}, 2, "--prot"},
		{[]string{"study", "trial", "x", "first"}, 2, "first"},
		{[]string{"worker", "--server", "ftp://x"}, 2, "ftp://x"},
	} {
		got := cli(t, nobody, c.args...)
		if got.code != c.code || !strings.Contains(got.stdout+got.stderr, c.says) {
			t.Errorf("tandem %s: exit code %d, want %d with %q:\n%s%s", strings.Join(c.args, " "), got.code, c.code, c.says, got.stdout, got.stderr)
		}
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	var found []struct {
		Name      string `json:"name"`
		Available bool   `json:"available"`
		Reason    string `json:"reason"`
	}
	if err := json.Unmarshal([]byte(cli(t, nil, "doctor", "--json").stdout), &found); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, capability := range found {
		names[capability.Name] = true
		if !capability.Available && capability.Reason == "" {
			t.Errorf("%s is missing, and nobody says why", capability.Name)
		}
	}
	for _, wanted := range []string{"perf counters", "rapl", "gpu", "cgroups", "cpu frequency", "onnx runtime"} {
		if !names[wanted] {
			t.Errorf("the doctor does not look at %s: %v", wanted, names)
		}
	}
}

func TestOptimizeInTheUsersProcess(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	at := newSite(t)
	client, err := filepath.Abs("../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	program := `
import tandem
study = tandem.create_study({
    "name": "in-process",
    "objective": [{"metric": "loss", "direction": "minimize"}],
    "space": {"x": {"type": "float", "low": -5.0, "high": 5.0}},
    "budget": {"policy": "epochs", "epochs": {"min": 1, "max": 9}},
    "search": {"method": "bohb", "seed": 7},
    "stop": {"trials": 20},
})
def objective(trial):
    for epoch in trial.epochs():
        trial.report(loss=trial.params["x"] ** 2 + 1 / epoch)
study.optimize(objective, n_jobs=2)
trial = study.best_trial
rungs = study.importance()["rungs"]
names = [parameter["name"] for parameter in rungs[-1]["parameters"]]
names += [study.correlations()["study"] == study.name]
print(study.status, len(study.trials), trial.value < 2.0, names)
`
	command := exec.CommandContext(t.Context(), "python3", "-c", program)
	command.Env = append(os.Environ(), append(at.environment(), "PYTHONPATH="+client)...)
	output, err := command.CombinedOutput()
	if err != nil || strings.TrimSpace(string(output)) != "completed 20 True ['x', True]" {
		t.Errorf("%v: %s", err, output)
	}
}

// TestAPlanDoubtsWhatIsNotThere: a misspelt script, which surely does not run here, and an
// earlier study that the server does not have.
func TestAPlanDoubtsWhatIsNotThere(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "study.yaml")
	const text = "name: doubtful\ncommand: [python3, trian.py]\nobjective: {metric: loss, direction: minimize}\nspace: {x: {type: float, low: 0, high: 1}}\nsearch: {warm_start: {studies: [first-sweep]}}\n"
	for name, content := range map[string]string{file: text, filepath.Join(folder, "train.py"): ""} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const misspelt = "the command's file trian.py is not in "
	if plan := cli(t, nil, "study", "plan", file); plan.code != 0 || !strings.Contains(plan.stderr, "Warning: "+misspelt) || !strings.Contains(plan.stderr, "Warning: search.warm_start.studies[0] ") {
		t.Errorf("without a server: exit code %d, %s", plan.code, plan.stderr)
	}
	unknown := filepath.Join(folder, "unknown.yaml")
	if err := os.WriteFile(unknown, []byte(strings.Replace(text, "search:", "constraints: {metric: edge.latency_ms, max: 20}\nsearch:", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if plan := cli(t, nil, "study", "plan", unknown); plan.code != 0 || !strings.Contains(plan.stderr, "Warning: the script has to report edge.latency_ms: with a section inference,") {
		t.Errorf("without inference: exit code %d, %s", plan.code, plan.stderr)
	}
	if run := cli(t, nil, "run", file, "--data", filepath.Join(folder, "data")); run.code != 2 || !strings.Contains(run.stderr, misspelt+folder+"; did you mean train.py?") {
		t.Errorf("it runs: exit code %d, %s", run.code, run.stderr)
	}
	at := newSite(t)
	if plan := at.cli("study", "plan", file); plan.code != 2 || !strings.Contains(plan.stderr, "search.warm_start.studies[0] (first-sweep on http://"+at.listen) {
		t.Errorf("with a server: exit code %d, %s", plan.code, plan.stderr)
	}
	first := newStudy(t, "first-sweep", nineEpochs, "0.1", 1)
	at.must("study", "create", first.file)
	if plan := at.cli("study", "plan", file); plan.code != 0 || strings.Contains(plan.stderr, "first-sweep") {
		t.Errorf("with the earlier study: exit code %d, %s", plan.code, plan.stderr)
	}
}

// A run's server ends with its study, so that no board can have asked it before.
func TestARunHasNoBoards(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "study.yaml")
	text := "name: boards\ncommand: [python3, -V]\nobjective: {metric: accuracy, direction: maximize}\nspace: {rate: {type: float, low: 0, high: 1}}\ninference: {devices: [board/camera-2]}\nbudget: {epochs: 1}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if run := cli(t, nil, "run", file, "--data", filepath.Join(folder, "data"), "--listen", "127.0.0.1:0"); run.code != 2 || !strings.Contains(run.stderr, "Boards ask a server that goes on running: tandem serve") {
		t.Errorf("exit code %d\n%s", run.code, run.stderr)
	}
}
