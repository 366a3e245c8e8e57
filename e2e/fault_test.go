package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestExportKeepsThePromiseOfJSON(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "exported", nineEpochs, "0.1", 1)
	at := newSite(t)
	at.must("study", "create", s.file)
	if text := at.must("study", "export", s.name, "--json"); !json.Valid([]byte(text)) {
		t.Errorf("--json printed\n%s", text)
	}
	if got := at.cli("study", "export", s.name, "--json", "--format", "csv"); got.code != 2 || got.stdout != "" {
		t.Errorf("--json with --format csv: exit code %d, %s", got.code, got.stdout)
	}
}

func TestTimingThatLosesEveryLeaseIsRefused(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{{"--lease-seconds", "5"}, {"--heartbeat-seconds", "40"}, {"--lease-seconds", "0"}, {"--lease-seconds", "NaN"}} {
		got := cli(t, nil, append([]string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0"}, flags...)...)
		if got.code != 2 || !strings.Contains(got.stderr, "--heartbeat-seconds") {
			t.Errorf("tandem serve %v: exit code %d, %s", flags, got.code, got.stderr)
		}
	}
}

// TestAClientThatHangsKeepsNoServerAlive stops a server to which somebody has
// sent half a request.
func TestAClientThatHangsKeepsNoServerAlive(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	connection, err := net.Dial("tcp", at.listen)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	fmt.Fprintf(connection, "POST /api/v1/studies HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n", at.listen, at.token)
	if _, err := connection.Read(make([]byte, 1)); err != nil { // it waits for the body now
		t.Fatal(err)
	}
	if err := at.server.Stop(); err != nil {
		t.Errorf("the server did not end cleanly: %v\n%s", err, at.server.Output())
	}
	at.start()
}

// TestAnInterruptEndsAWaitForInput interrupts a command that reads its standard
// input.
func TestAnInterruptEndsAWaitForInput(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), binary, "study", "plan", "-")
	var output strings.Builder
	command.Stdout, command.Stderr = &output, &output
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds: when it is written, the command is reading.
	if _, err := input.Write(bytes.Repeat([]byte("# \n"), 50_000)); err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 130 {
			t.Errorf("it ended with %v\n%s", err, output.String())
		}
	case <-time.After(5 * time.Minute):
		command.Process.Kill() //nolint:errcheck // it may have ended already
		t.Error("it waits for its input as if nothing had happened")
	}
}
