package tandem_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pretended is a go command that installs programs which do nothing, but say what
// they were given and end as GOVULNCHECK tells, or as IMPORTED does where calls are not
// looked for; one that CANNOT names is not had.
const pretended = `#!/bin/sh
case "$*" in
"install "*"$CANNOT"*) echo "no such host" >&2; exit 1 ;;
"install "*gosec*) printf '#!/bin/sh\n' >"$GOBIN/gosec"; chmod +x "$GOBIN/gosec" ;;
"install "*) printf '#!/bin/sh\necho "looked with $*"\n[ "$*" != "${*#*symbol}" ] || exit %s\nexit %s\n' "${IMPORTED:-$GOVULNCHECK}" "$GOVULNCHECK" >"$GOBIN/govulncheck"; chmod +x "$GOBIN/govulncheck" ;;
"list "*) echo example.test/module ;;
esac
`

// A check that was skipped must not look like one that passed.
func TestSecurityThatWasNotCheckedIsNotGreen(t *testing.T) {
	programs, data := t.TempDir(), t.TempDir()
	write := func(path, content string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(programs, "go"), pretended, 0o755)
	write(filepath.Join(data, "copy", "index", "modules.json"), "[]", 0o644)
	write(filepath.Join(data, "packed", "govulndb", "index", "modules.json"), "[]", 0o644)
	if out, err := exec.Command("tar", "-czf", filepath.Join(data, "packed", "govulndb.tgz"), "-C", filepath.Join(data, "packed"), "govulndb").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(data, "packed", "govulndb")); err != nil {
		t.Fatal(err)
	}
	nothing := "TANDEM_DATA=" + filepath.Join(data, "none")
	for name, one := range map[string]struct {
		environment []string
		code        int
		last        string // of the lines
	}{
		"all is well":               {[]string{nothing, "GOVULNCHECK=0"}, 0, "looked with -scan package ./cmd/tandem"},
		"a hole that nothing calls": {[]string{nothing, "IMPORTED=3", "GOVULNCHECK=0"}, 0, "looked with -scan symbol ./cmd/tandem"},
		"a hole":                    {[]string{nothing, "GOVULNCHECK=3"}, 1, "looked with -scan symbol ./cmd/tandem"},
		"no database":               {[]string{nothing, "GOVULNCHECK=1"}, 3, "NOT CHECKED: govulncheck: "},
		"no database, allowed":      {[]string{nothing, "GOVULNCHECK=1", "TANDEM_SECURITY_UNCHECKED=allow"}, 0, "NOT CHECKED: govulncheck: "},
		"no govulncheck":            {[]string{nothing, "GOVULNCHECK=0", "CANNOT=golang.org"}, 3, "NOT CHECKED: govulncheck: "},
		"no gosec":                  {[]string{nothing, "GOVULNCHECK=0", "CANNOT=scripts/gosec"}, 3, "NOT CHECKED: gosec: "},
		"a copy that is named":      {[]string{nothing, "GOVULNCHECK=0", "TANDEM_VULNERABILITY_DATABASE=" + filepath.Join(data, "copy")}, 0, "looked with -db=file://" + filepath.Join(data, "copy") + " -scan package ./cmd/tandem"},
		"a packed copy":             {[]string{"TANDEM_DATA=" + filepath.Join(data, "packed"), "GOVULNCHECK=0"}, 0, "looked with -db=file://"},
		"no copy":                   {[]string{nothing, "GOVULNCHECK=0", "TANDEM_VULNERABILITY_DATABASE=" + data}, 1, "check-security: " + data + " has no index/modules.json"},
	} {
		command := exec.Command("scripts/check-security")
		command.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "CANNOT=nothing", "TANDEM_SECURITY_UNCHECKED=", "TANDEM_VULNERABILITY_DATABASE=")
		command.Env = append(command.Env, one.environment...)
		out, err := command.CombinedOutput()
		code := 0
		if ended, ok := errors.AsType[*exec.ExitError](err); ok {
			code = ended.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if code != one.code || !strings.HasPrefix(lines[len(lines)-1], one.last) {
			t.Errorf("%s: code %d, want %d, and %q last:\n%s", name, code, one.code, one.last, out)
		}
	}
}

// A misspelt run must not pass for one that was made.
func TestThereAreThreeRunsOfTheTests(t *testing.T) {
	out, err := exec.Command("scripts/test", "quickly").CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 2 || !strings.Contains(string(out), "quickly is neither quick nor long") {
		t.Errorf("%v: %s", err, out)
	}
}

// What a script of checks started beside the others ends with it, and so does what that started.
func TestNothingRunsOnAfterTheChecks(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	out, err := exec.Command("sh", "-c", `. scripts/beside
beside tests sh -c 'sleep 600 & echo $! >"$1.new"; mv "$1.new" "$1"; wait' sh "$1"
until [ -e "$1" ]; do sleep 0.01; done
exit 7`, "sh", started).CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 7 {
		t.Fatalf("%v: %s", err, out)
	}
	child, err := os.ReadFile(started)
	if err != nil {
		t.Fatal(err)
	}
	for patience := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		status, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(child)), "status"))
		if err != nil || strings.Contains(string(status), "State:\tZ") {
			return
		}
		if time.Now().After(patience) {
			t.Fatalf("it runs on: %s", status)
		}
	}
}

// Without a driver the check of GPUs says of each step why it was left out.
func TestTheGPUCheckSaysWhatItLeavesOut(t *testing.T) {
	out := t.TempDir()
	if said, err := exec.Command("scripts/gpu-check", "--help").CombinedOutput(); err != nil || !strings.Contains(string(said), "--change-settings") {
		t.Errorf("%v: %s", err, said)
	}
	said, err := exec.Command("scripts/gpu-check", "--binary", "scripts/test", "--out", out, "--nvml", filepath.Join(out, "nothing")).CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 3 {
		t.Fatalf("%v: %s", err, said)
	}
	report, err := os.ReadFile(filepath.Join(out, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"doctor", "share", "memory", "auto", "transformer", "known"} {
		if !strings.Contains(string(report), "| "+step+" | the whole step | - | this check | skipped: no NVIDIA driver: ") {
			t.Errorf("of %s it says:\n%s", step, report)
		}
	}
}

// TestNoReleaseHasAFakeProcessor: a worker that was built so believes to be in a
// confidential machine.
func TestNoReleaseHasAFakeProcessor(t *testing.T) {
	for _, folder := range []string{"scripts", "deploy", "Makefile"} {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			if strings.Contains(string(content), "fakeenclave") {
				t.Errorf("%s builds with the tag fakeenclave, which is for tests", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// slow is a go command whose build goes on until somebody was told how far it is,
// or which fails if FAILS says so.
const slow = `#!/bin/sh
[ "$1" = build ] || exit 0
echo "go: downloading example.test/one v1.0.0" >&2
printf '%s\n' example.test/one example.test/two >&2
if [ -n "$FAILS" ]; then
	printf '# example.test/two\ntwo.c:3:1: no such thing\n' >&2
	exit 1
fi
for i in $(seq 600); do
	! grep -q "packages compiled" "$TOLD" || break
	sleep 0.1
done
mkdir -p bin
printf '#!/bin/sh\necho "ran $*"\n' >bin/tandem
chmod +x bin/tandem
`

// The first command of the README says what it does while it takes minutes.
func TestTheQuickstartSaysWhatItDoes(t *testing.T) {
	root := t.TempDir()
	told := filepath.Join(root, "told")
	write := func(path, content string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script, err := os.ReadFile("scripts/quickstart")
	if err != nil {
		t.Fatal(err)
	}
	write("scripts/quickstart", string(script))
	write("scripts/require-go", "#!/bin/sh\n")
	write("scripts/setup-python", "#!/bin/sh\necho \"setup-python: making it\" >&2\necho more\necho \"example=small python=/somewhere/bin/python\"\n")
	write("programs/go", slow)
	run := func(fails string) (string, string, error) {
		out, err := os.Create(told)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		command := exec.Command(filepath.Join(root, "scripts", "quickstart"), "--slots", "1")
		command.Env = append(os.Environ(), "PATH="+filepath.Join(root, "programs")+":"+os.Getenv("PATH"), "TOLD="+told, "FAILS="+fails, "TANDEM_PROGRESS_SECONDS=0")
		command.Stderr = out
		ran, failed := command.Output()
		said, err := os.ReadFile(told)
		if err != nil {
			t.Fatal(err)
		}
		return string(ran), string(said), failed
	}
	ran, said, err := run("")
	if want := "ran run examples/small/study.yaml --data .tandem --path /somewhere/bin --slots 1\n"; err != nil || ran != want {
		t.Errorf("%v: %q, want %q; it said\n%s", err, ran, want, said)
	}
	for _, want := range []string{"1 of 3: building bin/tandem", "minutes the first time", "2 packages compiled, the last one example.test/two", "2 of 3: the example's Python", "setup-python: making it", "3 of 3: tuning examples/small"} {
		at := strings.Index(said, want)
		if at < 0 {
			t.Fatalf("it does not say %q, or too late:\n%s", want, said)
		}
		said = said[at:]
	}
	if ran, said, err := run("yes"); err == nil || ran != "" || !strings.Contains(said, "two.c:3:1: no such thing") || !strings.Contains(said, "the build failed") {
		t.Errorf("a build that fails: %v, %q, and it says\n%s", err, ran, said)
	}
}

// A release names its commit, so that it is not made of anything else.
func TestAReleaseIsOfACommit(t *testing.T) {
	place := t.TempDir()
	if out, err := exec.Command("sh", "-c", `git init -q "$1" && mkdir "$1/scripts" && cp scripts/release "$1/scripts/"`, "sh", place).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for argument, want := range map[string]string{"riscv64": "riscv64 is neither amd64 nor arm64", "amd64": "there are changes that no commit has"} {
		command := exec.Command(filepath.Join(place, "scripts", "release"), argument)
		if out, err := command.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("scripts/release %s: %v without %q: %s", argument, err, want, out)
		}
	}
	if _, err := os.Stat(filepath.Join(place, "dist")); err == nil {
		t.Error("something was built")
	}
}
