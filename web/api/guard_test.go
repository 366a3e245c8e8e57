package api_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
)

// operation is what the OpenAPI document says of one method of one path.
type operation struct {
	ID       string           `json:"operationId"`
	Scopes   []string         `json:"x-scopes"`
	Security []map[string]any `json:"security"`
}

// published reads the OpenAPI document: the routes as outsiders know them.
func (s *stage) published() map[string]map[string]operation {
	s.t.Helper()
	got := s.do(ask{method: "GET", path: "/api/v1/openapi.json"})
	if got.status != 200 || got.header.Get("Content-Type") != "application/json" {
		s.t.Fatalf("%d %s", got.status, got.body)
	}
	var document struct {
		Paths map[string]map[string]operation `json:"paths"`
	}
	if err := json.Unmarshal(got.body, &document); err != nil {
		s.t.Fatal(err)
	}
	return document.Paths
}

// expectedAccess is written by hand, so that a route that opens by mistake
// fails here. "" stands for everybody.
var expectedAccess = map[string]string{
	"GET /healthz": "", "GET /readyz": "", "GET /metrics": "admin viewer", "GET /api/v1/openapi.json": "", "POST /api/v1/session": "",
	"GET /api/v1/session": "admin user worker viewer link launcher device", "DELETE /api/v1/session": "admin user worker viewer link launcher device",
	"GET /api/v1/session/provider": "", "POST /api/v1/session/provider": "", "POST /api/v1/session/provider/finish": "", "POST /api/v1/session/device": "", "POST /api/v1/session/device/token": "",
	"GET /api/v1/audit": "admin", "GET /api/v1/users": "admin", "DELETE /api/v1/users/{user}": "admin",
	"POST /api/v1/boards/ask": "admin device", "POST /api/v1/boards/runs": "admin device", "GET /api/v1/boards": "admin user viewer",
	"POST /api/v1/tokens": "admin", "GET /api/v1/tokens": "admin", "DELETE /api/v1/tokens/{token}": "admin",
	"POST /api/v1/studies": "admin user", "GET /api/v1/studies": "admin user viewer",
	"GET /api/v1/studies/{study}": "admin user viewer link", "DELETE /api/v1/studies/{study}": "admin user",
	"POST /api/v1/studies/{study}/enqueue": "admin user",
	"POST /api/v1/studies/{study}/pause":   "admin user", "POST /api/v1/studies/{study}/resume": "admin user", "POST /api/v1/studies/{study}/extend": "admin user", "POST /api/v1/studies/{study}/set": "admin user", "POST /api/v1/studies/{study}/stop": "admin user",
	"GET /api/v1/studies/{study}/recommendation": "admin user viewer link", "GET /api/v1/studies/{study}/pareto": "admin user viewer link", "GET /api/v1/studies/{study}/importance": "admin user viewer link", "GET /api/v1/studies/{study}/edge": "admin user viewer link", "GET /api/v1/studies/{study}/advice": "admin user viewer link", "GET /api/v1/studies/{study}/correlations": "admin user viewer link", "GET /api/v1/studies/{study}/measurements": "admin user viewer link", "GET /api/v1/studies/{study}/export": "admin user viewer link",
	"GET /api/v1/studies/{study}/columns": "admin user viewer link", "GET /api/v1/studies/{study}/curves": "admin user viewer link", "GET /api/v1/studies/{study}/timeline": "admin user viewer link", "GET /api/v1/studies/{study}/plan": "admin user viewer link", "GET /api/v1/studies/{study}/deflation": "admin user viewer",
	"GET /api/v1/studies/{study}/events": "admin user viewer link", "GET /api/v1/studies/{study}/trials": "admin user viewer link",
	"GET /api/v1/studies/{study}/trials/{number}": "admin user viewer link", "GET /api/v1/studies/{study}/trials/{number}/log": "admin user viewer link", "GET /api/v1/studies/{study}/trials/{number}/samples": "admin user viewer link",
	"POST /api/v1/studies/{study}/annotate": "admin user", "POST /api/v1/studies/{study}/trials/{number}/annotate": "admin user", "POST /api/v1/preview": "admin user",
	"POST /api/v1/studies/{study}/links": "admin user", "GET /api/v1/studies/{study}/links": "admin user", "DELETE /api/v1/studies/{study}/links/{link}": "admin user",
	"POST /api/v1/workers": "admin user worker", "GET /api/v1/workers": "admin user viewer", "GET /api/v1/pool": "admin user viewer", "GET /api/v1/workers/{worker}/history": "admin user viewer",
	"POST /api/v1/workers/{worker}/heartbeat": "admin user worker", "DELETE /api/v1/workers/{worker}": "admin user worker", "POST /api/v1/workers/{worker}/gone": "admin user launcher",
	"POST /api/v1/enrolments": "admin user launcher", "POST /api/v1/enrolments/exchange": "enrolment",
	"POST /api/v1/leases": "admin user worker", "POST /api/v1/trials/{trial}/reports": "admin user worker",
	"POST /api/v1/trials/{trial}/architecture": "admin user worker", "POST /api/v1/trials/{trial}/inferences": "admin user worker",
	"GET /api/v1/studies/{study}/trials/{number}/deployments": "admin user viewer link",
	"GET /api/v1/architectures":                               "admin viewer",
	"POST /api/v1/trials/{trial}/checkpoint":                  "admin user worker", "POST /api/v1/trials/{trial}/finish": "admin user worker",
	"POST /api/v1/trials/{trial}/log": "admin user worker", "POST /api/v1/trials/{trial}/samples": "admin user worker",
	"POST /api/v1/trials/{trial}/artifacts": "admin user worker", "GET /api/v1/studies/{study}/trials/{number}/artifacts/{name}": "admin user viewer link", "PUT /api/v1/artifacts/{sha256}": "admin user worker", "POST /api/v1/artifacts/{sha256}/link": "admin user worker", "POST /api/v1/artifacts/{sha256}/uploaded": "admin user worker",
	"GET /api/v1/ground-truth": "admin user viewer", "GET /api/v1/ground-truth/machines": "admin user viewer",
	"GET /api/v1/ground-truth/runs": "admin user viewer", "GET /api/v1/ground-truth/clusters": "admin user viewer",
	"POST /api/v1/ground-truth": "admin", "DELETE /api/v1/ground-truth": "admin",
	"PUT /api/v1/pool/launchers/{launcher}": "admin user launcher", "POST /api/v1/pool/launchers/{launcher}/try-again": "admin user", "GET /api/v1/pool/launches": "admin user viewer",
	"GET /api/v1/pool/wanted": "admin user viewer launcher", "GET /api/v1/pool/forecast": "admin user viewer", "GET /api/v1/pool/advice": "admin viewer",
	"GET /api/v1/quotas": "admin user viewer", "PUT /api/v1/quotas/{user}": "admin", "DELETE /api/v1/quotas/{user}": "admin",
	"GET /api/v1/groups": "admin user viewer", "PUT /api/v1/groups/{group}": "admin", "DELETE /api/v1/groups/{group}": "admin", "PUT /api/v1/studies/{study}/groups": "admin user", "PUT /api/v1/studies/{study}/owner": "admin user",
	"GET /api/v1/backends": "admin user viewer", "PUT /api/v1/backends/{backend}": "admin", "DELETE /api/v1/backends/{backend}": "admin", "GET /api/v1/studies/{study}/backend": "admin user viewer",
	"GET /api/v1/reservations": "admin user viewer", "POST /api/v1/reservations": "admin", "DELETE /api/v1/reservations/{reservation}": "admin",
	"POST /api/v1/workers/{worker}/drain": "admin user", "DELETE /api/v1/workers/{worker}/drain": "admin user",
	"POST /api/v1/hooks": "admin user", "GET /api/v1/hooks": "admin user", "DELETE /api/v1/hooks/{hook}": "admin user", "POST /api/v1/hooks/{hook}/test": "admin user", "GET /api/v1/studies/{study}/hooks": "admin user viewer",
	"POST /api/v1/datasets": "admin user", "GET /api/v1/datasets": "admin user", "DELETE /api/v1/datasets/{sha256}": "admin user",
	"GET /api/v1/artifacts/{sha256}": "admin user worker viewer", "HEAD /api/v1/artifacts/{sha256}": "admin user worker viewer",
}

func TestEveryRouteIsOpenToItsScopesOnly(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(c *api.Config) { c.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} })
	expired, _, err := auth.Issue(t.Context(), s.store, auth.Request{Name: "expired", Scope: auth.Admin, Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s.pass(2 * time.Hour)
	foreign, _, err := auth.Issue(t.Context(), memory.New(), auth.Request{Name: "of another server", Scope: auth.Admin})
	if err != nil {
		t.Fatal(err)
	}
	admin := s.secrets[auth.Admin]
	cut := admin[:len(admin)-1]
	relabelled := strings.Replace(s.secrets[auth.Viewer], "viewer", "admin", 1)

	seen := map[string]bool{}
	for path, operations := range s.published() {
		for method, described := range operations {
			name := strings.ToUpper(method) + " " + path
			seen[name] = true
			want, known := expectedAccess[name]
			if !known {
				t.Errorf("%s is new: say here who may use it", name)
				continue
			}
			if got := strings.Join(described.Scopes, " "); got != want || (want == "") != (len(described.Security) == 0) {
				t.Errorf("%s is published for %q, want %q", name, got, want)
			}
			from := fmt.Sprintf("10.0.0.%d", len(seen)) // as an address has so many wrong tokens a minute
			request := ask{method: strings.ToUpper(method), path: concrete(path), header: map[string]string{"X-Forwarded-For": from}}
			for _, wrong := range []string{"", expired, foreign, cut, relabelled, "nonsense", strings.Repeat("x", 5000)} {
				request.token = wrong
				got := s.do(request)
				if want != "" && got.status != http.StatusUnauthorized {
					t.Errorf("%s with the token %.30q: status %d", name, wrong, got.status)
				}
				if want == "" && got.status == http.StatusUnauthorized && path != "/api/v1/session" {
					t.Errorf("%s is public and asks for a token", name)
				}
			}
			for _, scope := range auth.Scopes() {
				request.token = s.secrets[scope]
				if name == "DELETE /api/v1/session" && scope == auth.User { // it ends the token
					request.token = s.another(scope)
				}
				refused := s.do(request).status == http.StatusForbidden
				allowed := want == "" || slices.Contains(strings.Fields(want), string(scope))
				if refused == allowed && path != "/api/v1/tokens/{token}" {
					t.Errorf("%s with a %s token: refused %v", name, scope, refused)
				}
			}
		}
	}
	for name := range expectedAccess {
		if !seen[name] {
			t.Errorf("%s is gone", name)
		}
	}
	// What is not in the table is closed too, before it is not found.
	s.do(ask{method: "GET", path: "/api/v1/secrets"}).problem(t, 401, problem.Unauthorized)
	s.do(ask{method: "PATCH", path: "/api/v1/studies"}).problem(t, 401, problem.Unauthorized)
}

// concrete is a path that its route answers.
func concrete(path string) string {
	return strings.NewReplacer("{study}", "x", "{number}", "0", "{worker}", workerID, "{trial}", "x-0", "{token}", "none", "{link}", "none",
		"{sha256}", strings.Repeat("0", 64)).Replace(path)
}

func TestRefusalsOfTokensAreProblems(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	got := s.do(ask{method: "GET", path: "/api/v1/studies"})
	got.problem(t, 401, problem.Unauthorized)
	if !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Bearer") {
		t.Errorf("WWW-Authenticate %q", got.header.Get("WWW-Authenticate"))
	}
	told := s.do(ask{method: "POST", path: "/api/v1/studies", token: s.secrets[auth.Worker]}).problem(t, 403, problem.Forbidden)
	if !strings.Contains(told.Detail, "worker") || !strings.Contains(told.Detail, "admin") {
		t.Errorf("the detail does not say which scope it takes: %s", told.Detail)
	}
	s.do(ask{method: "GET", path: "/api/v1/studies", header: map[string]string{"Authorization": "Basic YTpi"}}).problem(t, 401, problem.Unauthorized)
	// A wrong header is not made good by a cookie.
	cookie := s.signIn(auth.Viewer)
	s.do(ask{method: "GET", path: "/api/v1/studies", token: "wrong", header: map[string]string{"Cookie": cookie}}).problem(t, 401, problem.Unauthorized)
}

func TestForeignHostsAreRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(c *api.Config) { c.Hosts = []string{"10.1.2.3", "Tuning.Example.Org"} })
	for _, host := range []string{"evil.test", "evil.test:7171", "127.0.0.1.evil.test", "localhost.evil.test", "10.1.2.4", "[::2]:80", "example.org", "0.0.0.0"} {
		for _, path := range []string{"/api/v1/studies", "/healthz", "/login", "/assets/x.js", "/", "/api/v1/studies/x/events"} {
			s.admin("GET", path, "", "Host", host).problem(t, 403, problem.Forbidden)
		}
	}
	for _, host := range []string{"localhost", "LOCALHOST:80", "localhost.", "127.0.0.1", "127.9.9.9:1", "[::1]:7171", "10.1.2.3:7171", "tuning.example.org"} {
		if got := s.admin("GET", "/api/v1/studies", "", "Host", host); got.status != 200 {
			t.Errorf("%s: %d %s", host, got.status, got.body)
		}
	}
	wide := newStage(t, func(c *api.Config) { c.Hosts = []string{"::"} })
	if got := wide.admin("GET", "/healthz", "", "Host", "192.0.2.7:7171"); got.status != 200 {
		t.Errorf("an address of a server on all addresses: %d", got.status)
	}
	wide.admin("GET", "/healthz", "", "Host", "evil.test").problem(t, 403, problem.Forbidden)
}

func TestPagesOfOtherOriginsChangeNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create()
	cookie := s.signIn(auth.Admin)
	for name, header := range map[string]map[string]string{
		"cross-site":        {"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.test"},
		"same-site":         {"Sec-Fetch-Site": "same-site", "Origin": "http://evil.localhost"},
		"old browser":       {"Origin": "http://evil.test"},
		"null origin":       {"Origin": "null"},
		"no site, a origin": {"Sec-Fetch-Site": "", "Origin": "https://127.0.0.1:1"},
	} {
		for _, request := range []ask{
			{method: "POST", path: "/api/v1/studies/small/stop"}, {method: "DELETE", path: "/api/v1/studies/small"},
			{method: "POST", path: "/api/v1/session", body: `{"token":"x"}`}, {method: "PUT", path: "/api/v1/artifacts/" + strings.Repeat("0", 64)},
		} {
			request.header = map[string]string{"Cookie": cookie}
			for key, value := range header {
				if value != "" {
					request.header[key] = value
				}
			}
			if got := s.do(request); got.status != 403 {
				t.Errorf("%s: %s %s: %d", name, request.method, request.path, got.status)
			}
		}
	}
	own := map[string]string{"Cookie": cookie, "Sec-Fetch-Site": "same-origin", "Origin": s.server.URL}
	if got := s.do(ask{method: "POST", path: "/api/v1/studies/small/pause", header: own}); got.status != 200 {
		t.Fatalf("our own page: %d %s", got.status, got.body)
	}
	got := s.do(ask{method: "GET", path: "/api/v1/studies", header: map[string]string{"Cookie": cookie, "Origin": "http://evil.test"}})
	for name := range got.header {
		if strings.HasPrefix(name, "Access-Control") {
			t.Errorf("%s lets other origins read", name)
		}
	}
}

func TestEveryAnswerIsSecured(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cookie := s.signIn(auth.Viewer)
	for _, request := range []ask{
		{method: "GET", path: "/healthz"}, {method: "GET", path: "/api/v1/studies", token: s.secrets[auth.Viewer]},
		{method: "GET", path: "/api/v1/nothing"}, {method: "GET", path: "/login"}, {method: "GET", path: "/"},
		{method: "GET", path: "/studies", header: map[string]string{"Cookie": cookie}},
		{method: "GET", path: "/healthz", header: map[string]string{"Host": "evil.test"}},
	} {
		got := s.do(request)
		policy := got.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "script-src 'self'") || !strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "require-trusted-types-for 'script'; trusted-types 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", request.path, policy)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY",
		} {
			if got.header.Get(name) != want {
				t.Errorf("%s: %s is %q", request.path, name, got.header.Get(name))
			}
		}
		if strings.HasPrefix(request.path, "/api/") && got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be cached", request.path)
		}
	}
}

// lines is what a logger writes, line by line.
type lines chan []byte

func (l lines) Write(line []byte) (int, error) {
	l <- slices.Clone(line)
	return len(line), nil
}

// TestWhatTheServerItselfComplainsOfIsInTheLog: of a client that speaks no TLS where
// TLS is spoken no request ever comes, and who collects the log as JSON is told of it
// as JSON.
func TestWhatTheServerItselfComplainsOfIsInTheLog(t *testing.T) {
	t.Parallel()
	log := make(lines, 16)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config = api.NewHTTPServer("", http.NotFoundHandler(), slog.New(slog.NewJSONHandler(log, nil)))
	server.StartTLS()
	t.Cleanup(server.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(server.URL, "https:", "http:", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	select {
	case line := <-log:
		var told struct{ Level, Msg string }
		if err := json.Unmarshal(line, &told); err != nil || told.Level != "INFO" || !strings.Contains(told.Msg, "TLS handshake error") {
			t.Errorf("the log has %q, %v", line, err)
		}
	case <-time.After(5 * time.Minute):
		t.Error("the log has nothing")
	}
}

func TestServerLimits(t *testing.T) {
	t.Parallel()
	server := api.NewHTTPServer("127.0.0.1:0", http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	if server.ReadHeaderTimeout != 5*time.Second || server.IdleTimeout != 120*time.Second || server.MaxHeaderBytes != 16<<10 || server.WriteTimeout != 0 {
		t.Fatalf("%+v", server)
	}
	s := newStage(t)
	// net/http adds 4 KiB, and what it has read already of the next request: docs/operations.md.
	for size, want := range map[int]int{19 << 10: http.StatusOK, 24 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		got := s.do(ask{method: "GET", path: "/healthz", header: map[string]string{"X-Long": strings.Repeat("x", size)}})
		if got.status != want {
			t.Errorf("headers of more than %d bytes: %d", size, got.status)
		}
	}
}

// TestSecurityTellsWhatEachScopeOpens holds the table in SECURITY.md to what is
// published, which TestEveryRouteIsOpenToItsScopesOnly holds to what is done.
func TestSecurityTellsWhatEachScopeOpens(t *testing.T) {
	t.Parallel()
	told := map[string]string{}
	for line := range strings.Lines(string(read(t, "../../SECURITY.md"))) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 || !strings.HasPrefix(cells[2], " `") {
			continue
		}
		for name := range strings.SplitSeq(cells[2], ",") {
			told[strings.Trim(name, " `")] = strings.TrimSpace(cells[1])
		}
	}
	for path, operations := range newStage(t).published() {
		for method, described := range operations {
			want := strings.Join(described.Scopes, ", ")
			if want == "" {
				want = "none needed"
			}
			if told[described.ID] != want {
				t.Errorf("SECURITY.md tells that %s (%s %s) takes %q; it takes %s", described.ID, strings.ToUpper(method), path, told[described.ID], want)
			}
			delete(told, described.ID)
		}
	}
	if len(told) > 0 {
		t.Errorf("SECURITY.md tells of what is not there: %v", told)
	}
}

// A study's command runs where a worker takes it: whoever may create studies runs
// programs on the workers that serve everybody.
func TestAUsersCommandsGoToEveryWorker(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.issue(auth.Request{Name: "alice", Scope: auth.User})
	if _, err := s.as("alice").CreateStudy(t.Context(), []byte(smallStudy), "application/yaml"); err != nil {
		t.Fatal(err)
	}
	if lease := s.lease(s.worker()); !slices.Equal(lease.Command, []string{"train"}) {
		t.Errorf("a worker's token is handed %+v", lease)
	}
	told := string(read(t, "../../SECURITY.md"))
	if !strings.Contains(told, "| a user | a user's token | create studies, and so **run programs on every worker**") {
		t.Error("SECURITY.md does not tell that a user runs programs on every worker")
	}
}
