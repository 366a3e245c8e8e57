package launchcmd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/launchcmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/internal/sealed"
)

// slurm is a Slurm that has no jobs; whoever submits one is told that gpu1 cannot be had,
// and the rest is noted.
const slurm = `#!/bin/sh
case "$(basename "$0")" in
sbatch)
	case "$*" in *.gpu1.*) echo "sbatch: error: Invalid generic resource (gres) specification" >&2; exit 1 ;; esac
	echo "$*" >> "$(dirname "$0")/submitted"; env >> "$(dirname "$0")/submitted"; cat >> "$(dirname "$0")/submitted" ;;
esac
`

// site is a server where a study wants two trials without and one with a GPU.
func site(t *testing.T) (url, folder string) {
	t.Helper()
	folder = t.TempDir()
	mux := http.NewServeMux()
	for path, body := range map[string]string{
		"/api/v1/pool/wanted": `{"workers":[],"free":0,"studies":[{"study":"a","study_id":"a","trials":1,"gpus":1},{"study":"b","study_id":"b","trials":2},{"study":"c","study_id":"c","trials":2,"gpus":16}]}`,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(body)) //nolint:errcheck // the client tells
		})
	}
	mux.HandleFunc("PUT /api/v1/pool/launchers/tandem", func(w http.ResponseWriter, r *http.Request) {
		said, err := io.ReadAll(r.Body)
		if err := errors.Join(err, os.WriteFile(filepath.Join(folder, "report.json"), said, 0o600)); err != nil {
			t.Error(err)
		}
		again, _ := os.ReadFile(filepath.Join(folder, "try-again")) //nolint:errcheck // mostly nobody asks
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(crew.LauncherReply{TryAgain: strings.Fields(string(again))}); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("POST /api/v1/enrolments", func(w http.ResponseWriter, r *http.Request) {
		var ask crew.EnrolmentRequest
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
			t.Error(err)
		}
		var made crew.Enrolments
		for _, launch := range ask.Launches {
			made.Enrolments = append(made.Enrolments, crew.Enrolment{Launch: launch, Token: "tandem_enrolment_secret_" + launch})
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(made); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	if err := os.Chmod(folder, 0o700); err != nil { //nolint:gosec // a folder
		t.Fatal(err)
	}
	for _, name := range []string{"sbatch", "squeue", "scontrol", "scancel"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(slurm), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "token"), []byte("tandem_user_secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	return server.URL, folder
}

// launch runs the command once.
func launch(t *testing.T, url, folder string, more ...string) (said string, code int) {
	t.Helper()
	var out bytes.Buffer
	args := append([]string{"slurm", "--server", url, "--logs", filepath.Join(folder, "logs")}, more...)
	code = term.Execute(t.Context(), launchcmd.Command(), args, &out, &out)
	return out.String(), code
}

func submitted(folder string) string {
	content, _ := os.ReadFile(filepath.Join(folder, "submitted")) //nolint:errcheck // there may be none
	return string(content)
}

func TestLaunch(t *testing.T) {
	url, folder := site(t)
	t.Setenv("TANDEM_TOKEN", "tandem_user_secret")
	token := filepath.Join(folder, "token")

	said, code := launch(t, url, folder, "--token-file", token, "--dry-run")
	for _, want := range []string{"would start 2 workers of the shape cpu", "would start 1 worker of the shape gpu1", "c waits: no shape has what its trials ask for (16 GPUs"} {
		if !strings.Contains(said, want) {
			t.Errorf("it must say %q:\n%s", want, said)
		}
	}
	if code != 0 || submitted(folder) != "" {
		t.Errorf("a dry run ended with %d and submitted %s", code, submitted(folder))
	}

	said, code = launch(t, url, folder, "--token-file", token, "--once", "--", "--path", "venv/bin")
	if code != 1 || !strings.Contains(said, "1 worker of the shape gpu1 could not be started") || !strings.Contains(said, "Invalid generic resource") {
		t.Errorf("it ended with %d and said\n%s", code, said)
	}
	got := submitted(folder)
	for _, want := range []string{"--array=0-1", "--export=NONE", "--no-requeue", " --token-file '" + filepath.Join(folder, "logs/enrolments-tandem") + "'/", "'--path' 'venv/bin'"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in what was submitted:\n%s", want, got)
		}
	}
	if strings.Contains(got, "secret") {
		t.Errorf("the token went with it:\n%s", got)
	}
	kept := enrolments(t, folder)
	if len(kept) != 3 { // two of cpu, and the one of gpu1 that was not had
		t.Errorf("there are the enrolments %v", kept)
	}
	for name, content := range kept {
		if content != "tandem_enrolment_secret_"+name+"\n" {
			t.Errorf("%s holds %q", name, content)
		}
	}
}

// enrolments are the files of the launches' tokens, which only this user reads.
func enrolments(t *testing.T, folder string) map[string]string {
	t.Helper()
	place := filepath.Join(folder, "logs/enrolments-tandem")
	entries, err := os.ReadDir(place)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{}
	for _, one := range entries {
		content, err := os.ReadFile(filepath.Join(place, one.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if info, err := one.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", one.Name(), info.Mode(), err)
		}
		kept[one.Name()] = string(content)
	}
	return kept
}

// TestEnrolmentsAreTended: what waits for long gets another one, and what has ended none.
func TestEnrolmentsAreTended(t *testing.T) {
	url, folder := site(t)
	t.Setenv("TANDEM_TOKEN", "tandem_launcher_secret")
	place := filepath.Join(folder, "logs/enrolments-tandem")
	if err := os.MkdirAll(place, 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for name, age := range map[string]time.Duration{"w-0": 13 * time.Hour, "w-1": time.Hour, "e-0": time.Hour, "lost-0": 25 * time.Hour, "lost-1": time.Hour} {
		if err := os.WriteFile(filepath.Join(place, name), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(place, name), now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	jobs := "1_0|1|0|tandem.cpu.w|PENDING|Priority|\n1_1|1|1|tandem.cpu.w|PENDING|Priority|\n2_0|2|0|tandem.cpu.e|COMPLETED|None|n1\n"
	if err := os.WriteFile(filepath.Join(folder, "squeue"), []byte("#!/bin/sh\nprintf '"+jobs+"'\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if said, code := launch(t, url, folder, "--once", "--dry-run"); code != 0 || len(enrolments(t, folder)) != 5 {
		t.Errorf("a dry run ended with %d and left %v: %s", code, enrolments(t, folder), said)
	}
	said, _ := launch(t, url, folder, "--once") // gpu1 cannot be had
	kept := enrolments(t, folder)
	for name, want := range map[string]string{"w-0": "tandem_enrolment_secret_w-0\n", "w-1": "old", "e-0": "", "lost-0": "", "lost-1": "old"} {
		if kept[name] != want {
			t.Errorf("%s holds %q, want %q: %s", name, kept[name], want, said)
		}
	}
	if err := os.Chmod(place, 0o750); err != nil { //nolint:gosec // what is refused
		t.Fatal(err)
	}
	if said, code := launch(t, url, folder, "--once"); code == 0 || !strings.Contains(said, "may be entered or read by others (mode 0750)") {
		t.Errorf("a folder that others read: %d: %s", code, said)
	}
}

func TestLaunchByCommandsOfTheSite(t *testing.T) {
	url, folder := site(t)
	t.Setenv("TANDEM_TOKEN", "tandem_user_secret")
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(args ...string) (string, int) {
		var out bytes.Buffer
		code := term.Execute(t.Context(), launchcmd.Command(), args, &out, &out)
		return out.String(), code
	}
	line := []string{"command", "--server", url, "--token-file", filepath.Join(folder, "token"), "--logs", filepath.Join(folder, "logs"), "--once"}
	commands := write("commands.yaml", fmt.Sprintf(`
submit: [sh, -c, 'echo "$@"; cat; env', "{name}", "{cores} cores", "{gpus} GPUs", %q]
list: [cat, %q]
cancel: ["true"]
`, "x", write("jobs", `{"id": "7", "name": "tandem.cpu.abc-0", "state": "ended", "cause": "preempted"}`)))
	content, err := os.ReadFile(commands)
	if err != nil {
		t.Fatal(err)
	}
	write("commands.yaml", strings.Replace(string(content), `'echo "$@"; cat; env'`, fmt.Sprintf("'(echo \"$0 $*\"; cat; env) >> %s/submitted'", folder), 1))
	said, code := run(append(line, "--commands", commands)...)
	if code != 0 || !strings.Contains(said, "started 2 workers of the shape cpu") || !strings.Contains(said, "worker 7 of the shape cpu: preempted for a job that goes first") {
		t.Errorf("it ended with %d and said\n%s", code, said)
	}
	got := submitted(folder)
	for _, want := range []string{"tandem.gpu1.", " 4 cores 1 GPUs x\n", "-1 4 cores 0 GPUs x\n", " --token-file '" + filepath.Join(folder, "logs/enrolments-tandem") + "'/"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in what was submitted:\n%s", want, got)
		}
	}
	if strings.Contains(got, "secret") {
		t.Errorf("the token went with it:\n%s", got)
	}
	if said, code := run("doctor", "command", "--commands", commands); code != 0 || !strings.Contains(said, "1 are of this launcher") {
		t.Errorf("the doctor ended with %d and said\n%s", code, said)
	}
	for want, args := range map[string][]string{
		"--commands is missing": line,
		"unknown field":         append(line, "--commands", write("typo.yaml", "submitt: [a]")),
		"list is missing":       append(line, "--commands", write("short.yaml", "submit: [\"true\"]")),
		"the engine \"moab\"":   {"doctor", "moab"},
	} {
		if said, code := run(args...); code != term.ExitUsage || !strings.Contains(said, want) {
			t.Errorf("%v: %d: %s", args, code, said)
		}
	}
}

func TestLaunchRefuses(t *testing.T) {
	url, folder := site(t)
	t.Setenv("TANDEM_TOKEN", "tandem_admin_secret")
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token := filepath.Join(folder, "token")
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"--path", "x"}, "unknown flag"},
		{[]string{"--token-file", token, "--every", "1ms"}, "--every (1ms)"},
		{[]string{"--shapes", write("a.yaml", "shapes: [{name: a, gpu: 1}]")}, "gpu"},
		{[]string{"--shapes", write("b.yaml", "shapes: [{name: a, options: [--export=ALL]}]")}, "the launcher sets --export itself"},
		{[]string{"--shapes", write("c.yaml", "shapes: []")}, "no shape is given"},
	} {
		if said, code := launch(t, url, folder, test.args...); code != term.ExitUsage || !strings.Contains(said, test.says) {
			t.Errorf("%v: %d: %s", test.args, code, said)
		}
	}
	if submitted(folder) != "" {
		t.Errorf("it submitted %s", submitted(folder))
	}
}

// The workers of a launcher get its key, and those of other studies are none of its own.
func TestLaunchWithAKey(t *testing.T) {
	url, folder := site(t)
	t.Setenv("TANDEM_TOKEN", "tandem_user_secret")
	key, _, err := sealed.Create(false)
	if err != nil {
		t.Fatal(err)
	}
	token, path := filepath.Join(folder, "token"), filepath.Join(folder, "workers.key")
	if err := os.WriteFile(path, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, code := launch(t, url, folder, "--token-file", token, "--dry-run", "--identity", path); code != 0 || strings.Contains(said, "would start") || strings.Count(said, "encrypted studies only") != 3 {
		t.Errorf("%d: %s", code, said)
	}
	for _, wrong := range [][]string{{"--identity", token}, {"--identity", folder + "/none"}, {"--", "--identity", path}, {"--", "--identity=" + path}} {
		if said, code := launch(t, url, folder, append([]string{"--token-file", token, "--dry-run"}, wrong...)...); code != term.ExitUsage || !strings.Contains(said, "--identity") {
			t.Errorf("%v: %d: %s", wrong, code, said)
		}
	}
}
