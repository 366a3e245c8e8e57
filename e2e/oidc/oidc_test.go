// Package oidc lets people sign in with a real OpenID provider: the example server of
// zitadel/oidc, on this machine. It is a module of its own: nothing of it is in the program.
//
//	go build -o /tmp/tandem ./cmd/tandem && TANDEM_BINARY=/tmp/tandem go -C e2e/oidc test ./...
package oidc_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
)

// site is a provider with the users alice, and bob whose address nobody has verified, and
// a server that takes its word.
type site struct {
	t              *testing.T
	binary, server string
	issuer, data   string
	stop           func()
}

func newSite(t *testing.T) *site {
	t.Helper()
	binary := os.Getenv("TANDEM_BINARY")
	if binary == "" {
		binary = filepath.Join(t.TempDir(), "tandem")
		build := exec.Command("go", "build", "-o", binary, "./cmd/tandem")
		build.Dir = "../.."
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, binary: binary, server: free.Addr().String(), issuer: "http://" + listener.Addr().String(), data: t.TempDir(), stop: func() {}}
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	users := filepath.Join(t.TempDir(), "users.json")
	person := func(name string, verified bool) *storage.User {
		return &storage.User{ID: name, Username: name, Password: "right", Email: name + "@example.org", EmailVerified: verified}
	}
	content, err := json.Marshal(map[string]*storage.User{"alice": person("alice", true), "bob": person("bob", false)})
	if err == nil {
		err = os.WriteFile(users, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	store, err := storage.StoreFromFile(users)
	if err != nil {
		t.Fatal(err)
	}
	storage.RegisterClients(storage.WebClient("browser", "secret", "http://"+s.server+"/login"), storage.DeviceClient("device", "secret"))
	provider := httptest.NewUnstartedServer(exampleop.SetupServer(s.issuer, storage.NewStorage(store), slog.New(slog.DiscardHandler), false))
	provider.Listener.Close() //nolint:errcheck // ours takes its place
	provider.Listener = listener
	provider.Start()
	t.Cleanup(provider.Close)
	t.Cleanup(func() { s.stop() })
	return s
}

// serve starts the server as that client of the provider.
func (s *site) serve(client string, more ...string) {
	s.t.Helper()
	s.stop()
	secret := filepath.Join(s.t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	args := append([]string{"serve", "--listen", s.server, "--data", s.data, "--oidc-issuer", s.issuer, "--oidc-client", client, "--oidc-secret-file", secret}, more...)
	command := exec.Command(s.binary, args...)
	out, err := command.StdoutPipe()
	if err == nil {
		command.Stderr = command.Stdout
		err = command.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	lines, said := bufio.NewScanner(out), ""
	for lines.Scan() {
		said += lines.Text() + "\n"
		if strings.Contains(said, "Tandem answers at") {
			break
		}
	}
	if !strings.Contains(said, "Tandem answers at") {
		s.t.Fatalf("the server did not start:\n%s", said)
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // it ends with the server
	s.stop = func() {
		s.stop = func() {}
		if err := command.Process.Signal(os.Interrupt); err != nil {
			s.t.Error(err)
		}
		if err := command.Wait(); err != nil {
			s.t.Logf("the server ended with %v", err)
		}
	}
}

// browser keeps cookies and follows redirects, but not the one back to the server.
func (s *site) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Host == s.server {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// ask sends a document and returns the status and the answer.
func (s *site) ask(browser *http.Client, method, path string, document any) (int, string) {
	s.t.Helper()
	body, err := json.Marshal(document)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequest(method, "http://"+s.server+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := browser.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// form fills in the form of a page of the provider, and returns where that leads.
func (s *site) form(browser *http.Client, address string, values url.Values) *http.Response {
	s.t.Helper()
	answer, err := browser.PostForm(address, values)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		s.t.Error(err)
	}
	return answer
}

// signIn does what a person and the page do, and returns the last answer.
func (s *site) signIn(browser *http.Client, user string) (int, string) {
	s.t.Helper()
	status, text := s.ask(browser, "POST", "/api/v1/session/provider", nil)
	var start struct{ Address string }
	if err := json.Unmarshal([]byte(text), &start); status != 200 || err != nil {
		s.t.Fatalf("%d %s", status, text)
	}
	page, err := browser.Get(start.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	content, err := io.ReadAll(page.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	page.Body.Close()
	id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindSubmatch(content)
	if id == nil {
		s.t.Fatalf("the provider's page has no form:\n%s", content)
	}
	back := s.form(browser, s.issuer+"/login/username", url.Values{"id": {string(id[1])}, "username": {user}, "password": {"right"}})
	location, err := back.Location()
	if err != nil {
		s.t.Fatalf("the provider leads nowhere: %v", err)
	}
	return s.ask(browser, "POST", "/api/v1/session/provider/finish", map[string]string{"code": location.Query().Get("code"), "state": location.Query().Get("state")})
}

func TestPeopleSignIn(t *testing.T) {
	s := newSite(t)
	s.serve("browser", "--oidc-allow-domain", "example.org")
	alice := s.browser()
	if status, text := s.signIn(alice, "alice"); status != 204 {
		t.Fatalf("alice: %d %s", status, text)
	}
	if _, who := s.ask(alice, "GET", "/api/v1/session", nil); !strings.Contains(who, `"owner":"alice"`) {
		t.Errorf("alice is %s", who)
	}
	bob := s.browser()
	if status, text := s.signIn(bob, "bob"); status != 403 || !strings.Contains(text, "verified") {
		t.Errorf("bob, whose address is not verified: %d %s", status, text)
	}
	if status, _ := s.ask(bob, "GET", "/api/v1/session", nil); status != 401 {
		t.Errorf("bob has a session: %d", status)
	}
	if status, _ := s.ask(alice, "DELETE", "/api/v1/session", nil); status != 204 {
		t.Errorf("alice signs out: %d", status)
	}
	if status, _ := s.ask(alice, "GET", "/api/v1/session", nil); status != 401 {
		t.Errorf("alice after that: %d", status)
	}
	// The placebo: the same people, where other domains are let in.
	s.serve("browser", "--oidc-allow-domain", "example.com")
	if status, text := s.signIn(s.browser(), "alice"); status != 403 || !strings.Contains(text, "--oidc-allow-domain") {
		t.Errorf("alice, of a domain that is not let in: %d %s", status, text)
	}
	command := exec.Command(s.binary, "serve", "--listen", s.server, "--data", t.TempDir(), "--oidc-issuer", s.issuer, "--oidc-client", "browser")
	if out, err := command.CombinedOutput(); err == nil || !strings.Contains(string(out), "nobody could sign in") {
		t.Errorf("a server that lets nobody in: %v\n%s", err, out)
	}
}

func TestTheCommandLineSignsIn(t *testing.T) {
	s := newSite(t)
	s.serve("device", "--oidc-allow-domain", "example.org")
	home := t.TempDir()
	run := func(args ...string) *exec.Cmd {
		command := exec.Command(s.binary, append(args, "--server", "http://"+s.server)...)
		command.Env = append(os.Environ(), "XDG_CONFIG_HOME="+home, "TANDEM_TOKEN=")
		return command
	}
	if out, err := run("study", "list").CombinedOutput(); err == nil {
		t.Errorf("before: %s", out)
	}
	login := run("login")
	out, err := login.StdoutPipe()
	if err == nil {
		login.Stderr = login.Stdout
		err = login.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	code := regexp.MustCompile(`enter (\S+)`).FindStringSubmatch(lines.Text())
	if code == nil {
		t.Fatalf("it says %q", lines.Text())
	}
	person := s.browser()
	s.form(person, s.issuer+"/device/login", url.Values{"user_code": {code[1]}, "username": {"alice"}, "password": {"right"}})
	s.form(person, s.issuer+"/device/confirm", url.Values{"action": {"allowed"}})
	rest := ""
	for lines.Scan() {
		rest += lines.Text()
	}
	if err := login.Wait(); err != nil || !strings.Contains(rest, "Signed in as alice") {
		t.Fatalf("%v: %s", err, rest)
	}
	files, err := filepath.Glob(filepath.Join(home, "tandem", "tokens", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v: %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file is %v: %v", info.Mode(), err)
	}
	if text, err := run("study", "list").CombinedOutput(); err != nil || !strings.Contains(string(text), "No studies yet") {
		t.Errorf("afterwards: %v\n%s", err, text)
	}
	if strings.Contains(rest, "tandem_user_") {
		t.Error("it printed the token")
	}
	token, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if text, err := run("logout").CombinedOutput(); err != nil || !strings.Contains(string(text), "Signed out of http://"+s.server) {
		t.Errorf("logout: %v\n%s", err, text)
	}
	if _, err := os.Stat(files[0]); err == nil {
		t.Error("logout left the token's file")
	}
	stolen := run("study", "list")
	stolen.Env = append(stolen.Env, "TANDEM_TOKEN="+strings.TrimSpace(string(token)))
	if text, err := stolen.CombinedOutput(); err == nil {
		t.Errorf("after logout the token still works:\n%s", text)
	}
	if text, err := run("logout").CombinedOutput(); err == nil || !strings.Contains(string(text), "you are not signed in") {
		t.Errorf("a second logout: %v\n%s", err, text)
	}
}
