package api_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/audit"
	"github.com/tandem-tune/tandem/web/auth"
)

// auditedStage is a stage with an audit log, in the folder.
func auditedStage(t *testing.T) (s *stage, folder string) {
	t.Helper()
	folder = t.TempDir()
	log, err := audit.Open(folder, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return newStage(t, func(c *api.Config) { c.Audit = log }), folder
}

// logged is the log in short: "who outcome action on, detail".
func logged(t *testing.T, folder string) []string {
	t.Helper()
	var lines []string
	entries, err := audit.Newest(folder, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.From, "127.0.0.1:") || e.At.IsZero() {
			t.Errorf("line %d is from %q at %v", e.Sequence, e.From, e.At)
		}
		line := strings.TrimSpace(fmt.Sprintf("%s %s %s %s, %s", e.Who, e.Outcome, e.Action, e.On, e.Detail))
		if e.Count > 0 {
			line += fmt.Sprintf(" (%d)", e.Count)
		}
		lines = append(lines, strings.TrimSuffix(line, ","))
	}
	if _, err := audit.Verify(folder, ""); err != nil {
		t.Error(err)
	}
	return lines
}

func TestWhatMattersIsLogged(t *testing.T) {
	t.Parallel()
	s, folder := auditedStage(t)
	ctx, admin := t.Context(), s.client(auth.Admin)
	issued, err := admin.CreateToken(ctx, protocol.TokenRequest{Name: "alice", Scope: "user"})
	if err != nil {
		t.Fatal(err)
	}
	s.secrets["alice"] = issued.Token
	alice := s.as("alice")
	s.preview("application/yaml", smallStudy, "") // it creates nothing
	view, err := alice.CreateStudy(ctx, []byte(smallStudy), "application/yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alice.Study(ctx, "small"); err != nil { // reading alone is not logged
		t.Fatal(err)
	}
	stream, err := alice.Export(ctx, "small", "csv")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{{"pause"}, {"resume"}, {"annotate", `{"note":"kept"}`}} {
		if got := s.do(ask{method: "POST", path: "/api/v1/studies/small/" + change[0], body: change[1], token: s.secrets["alice"]}); got.status != 200 {
			t.Fatalf("%s: %d %s", change[0], got.status, got.body)
		}
	}
	if _, err := alice.StopStudy(ctx, "small"); err != nil {
		t.Fatal(err)
	}
	if _, err := alice.ExtendStudy(ctx, "small", protocol.ExtendRequest{Trials: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := alice.SetStudy(ctx, "small", protocol.SetRequest{Priority: new(1)}); err != nil {
		t.Fatal(err)
	}
	if err := alice.DeleteStudy(ctx, view.ID); err != nil {
		t.Fatal(err)
	}
	if err := alice.DeleteStudy(ctx, view.ID); !problem.Is(err, problem.NotFound) {
		t.Fatal(err)
	}
	if err := admin.DeleteToken(ctx, issued.ID); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"admin:test asked create-token /api/v1/tokens",
		"admin:test done create-token token " + issued.ID + ", user:alice",
		"user:alice asked create-study /api/v1/studies",
		"user:alice done create-study study " + view.ID + ", alice:small",
		"user:alice asked export-study /api/v1/studies/small/export",
		"user:alice asked pause-study /api/v1/studies/small/pause",
		"user:alice asked resume-study /api/v1/studies/small/resume",
		"user:alice asked annotate-study /api/v1/studies/small/annotate",
		"user:alice asked stop-study /api/v1/studies/small/stop",
		"user:alice asked extend-study /api/v1/studies/small/extend",
		"user:alice asked set-study /api/v1/studies/small/set",
		"user:alice asked delete-study /api/v1/studies/" + view.ID,
		"user:alice asked delete-study /api/v1/studies/" + view.ID,
		"user:alice failed delete-study /api/v1/studies/" + view.ID + ", status 404",
		"admin:test asked delete-token /api/v1/tokens/" + issued.ID,
	}
	if got := logged(t, folder); !slices.Equal(got, want) {
		t.Errorf("the log says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestDownloadsAreLogged(t *testing.T) {
	t.Parallel()
	s, folder := auditedStage(t)
	p := s.alices()
	for _, name := range []string{"rack", "alice", "bob"} {
		stream, err := s.as(name).Artifact(t.Context(), p.artifact)
		if (err == nil) == (name == "bob") {
			t.Fatalf("%s: %v", name, err)
		}
		if err == nil && stream.Close() != nil {
			t.Fatal("the download was cut off")
		}
	}
	if err := s.logs(s.as("rack"), p.lease, trial.Model, "weights"); err != nil {
		t.Fatal(err)
	}
	logs := fmt.Sprintf("/api/v1/studies/alice:small/trials/%d/artifacts/", p.lease.Number)
	for _, name := range []string{"a.png", trial.Model} { // the first is a picture, which pages show
		if got := s.do(ask{method: "GET", path: logs + name, token: s.secrets["alice"]}); got.status != 200 {
			t.Fatalf("%s: %d %s", name, got.status, got.body)
		}
	}
	path := "/api/v1/artifacts/" + p.artifact
	want := []string{
		"user:alice asked get-artifact " + path, // a worker's is nothing out of the ordinary
		"user:bob asked get-artifact " + path,
		"user:bob refused get-artifact " + path + ", belongs to somebody else",
		"user:bob failed get-artifact " + path + ", status 404",
		"user:alice asked get-trial-artifact " + logs + trial.Model,
	}
	got := slices.DeleteFunc(logged(t, folder), func(line string) bool { return strings.Contains(line, "create-study") })
	if !slices.Equal(got, want) {
		t.Errorf("the log says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestRefusalsAreLogged(t *testing.T) {
	t.Parallel()
	s, folder := auditedStage(t)
	p := s.alices()
	secret := s.secrets[auth.Admin]
	for _, request := range []ask{
		{method: "GET", path: "/api/v1/studies"},
		{method: "GET", path: "/api/v1/studies", token: secret + "x"},
		{method: "POST", path: "/api/v1/studies", token: s.secrets[auth.Viewer]},
		{method: "GET", path: "/api/v1/studies/" + p.study.ID + "?x=" + secret, token: s.secrets["bob"]},
		{method: "GET", path: "/api/v1/studies/" + p.study.ID, token: s.secrets["bob"]},
		{method: "POST", path: "/api/v1/session", body: `{"token":"` + secret[:len(secret)-1] + `"}`},
		{method: "DELETE", path: "/api/v1/tokens/" + secret, token: s.secrets["bob"]},
		{method: "DELETE", path: "/api/v1/tokens/" + strings.ReplaceAll(secret, "_", "%5F"), token: s.secrets["bob"]},
		{method: "GET", path: "/healthz", header: map[string]string{"Host": "evil.test"}},
		{method: "POST", path: "/api/v1/studies", token: secret, header: map[string]string{"Sec-Fetch-Site": "cross-site"}},
		{method: "GET", path: "/api/v1/nothing/" + secret},
	} {
		if got := s.do(request); got.status < 400 {
			t.Errorf("%s %s: %d", request.method, request.path, got.status)
		}
	}
	signIn := s.signIn("alice")
	want := []string{
		"refused list-studies /api/v1/studies, unauthorized",
		"refused list-studies /api/v1/studies, unauthorized",
		"viewer:test refused create-study /api/v1/studies, forbidden",
		"user:bob refused get-study /api/v1/studies/" + p.study.ID + ", belongs to somebody else",
		"refused sign-in /api/v1/session, unauthorized",
		"user:bob refused delete-token /api/v1/tokens/***, forbidden",
		"user:bob refused delete-token /api/v1/tokens/***, forbidden",
		"refused unknown /healthz, forbidden",
		"refused unknown /api/v1/studies, forbidden",
		"refused unknown /api/v1/nothing/***, unauthorized",
		"user:alice done sign-in /api/v1/session",
	}
	got := slices.DeleteFunc(logged(t, folder), func(line string) bool {
		return strings.HasPrefix(line, "user:alice") && strings.Contains(line, "create-study")
	})
	if !slices.Equal(got, want) {
		t.Errorf("the log says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	s.hidesSecrets(folder, signIn)
}

// hidesSecrets checks that no secret of the stage, nor the one more, is in the
// folder, in whole or in the part that proves it.
func (s *stage) hidesSecrets(folder, more string) {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) == 0 {
		s.t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		for name, secret := range s.secrets {
			if bytes.Contains(content, []byte(strings.Split(secret, "_")[3])) {
				s.t.Errorf("the secret of %s is in %s", name, file)
			}
		}
		if bytes.Contains(content, []byte(strings.Split(more, "_")[4])) {
			s.t.Errorf("a session's secret is in %s", file)
		}
	}
}

func TestRefusalsDoNotFloodTheLog(t *testing.T) {
	t.Parallel()
	s, folder := auditedStage(t)
	for range 50 {
		s.do(ask{method: "GET", path: "/api/v1/studies", token: "wrong"}).problem(t, 401, problem.Unauthorized)
	}
	s.pass(2 * 60e9)
	s.do(ask{method: "GET", path: "/api/v1/studies", token: "wrong"}).problem(t, 401, problem.Unauthorized)
	got := logged(t, folder)
	if len(got) != 11 || got[10] != "refused list-studies /api/v1/studies, unauthorized (41)" {
		t.Errorf("%d lines, the last %q", len(got), got[len(got)-1])
	}
}

// fullLog is an audit log whose disk is full, once it is told to be.
type fullLog struct {
	mutex sync.Mutex
	full  bool
}

func (f *fullLog) Append(audit.Entry) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.full {
		return problem.New(problem.Unavailable, "the audit log cannot be written (%w)", errors.New("disk full"))
	}
	return nil
}

func TestWhatCannotBeLoggedIsNotDone(t *testing.T) {
	t.Parallel()
	log := &fullLog{}
	s := newStage(t, func(c *api.Config) { c.Audit = log })
	p := s.alices()
	tokens, err := s.store.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := s.content(p)
	log.mutex.Lock()
	log.full = true
	log.mutex.Unlock()
	for _, request := range []ask{
		{method: "POST", path: "/api/v1/tokens", body: `{"name":"x","scope":"admin"}`},
		{method: "DELETE", path: "/api/v1/tokens/" + tokens[1].ID},
		{method: "POST", path: "/api/v1/studies", body: smallStudy, header: map[string]string{"Content-Type": "application/yaml"}},
		{method: "POST", path: "/api/v1/studies/" + p.study.ID + "/stop"},
		{method: "DELETE", path: "/api/v1/studies/" + p.study.ID},
		{method: "GET", path: "/api/v1/studies/" + p.study.ID + "/export"},
		{method: "GET", path: "/api/v1/artifacts/" + p.artifact},
		{method: "POST", path: "/api/v1/session", body: fmt.Sprintf(`{"token":%q}`, s.secrets[auth.Admin])},
	} {
		if request.path != "/api/v1/session" {
			request.token = s.secrets[auth.Admin]
		}
		s.do(request).problem(t, http.StatusServiceUnavailable, problem.Unavailable)
	}
	s.do(ask{method: "GET", path: "/api/v1/studies"}).problem(t, 401, problem.Unauthorized) // a refusal stands
	if got := s.admin("GET", "/api/v1/studies", ""); got.status != 200 {
		t.Errorf("reading needs no log: %d", got.status)
	}
	if _, err := s.as("rack").Heartbeat(t.Context(), "worker-rack", protocol.Heartbeat{}); err != nil {
		t.Errorf("a worker's work needs no log: %v", err)
	}
	after, err := s.store.Tokens(t.Context())
	if err != nil || len(after) != len(tokens) {
		t.Errorf("%d tokens, there were %d: %v", len(after), len(tokens), err)
	}
	if s.content(p) != before {
		t.Error("the study was changed")
	}
}
