package servecmd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/beside"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/web/audit"
)

// heard keeps what a command says while it runs.
type heard struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (h *heard) Write(data []byte) (int, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.text.Write(data)
}

func (h *heard) String() string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.text.String()
}

// serving runs "tandem serve" on the data folder until the test or end ends it,
// and returns its greeting.
func serving(t *testing.T, data string, flags ...string) (greeting string, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr heard
	ended := make(chan int, 1)
	go func() {
		ended <- term.Execute(ctx, root(), append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, flags...), &stdout, &stderr)
	}()
	end = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(end)
	for stdout.String() == "" { // the greeting is one write
		select {
		case code := <-ended:
			t.Fatalf("serve ended with %d: %s", code, stderr.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return stdout.String(), end
}

// command runs a command line.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, wrong bytes.Buffer
	code = term.Execute(t.Context(), root(), args, &out, &wrong)
	return code, strings.TrimSpace(out.String()), wrong.String()
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

func TestTokensAreMadeBesideARunningServer(t *testing.T) {
	t.Setenv("TANDEM_TOKEN", "")
	t.Setenv("TANDEM_SERVER", "")
	// A socket's path may have 107 bytes; a data folder's may have more.
	data := filepath.Join(t.TempDir(), strings.Repeat("deep", 30), "it's here")
	if err := os.MkdirAll(filepath.Dir(data), 0o700); err != nil {
		t.Fatal(err)
	}
	greeting, end := serving(t, data)
	if !strings.Contains(greeting, "export TANDEM_TOKEN=tandem_admin_") {
		t.Errorf("the first start says\n%s", greeting)
	}
	end()
	folder := filepath.Join(data, beside.Folder)
	abandon(t, folder) // as kill -9 does
	greeting, end = serving(t, data)
	if strings.Contains(greeting, "tandem_admin_") || !strings.Contains(greeting, "/login") || !strings.Contains(greeting, `tandem token create --scope admin --data '`+strings.ReplaceAll(data, "'", `'\''`)+"'\n") {
		t.Errorf("the second start says\n%s", greeting)
	}
	for path, want := range map[string]os.FileMode{folder: 0o700 | os.ModeDir, filepath.Join(folder, beside.Socket): 0o600 | os.ModeSocket} {
		if about, err := os.Lstat(path); err != nil || about.Mode() != want {
			t.Errorf("%s: %v, %v", path, about.Mode(), err)
		}
	}
	code, token, stderr := command(t, "token", "create", "--scope", "admin", "--name", "again", "--data", data)
	if code != term.ExitOK || !strings.HasPrefix(token, "tandem_admin_") {
		t.Fatalf("code %d: %s %s", code, token, stderr)
	}
	t.Setenv("TANDEM_TOKEN", token)
	if code, list, stderr := command(t, "token", "list", "--server", address.FindString(greeting)); code != term.ExitOK || !strings.Contains(list, "again") {
		t.Errorf("with the token that was made: code %d, %s %s", code, list, stderr)
	}
	if code, _, stderr := command(t, "token", "create", "--scope", "user", "--name", "NO", "--data", data); code != term.ExitUsage || !strings.Contains(stderr, "must name a user") {
		t.Errorf("what is no user's name: code %d, %s", code, stderr)
	}
	who := fmt.Sprintf("user %d on the server's machine", os.Getuid())
	if log, err := audit.Newest(filepath.Join(data, auditFolder), 100); err != nil || !slices.ContainsFunc(log, func(e audit.Entry) bool { return e.Who == who && e.Detail == "admin:again" }) {
		t.Errorf("the audit log: %+v %v", log, err)
	}
	end()
	if _, err := os.Lstat(filepath.Join(folder, beside.Socket)); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	if code, token, stderr := command(t, "token", "create", "--scope", "viewer", "--data", data); code != term.ExitOK || !strings.HasPrefix(token, "tandem_viewer_") {
		t.Errorf("while no server runs: code %d, %s", code, stderr)
	}
}

// abandon leaves a socket that nobody listens to.
func abandon(t *testing.T, path string) {
	t.Helper()
	folder, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), beside.Socket), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
}

// A session's token is valid as long as its connection is open, and a server that serves
// sessions alone ends with the last.
func TestASessionEndsWithItsConnection(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	var stderr heard
	ended := make(chan int, 1)
	go func() {
		ended <- term.Execute(t.Context(), root(), []string{"serve", "--while-used", "--data", data, "--listen", "127.0.0.1:0"}, io.Discard, &stderr)
	}()
	first, hangUp := session(t, data)
	second, hangUpSecond := session(t, data)
	if first.URL != second.URL || first.Token == second.Token {
		t.Errorf("two sessions: %+v %+v", first, second)
	}
	for _, one := range []opening{first, second} {
		t.Setenv("TANDEM_TOKEN", one.Token)
		if code, _, wrong := command(t, "token", "list", "--server", one.URL); code != term.ExitOK {
			t.Errorf("with a session's token: code %d, %s", code, wrong)
		}
	}
	hangUp()
	t.Setenv("TANDEM_TOKEN", first.Token)
	for code := term.ExitOK; code == term.ExitOK; time.Sleep(10 * time.Millisecond) {
		code, _, _ = command(t, "token", "list", "--server", first.URL)
	}
	t.Setenv("TANDEM_TOKEN", second.Token)
	if code, _, wrong := command(t, "token", "list", "--server", second.URL); code != term.ExitOK {
		t.Errorf("beside a session that is over: code %d, %s", code, wrong)
	}
	hangUpSecond()
	if code := <-ended; code != term.ExitOK {
		t.Errorf("the server ended with %d: %s", code, stderr.String())
	}
	if code, _, wrong := command(t, "serve", "--while-used", "--data", data, "--database", "postgres://one@nowhere/here"); code != term.ExitUsage || !strings.Contains(wrong, "leave out --database") {
		t.Errorf("with a database: code %d, %s", code, wrong)
	}
}

// session opens a session with the server in the data folder, which may be starting.
func session(t *testing.T, data string) (first opening, hangUp func()) {
	t.Helper()
	connection, err := net.Dial("unix", filepath.Join(data, beside.Folder, beside.Socket))
	for ; err != nil && t.Context().Err() == nil; connection, err = net.Dial("unix", filepath.Join(data, beside.Folder, beside.Socket)) {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", localSessions)
	answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(answer.Body).Decode(&first); err != nil {
		t.Fatal(err)
	}
	return first, func() { connection.Close() }
}

// Without --data, a token and an address, the server of the default folder is asked.
func TestTokensAreMadeBesideTheDefaultServer(t *testing.T) {
	base := t.TempDir()
	t.Setenv("XDG_DATA_HOME", base)
	t.Setenv("TANDEM_TOKEN", "")
	t.Setenv("TANDEM_SERVER", "")
	greeting, _ := serving(t, filepath.Join(base, "tandem"))
	if code, token, stderr := command(t, "token", "create", "--scope", "viewer"); code != term.ExitOK || !strings.HasPrefix(token, "tandem_viewer_") {
		t.Errorf("code %d: %s %s", code, token, stderr)
	}
	if code, _, stderr := command(t, "token", "create", "--scope", "viewer", "--server", address.FindString(greeting)); code != term.ExitFailed || !strings.Contains(stderr, "TANDEM_TOKEN") {
		t.Errorf("of a server that was named: code %d, %s", code, stderr)
	}
}

// The socket makes tokens and opens nothing else.
func TestTheLocalSocketOnlyMakesTokens(t *testing.T) {
	data := t.TempDir()
	serving(t, data)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", filepath.Join(data, beside.Folder, beside.Socket))
	}}}
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/api/v1/tokens", "", 404}, {"GET", "/api/v1/studies", "", 404}, {"DELETE", "/api/v1/tokens/x", "", 404},
		{"POST", "/api/v1/tokens", "no JSON", 422}, {"POST", "/api/v1/tokens", `{"name":"x","scope":"link"}`, 422}, {"POST", "/api/v1/tokens", `{"name":"x","scope":"viewer","ttl_seconds":1e300}`, 422},
		{"POST", "/api/v1/tokens", `{"name":"x","scope":"viewer","more":1}`, 422}, {"POST", "/api/v1/tokens", `{"name":"` + strings.Repeat("x", 1<<20) + `"}`, 422},
		{"POST", "/api/v1/tokens", `{"name":"x","scope":"viewer"}`, 201},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://localhost"+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if response.StatusCode != c.status || err != nil {
			t.Errorf("%s %s %.40s: %d %s (%v)", c.method, c.path, c.body, response.StatusCode, body, err)
		}
		response.Body.Close()
	}
}

// Whose process asks is told by the kernel, not by the modes of files alone.
func TestTheLocalSocketIsForItsOwnUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	const python = "/usr/bin/python3" // another user's folders may be closed
	if _, err := os.Stat(python); err != nil {
		t.Skip("no python3 to be somebody else with")
	}
	data, err := os.MkdirTemp("", "tandem-local-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(data) })
	serving(t, data)
	folder := filepath.Join(data, beside.Folder)
	socket := filepath.Join(folder, beside.Socket)
	ask := func(user uint32) string {
		child := exec.Command(python, "-c", `import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
try:
    s.sendall(b'POST /api/v1/tokens HTTP/1.0\r\nHost: x\r\nContent-Length: 29\r\n\r\n{"name":"x","scope":"viewer"}')
    print(s.recv(12).decode())
except (BrokenPipeError, ConnectionResetError):
    print("closed")`, socket)
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		child.Dir = "/"
		out, err := child.CombinedOutput()
		var ended *exec.ExitError
		if err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	if got := ask(0); got != "HTTP/1.0 201" {
		t.Errorf("root is answered %s", got)
	}
	if got := ask(65534); !strings.Contains(got, "PermissionError") {
		t.Errorf("somebody else gets through the folder: %s", got)
	}
	for path, mode := range map[string]os.FileMode{data: 0o755, folder: 0o755, socket: 0o666} { // were it opened by mistake
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if got := ask(65534); got != "" && got != "closed" {
		t.Errorf("somebody else is answered %s", got)
	}
}
