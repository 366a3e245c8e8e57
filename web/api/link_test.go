package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
)

// shared makes a link to the study, kept as the token "link".
func (s *stage) shared(study string, life time.Duration) protocol.IssuedLink {
	s.t.Helper()
	link := arrived[protocol.IssuedLink](s.t, s.link(auth.Admin, study, "reviewers", life))
	s.secrets[auth.Link] = link.Token
	return link
}

// link asks for a link to the study.
func (s *stage) link(who auth.Scope, study, name string, life time.Duration) answer {
	s.t.Helper()
	return s.do(ask{method: "POST", path: "/api/v1/studies/" + study + "/links", body: fmt.Sprintf(`{"name":%q,"ttl_seconds":%g}`, name, life.Seconds()), token: s.secrets[who]})
}

// revoke ends a link to the study.
func (s *stage) revoke(who auth.Scope, study, id string) answer {
	s.t.Helper()
	return s.do(ask{method: "DELETE", path: "/api/v1/studies/" + study + "/links/" + id, token: s.secrets[who]})
}

// links are those to the study.
func (s *stage) links(study string) []protocol.LinkView {
	s.t.Helper()
	return arrived[struct{ Links []protocol.LinkView }](s.t, s.admin("GET", "/api/v1/studies/"+study+"/links", "")).Links
}

// TestALinkOpensOneStudyAndNothingElse walks every route that is published, with
// every method, once with the study that the link is for and once with another.
func TestALinkOpensOneStudyAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.alices()
	other := s.create() // the administrators' "small"
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
	links := map[string]protocol.IssuedLink{} // by method: one may not ask as often
	for _, method := range methods {
		links[method] = s.shared(p.study.ID, time.Hour)
	}
	link := links["GET"]
	bodies := p.bodies(t)
	before := s.content(p)
	opened := map[string]bool{}
	for path, operations := range s.published() {
		for _, method := range methods {
			name := method + " " + path
			described, declared := operations[strings.ToLower(method)]
			if declared && len(described.Security) == 0 || strings.HasSuffix(path, "/events") || path == "/api/v1/session" {
				continue // for everybody, or looked at below
			}
			reads := declared && slices.Contains(described.Scopes, string(auth.Link))
			refs := []string{p.study.ID, "alice:small", other.ID, "small", "never-was"}
			if !declared {
				refs = refs[:1]
			}
			for _, ref := range refs {
				got := s.do(ask{method: method, path: p.path(path, ref), body: bodies[name], token: links[method].Token})
				mine := ref == p.study.ID || ref == "alice:small"
				switch {
				case !declared && got.status != http.StatusMethodNotAllowed,
					declared && !reads && got.status != http.StatusForbidden,
					reads && !mine && got.status != http.StatusNotFound:
					t.Errorf("%s of %s with a link: %d %s", name, ref, got.status, got.body)
				}
				if reads && mine && got.status == http.StatusOK {
					opened[path] = true
				}
			}
		}
	}
	if len(opened) < 9 { // the study, its trials, one of them, its log, export, recommendation, front, importance, correlations
		t.Errorf("the link opens only %v", opened)
	}
	if after := s.content(p); after != before {
		t.Errorf("who has the link has changed\n%s\nto\n%s", before, after)
	}
	got := s.do(ask{method: "GET", path: "/api/v1/session", token: link.Token})
	if want := fmt.Sprintf(`"study_id":"%s"`, p.study.ID); got.status != 200 || !strings.Contains(string(got.body), want) {
		t.Errorf("its identity is %d %s", got.status, got.body)
	}
	s.do(ask{method: "GET", path: "/api/v1/studies/" + other.ID + "/events", token: link.Token}).problem(t, 404, problem.NotFound)
}

func TestALinkInABrowser(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	view := s.create()
	link := s.shared(view.ID, time.Hour)
	if want := "/login?next=%2Fstudies%2F" + view.ID + "#token=" + link.Token; link.Path != want {
		t.Errorf("the link leads to %s, want %s", link.Path, want)
	}
	cookie := s.signIn(auth.Link)
	for path, target := range map[string]string{
		"/studies/" + view.ID: "", "/studies/small": "", "/studies/" + view.ID + "/trials/0": "", "/assets/x.js": "", "/login": "",
		"/": "/studies/" + view.ID, "/studies": "/studies/" + view.ID, "/studies/new": "/studies/" + view.ID, "/workers": "/studies/" + view.ID, "/studies/a/b": "/studies/" + view.ID,
	} {
		got := s.do(withCookie("GET", path, cookie))
		if got.header.Get("Location") != target || (got.status == http.StatusSeeOther) != (target != "") {
			t.Errorf("%s: %d to %q, want %q", path, got.status, got.header.Get("Location"), target)
		}
	}
	if got := s.do(withCookie("GET", "/api/v1/studies/small", cookie)); got.status != 200 {
		t.Errorf("the study: %d %s", got.status, got.body)
	}
	s.do(withCookie("GET", "/api/v1/studies", cookie)).problem(t, 403, problem.Forbidden)

	// Who is signed in already and sees the study stays who they are; others do not.
	s.issue(auth.Request{Name: "bob", Scope: auth.User})
	for who, replaced := range map[auth.Scope]bool{auth.Admin: false, auth.Viewer: false, "bob": true} {
		got := s.do(ask{method: "POST", path: "/api/v1/session", body: `{"token":"` + link.Token + `"}`, header: map[string]string{"Cookie": s.signIn(who), "Content-Type": "application/json"}})
		if got.status != http.StatusNoContent || (got.header.Get("Set-Cookie") != "") != replaced {
			t.Errorf("%s follows the link: %d, %q", who, got.status, got.header.Get("Set-Cookie"))
		}
	}

	links := s.links("small")
	if len(links) != 1 || links[0].ID != link.ID || links[0].Name != "reviewers" || links[0].Used == nil || !links[0].Expires.Equal(link.Expires) {
		t.Errorf("%+v", links)
	}
	s.pass(time.Hour + time.Minute)
	s.do(withCookie("GET", "/api/v1/studies/small", cookie)).problem(t, 401, problem.Unauthorized)
}

func TestLinksAreRevoked(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.alices()
	ctx, alice, admin := t.Context(), s.as("alice"), s.client(auth.Admin)
	s.create()
	reads := func(token string) int {
		return s.do(ask{method: "GET", path: "/api/v1/studies/" + p.study.ID, token: token}).status
	}
	made := func() protocol.IssuedLink {
		return arrived[protocol.IssuedLink](t, s.link("alice", "small", "reviewers", time.Hour))
	}
	link := made()
	if got := reads(link.Token); got != 200 {
		t.Fatalf("%+v: %d", link, got)
	}
	s.link("bob", p.study.ID, "mine", time.Hour).problem(t, 404, problem.NotFound) // somebody else's study
	s.revoke(auth.Admin, "small", link.ID).problem(t, 404, problem.NotFound)       // the administrators' small
	if got := s.revoke("alice", "small", link.ID); got.status != 204 || reads(link.Token) != 401 {
		t.Errorf("revoked: %d, and it reads %d", got.status, reads(link.Token))
	}
	again := made()
	if err := admin.DeleteToken(ctx, again.ID); err != nil || reads(again.Token) != 401 { // by the list of all tokens
		t.Errorf("revoked by an administrator: %v", err)
	}
	last := made()
	if err := alice.DeleteStudy(ctx, "small"); err != nil || reads(last.Token) != 401 {
		t.Errorf("of a study that was deleted: %v, and it reads %d", err, reads(last.Token))
	}
	for body, path := range map[string]string{
		`{"name":"x"}`: "ttl_seconds", `{"name":"x","ttl_seconds":59}`: "ttl_seconds", `{"name":"x","ttl_seconds":4e7}`: "ttl_seconds", `{"name":"","ttl_seconds":60}`: "name",
	} {
		told := s.admin("POST", "/api/v1/studies/small/links", body).problem(t, 422, problem.Invalid)
		if len(told.Errors) != 1 || told.Errors[0].Path != path {
			t.Errorf("%s: %+v", body, told.Errors)
		}
	}
}

func TestLinksAreInTheAuditLogWithoutTheirSecret(t *testing.T) {
	t.Parallel()
	s, folder := auditedStage(t)
	view := s.create()
	link := s.shared(view.ID, time.Hour)
	s.signIn(auth.Link)
	s.do(ask{method: "GET", path: "/api/v1/studies", token: link.Token}).problem(t, 403, problem.Forbidden)
	if got := s.revoke(auth.Admin, "small", link.ID); got.status != 204 {
		t.Fatal(got.status)
	}
	lines := logged(t, folder)
	all := strings.Join(lines, "\n")
	for _, want := range []string{
		"admin:test asked create-link /api/v1/studies/" + view.ID + "/links", "admin:test done create-link link " + link.ID + ", study admin:small",
		"link:reviewers done sign-in", "link:reviewers refused list-studies", "admin:test asked delete-link /api/v1/studies/small/links/" + link.ID,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in the log:\n%s", want, all)
		}
	}
	if secret := link.Token[len(link.Token)-30:]; strings.Contains(all, secret) {
		t.Errorf("the secret is in the log:\n%s", all)
	}
}

func TestExpiredLinksMakeRoom(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	view := s.create()
	for range protocol.MaxLinks {
		s.shared(view.ID, time.Hour)
	}
	s.link(auth.Admin, view.ID, "one more", time.Hour).problem(t, 409, problem.Conflict)
	s.pass(time.Hour + time.Minute)
	link := s.shared(view.ID, 3*time.Hour)
	if links := s.links(view.ID); len(links) != 1 || links[0].ID != link.ID {
		t.Errorf("%d links", len(links))
	}
}

// Who has a link cannot fill the audit log with it.
func TestLinksWriteFewLines(t *testing.T) {
	t.Parallel()
	s, folder := auditedStage(t)
	view := s.create()
	link := s.shared(view.ID, time.Hour)
	cookie := s.signIn(auth.Link)
	for range 19 {
		s.signIn(auth.Link)
		for _, asked := range []ask{{method: "GET", path: "/api/v1/studies/small/export?format=csv", token: link.Token}, withCookie("GET", "/api/v1/studies/small/export?format=csv", cookie)} {
			if got := s.do(asked); got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
		}
	}
	count := func(of string) int {
		return strings.Count(strings.Join(logged(t, folder), "\n"), of)
	}
	if exports, signIns := count("link:reviewers asked export-study"), count("link:reviewers done sign-in"); exports != 10 || signIns != 10 {
		t.Errorf("%d lines of exports, %d of sign-ins", exports, signIns)
	}
	s.pass(time.Minute)
	s.signIn(auth.Link)
	if count("link:reviewers done sign-in /api/v1/session, (11)") != 1 {
		t.Errorf("what was left out is not told:\n%s", strings.Join(logged(t, folder), "\n"))
	}
}

func TestLimitsOnRequestsOfOneLink(t *testing.T) {
	t.Parallel()
	onTheClock(t, func(t *testing.T) {
		watch := newWatcher()
		s := build(t, func(c *api.Config) { c.Monitor = watch })
		read := func(scope auth.Scope) answer {
			return s.hand("GET", "/api/v1/session", s.secrets[scope], "192.0.2.1:5", "")
		}
		for i := range 500 {
			if got := read(auth.Link); got.status != 200 {
				t.Fatalf("request %d: %d %s", i, got.status, got.body)
			}
		}
		read(auth.Link).problem(t, 429, problem.Exhausted)
		signIn := s.hand("POST", "/api/v1/session", "", "192.0.2.1:5", `{"token":"`+s.secrets[auth.Link]+`"}`)
		signIn.problem(t, 429, problem.Exhausted)
		if watch.count(watch.limited, "link") != 2 {
			t.Errorf("limited %v", watch.limited)
		}
		if got := read(auth.Viewer); got.status != 200 {
			t.Errorf("another token waits with it: %d", got.status)
		}
		time.Sleep(time.Second)
		if got := read(auth.Link); got.status != 200 {
			t.Errorf("a second later: %d", got.status)
		}
	})
}
