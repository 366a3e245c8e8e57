package launchcmd_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/launchcmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
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
func site(t *testing.T, scope string) (url, folder string) {
	t.Helper()
	mux := http.NewServeMux()
	for path, body := range map[string]string{
		"/api/v1/session":     `{"name":"ann","scope":"` + scope + `"}`,
		"/api/v1/workers":     `{"workers":[]}`,
		"/api/v1/pool/wanted": `{"studies":[{"study":"a","study_id":"a","trials":1,"gpus":1},{"study":"b","study_id":"b","trials":2},{"study":"c","study_id":"c","trials":2,"gpus":16}]}`,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(body)) //nolint:errcheck // the client tells
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	folder = t.TempDir()
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
	url, folder := site(t, "user")
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
	for _, want := range []string{"--array=0-1", "--export=NONE", "--no-requeue", "'--token-file' '" + token + "'", "'--path' 'venv/bin'"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in what was submitted:\n%s", want, got)
		}
	}
	if strings.Contains(got, "secret") {
		t.Errorf("the token went with it:\n%s", got)
	}
}

func TestLaunchByCommandsOfTheSite(t *testing.T) {
	url, folder := site(t, "user")
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
	for _, want := range []string{"tandem.gpu1.", " 4 cores 1 GPUs x\n", "-1 4 cores 0 GPUs x\n", "'--token-file' '" + filepath.Join(folder, "token") + "'"} {
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
	url, folder := site(t, "admin")
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
		{[]string{"--token-file", token}, "a token with the scope admin is not given to workers"},
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
