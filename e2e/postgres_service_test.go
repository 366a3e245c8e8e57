package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/trial"
)

// TestPostgreSQLIsTunedUnderPgbench runs examples/postgres-pgbench with short windows.
func TestPostgreSQLIsTunedUnderPgbench(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"initdb", "postgres", "pgbench", "psql"} {
		_, err := exec.LookPath(program)
		if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program); err != nil && len(found) == 0 {
			t.Skipf("there is no %s here: install PostgreSQL (Debian: apt-get install postgresql postgresql-contrib)", program)
		}
	}
	folder, err := os.MkdirTemp("", "tandem-pgbench-") // which another user can enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) }) //nolint:errcheck // it was for this test
	file := filepath.Join(folder, "study.yaml")
	content, err := os.ReadFile("../examples/postgres-pgbench/study.yaml")
	if err == nil {
		small := strings.NewReplacer(`fill, "{port}", 10]`, `fill, "{port}", 1]`, `load, "{port}", 8]`, `load, "{port}", 1]`,
			"trials: 16", "trials: 2", "{min: 1, max: 3}", "2", "search:", "search:\n  repeats: 1", "max: 1}", "max: 100}").Replace(string(content))
		err = os.WriteFile(file, []byte(small), 0o644)
	}
	for from, to := range map[string]string{"../examples/postgres-pgbench/postgres.sh": "postgres.sh", binary: "tandem"} {
		if err == nil {
			err = exec.Command("install", "-m", "755", from, filepath.Join(folder, to)).Run()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	line := []string{filepath.Join(folder, "tandem"), "run", file, "--data", filepath.Join(folder, "data"), "--scratch", filepath.Join(folder, "scratch"), "--listen", "127.0.0.1:0", "--slots", "1", "--json"}
	if os.Geteuid() == 0 { // as whom PostgreSQL does not run
		if _, err := exec.LookPath("setpriv"); err != nil {
			t.Skip("root may not start PostgreSQL, and setpriv, which starts it as nobody, is not installed")
		}
		if err := exec.Command("chown", "-R", "65534:65534", folder).Run(); err != nil {
			t.Fatal(err)
		}
		line = append([]string{"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"}, line...)
	}
	command := exec.CommandContext(t.Context(), line[0], line[1:]...)
	command.Env = append(os.Environ(), "HOME="+folder)
	var stderr strings.Builder
	command.Stderr = &stderr
	stdout, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr.String())
	}
	found := read[result](t, string(stdout))
	if p := found.Study.Progress; p.Trials[trial.Completed] != 2 || p.Epochs != 4 {
		t.Errorf("the study ended with %+v", p)
	}
	if m := found.Recommendation.Metrics; m["tps"] <= 0 || m["latency_ms"] <= 0 || m["windows"] != 2 {
		t.Errorf("it was measured as %v", m)
	}
}
