package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/auth"
)

// signIn starts a session and returns the Cookie header for it.
func (s *stage) signIn(scope auth.Scope) string {
	s.t.Helper()
	cookie := s.sessionOf(s.secrets[scope])
	return cookie.Name + "=" + cookie.Value
}

func (s *stage) sessionOf(secret string) *http.Cookie {
	s.t.Helper()
	got := s.do(ask{method: "POST", path: "/api/v1/session", body: fmt.Sprintf(`{"token":%q}`, secret)})
	cookies := (&http.Response{Header: got.header}).Cookies()
	if got.status != 204 || len(cookies) != 1 {
		s.t.Fatalf("%d %s, %d cookies", got.status, got.body, len(cookies))
	}
	return cookies[0]
}

// storedAnywhere reports whether the store holds the secret, or its part that
// nobody but its owner may know, where a token is kept.
func (s *stage) storedAnywhere(secret string) bool {
	s.t.Helper()
	tokens, err := s.store.Tokens(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	hidden := strings.Split(secret, "_")[3]
	for _, token := range tokens {
		if text := string(token.Hash[:]) + token.ID + token.Name; strings.Contains(text, hidden) || strings.Contains(text, secret) {
			return true
		}
	}
	return false
}

func withCookie(method, path, cookie string) ask {
	return ask{method: method, path: path, header: map[string]string{"Cookie": cookie}}
}

func TestSession(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cookie := s.sessionOf(s.secrets[auth.Viewer])
	if cookie.Name != "tandem_session" || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Secure {
		t.Errorf("cookie %s", cookie.Raw)
	}
	if strings.Contains(cookie.Value, s.secrets[auth.Viewer]) || s.storedAnywhere(cookie.Value) {
		t.Error("the secret is where it must not be")
	}
	text := cookie.Name + "=" + cookie.Value
	if got := s.do(withCookie("GET", "/api/v1/studies", text)); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	s.do(withCookie("POST", "/api/v1/studies", text)).problem(t, 403, problem.Forbidden)
	s.do(ask{method: "GET", path: "/api/v1/studies", token: cookie.Value}).problem(t, 401, problem.Unauthorized)
	s.do(withCookie("GET", "/api/v1/studies", "tandem_session="+s.secrets[auth.Viewer])).problem(t, 401, problem.Unauthorized)

	out := s.do(withCookie("DELETE", "/api/v1/session", text))
	if out.status != 204 || !strings.Contains(out.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Fatalf("signed out with %d, %q", out.status, out.header.Get("Set-Cookie"))
	}
	s.do(withCookie("GET", "/api/v1/studies", text)).problem(t, 401, problem.Unauthorized)
	s.admin("DELETE", "/api/v1/session", "").problem(t, 422, problem.Invalid)

	late := s.signIn(auth.Viewer)
	s.pass(12*time.Hour - time.Minute)
	if got := s.do(withCookie("GET", "/api/v1/studies", late)); got.status != 200 {
		t.Fatalf("just before its end: %d", got.status)
	}
	s.pass(2 * time.Minute)
	s.do(withCookie("GET", "/api/v1/studies", late)).problem(t, 401, problem.Unauthorized)
	s.do(ask{method: "POST", path: "/api/v1/session", body: fmt.Sprintf(`{"token":%q}`, s.secrets[auth.Worker])}).problem(t, 403, problem.Forbidden)
}

func TestSecureCookieBehindTLS(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	got := s.do(ask{method: "POST", path: "/api/v1/session", body: fmt.Sprintf(`{"token":%q}`, s.secrets[auth.Admin]),
		header: map[string]string{"X-Forwarded-Proto": "https"}})
	set := got.header.Get("Set-Cookie")
	if !strings.HasPrefix(set, "__Host-tandem_session=") || !strings.Contains(set, "; Secure") || !strings.Contains(set, "; Path=/;") || strings.Contains(set, "Domain") {
		t.Fatalf("cookie %q", set)
	}
	cookie, _, _ := strings.Cut(set, ";")
	with := func(method, path, cookie string) ask {
		return ask{method: method, path: path, header: map[string]string{"Cookie": cookie, "X-Forwarded-Proto": "https"}}
	}
	for _, path := range []string{"/api/v1/studies", "/studies"} {
		if got := s.do(with("GET", path, cookie)); got.status != 200 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	// A cookie that another server under the domain could set is not taken.
	s.do(with("GET", "/api/v1/studies", strings.TrimPrefix(cookie, "__Host-"))).problem(t, 401, problem.Unauthorized)
	out := s.do(with("DELETE", "/api/v1/session", cookie))
	if set := out.header.Get("Set-Cookie"); out.status != 204 || !strings.HasPrefix(set, "__Host-tandem_session=;") || !strings.Contains(set, "Max-Age=0") {
		t.Fatalf("signed out with %d, %q", out.status, set)
	}
	s.do(with("GET", "/api/v1/studies", cookie)).problem(t, 401, problem.Unauthorized)
}

func TestFailedSignInsAreLimited(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	wrong := ask{method: "POST", path: "/api/v1/session", body: `{"token":"tandem_admin_guess"}`}
	for range 10 {
		s.do(wrong).problem(t, 401, problem.Unauthorized)
	}
	got := s.do(wrong)
	got.problem(t, 429, problem.Exhausted)
	if got.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	right := ask{method: "POST", path: "/api/v1/session", body: fmt.Sprintf(`{"token":%q}`, s.secrets[auth.Admin])}
	for range 3 { // a right one is not shut out by them, and opens the door to no wrong one
		if got := s.do(right); got.status != 204 {
			t.Fatalf("a right token beside wrong ones: %d %s", got.status, got.body)
		}
		s.do(wrong).problem(t, 429, problem.Exhausted)
	}
	if got := s.admin("GET", "/api/v1/studies", ""); got.status != 200 {
		t.Errorf("clients with a token are shut out: %d", got.status)
	}
	s.pass(time.Minute + time.Second)
	s.do(wrong).problem(t, 401, problem.Unauthorized)
	s.do(wrong).problem(t, 429, problem.Exhausted)
	if got := s.do(right); got.status != 204 {
		t.Fatalf("a minute later: %d %s", got.status, got.body)
	}
}

func TestPagesNeedASession(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, path := range []string{"/login", "/assets/app.js", "/assets/deep/er.css"} {
		if got := s.do(ask{method: "GET", path: path}); got.status != 200 || string(got.body) != "page "+path {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	cookie := s.signIn(auth.Viewer)
	for _, path := range []string{"/", "/studies", "/studies/x/trials/1", "/loginx", "/assets", "/apix", "//evil.test/", "/login/x", "/assetsx/y"} {
		for name, header := range map[string]string{"none": "", "token": "tandem_session=" + s.secrets[auth.Viewer], "nonsense": "tandem_session=x"} {
			got := s.do(withCookie("GET", path, header))
			login := "/login?next=" + url.QueryEscape(path)
			if path == "/" {
				login = "/login"
			}
			if got.status != 303 || got.header.Get("Location") != login {
				t.Errorf("%s with the cookie %s: %d to %q", path, name, got.status, got.header.Get("Location"))
			}
		}
		if got := s.do(withCookie("GET", path, cookie)); got.status != 200 || !strings.HasPrefix(string(got.body), "page ") {
			t.Errorf("%s signed in: %d %s", path, got.status, got.body)
		}
	}
	s.do(withCookie("POST", "/studies", cookie)).problem(t, 405, problem.Invalid)
}

func TestTokensThroughTheClient(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx, admin := t.Context(), s.client(auth.Admin)
	issued, err := admin.CreateToken(ctx, protocol.TokenRequest{Name: "gpu box", Scope: "viewer", TTLSeconds: 3600})
	if err != nil || issued.Token == "" || issued.Scope != "viewer" || issued.Expires == nil {
		t.Fatalf("%+v: %v", issued, err)
	}
	s.secrets["new"] = issued.Token
	fresh := s.client("new")
	if _, err := fresh.Studies(ctx); err != nil {
		t.Fatal(err)
	}
	cookie := s.signIn("new")
	list, err := admin.Tokens(ctx)
	if err != nil || len(list) != 8 {
		t.Fatalf("%d tokens, want the seven of the stage and the new one: %v", len(list), err)
	}
	for _, shown := range list {
		if shown.ID == "" || strings.Contains(fmt.Sprint(shown), issued.Token) {
			t.Errorf("%+v", shown)
		}
	}
	if err := admin.DeleteToken(ctx, issued.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.Studies(ctx); !problem.Is(err, problem.Unauthorized) {
		t.Fatalf("a deleted token still works: %v", err)
	}
	s.do(withCookie("GET", "/api/v1/studies", cookie)).problem(t, 401, problem.Unauthorized)
	if err := admin.DeleteToken(ctx, issued.ID); !problem.Is(err, problem.NotFound) {
		t.Fatalf("deleted twice: %v", err)
	}
	for _, shown := range list {
		if shown.Scope == "admin" {
			if err := admin.DeleteToken(ctx, shown.ID); !problem.Is(err, problem.Conflict) {
				t.Fatalf("the last admin token: %v", err)
			}
		}
	}
}
