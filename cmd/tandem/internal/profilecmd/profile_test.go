package profilecmd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
)

const talking = `echo "{\"epoch\": 1, \"loss\": 2}"; sh -c ":"; echo late >&2; exit 5`

func TestProfileOfACommandAsJSON(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := execute(t, []string{"profile", "--json", "--interval", "20ms", "--", "sh", "-c", talking}, &stdout, &stderr)
	var got profiled
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s and %s", err, &stdout, &stderr)
	}
	if code != 5 || got.ExitCode != 5 {
		t.Errorf("the command ended with 5, tandem with %d, having seen %d", code, got.ExitCode)
	}
	if got.Profile.Seconds <= 0 || got.Energy.Method == "" {
		t.Errorf("got %+v, energy by %q", got.Profile, got.Energy.Method)
	}
	if len(got.Profile.Events)+len(got.Profile.Missing) < 62 {
		t.Errorf("%d events are counted and %d missing, of at least 62", len(got.Profile.Events), len(got.Profile.Missing))
	}
	if !strings.Contains(stderr.String(), `{"epoch": 1`) || !strings.Contains(stderr.String(), "late") {
		t.Errorf("the command's output is lost: %s", &stderr)
	}
}

func TestProfileOfACommandAsTable(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := execute(t, []string{"profile", "--", "sh", "-c", "sleep 0.01; " + talking}, &stdout, &stderr); code != 5 {
		t.Errorf("exit code %d, want 5", code)
	}
	if got := stdout.String(); got != "{\"epoch\": 1, \"loss\": 2}\n" {
		t.Errorf("standard output is not the command's alone: %q", got)
	}
	for _, part := range []string{"ended with code 5", "HOST", "tree.cpu_user", "Energy:", "late"} {
		if !strings.Contains(stderr.String(), part) {
			t.Errorf("%q is not in the report:\n%s", part, &stderr)
		}
	}
}

func TestProfileRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
		code int
	}{
		"an event":          {[]string{"--events", "page-faults,typo", "--", "true"}, "no event is called typo", term.ExitUsage},
		"no command":        {nil, "give a command", term.ExitUsage},
		"a short interval":  {[]string{"--interval", "1us", "--", "true"}, "at least 10ms", term.ExitUsage},
		"a missing program": {[]string{"--", "/does/not/exist"}, "start the command", term.ExitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			if code := execute(t, append([]string{"profile"}, test.args...), io.Discard, &stderr); code != test.code || !strings.Contains(stderr.String(), test.want) {
				t.Errorf("code %d and %q, want %d and %q", code, &stderr, test.code, test.want)
			}
		})
	}
}

func TestSignalsReachTheProfiledCommand(t *testing.T) {
	for _, one := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		tandem := exec.Command(os.Args[0], "profile", "--json", "--", "sh", "-c", "trap 'echo caught; exit 9' INT TERM; echo ready; while :; do sleep 0.02; done")
		tandem.Env = append(os.Environ(), "TANDEM_TEST_MAIN=1")
		tandem.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal of its own
		stderr, err := tandem.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := tandem.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stderr)
		for lines.Scan() && lines.Text() != "ready" {
		}
		if err := tandem.Process.Signal(one); err != nil {
			t.Fatal(err)
		}
		rest := ""
		for lines.Scan() {
			rest += lines.Text()
		}
		var exit *exec.ExitError
		if err := tandem.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 9 || !strings.Contains(rest, "caught") {
			t.Errorf("%v: the command ended with %v and printed %q", one, err, rest)
		}
	}
}
