package api_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

// A study is handed on: who has it no more hears nothing further of it, its trials go on,
// and the audit log says who gave it to whom. What is refused changes nothing.
func TestAStudyIsTransferred(t *testing.T) {
	t.Parallel()
	s, folder := auditedStage(t)
	p := s.alices()
	s.issue(auth.Request{Name: "carol", Scope: auth.User})
	s.asMembers(map[string]string{"alice": "viewer", "carol": "editor"})
	if _, err := s.as("alice").ShareStudy(t.Context(), "small", "ml"); err != nil {
		t.Fatal(err)
	}
	transfer := func(by auth.Scope, ref, body string, key ...string) answer {
		header := map[string]string{}
		for _, one := range key {
			header["Idempotency-Key"] = one
		}
		return s.do(ask{method: "PUT", path: "/api/v1/studies/" + ref + "/owner", body: body, token: s.secrets[by], header: header})
	}
	const toBob = `{"owner":"bob"}`
	if told := transfer(auth.Admin, "alice:small", `{"owner":"zoe"}`).problem(t, 422, problem.Invalid); !told.has("owner", "'tandem user list'") || string(told.Errors[0].Value.(string)) != "zoe" {
		t.Errorf("to nobody: %+v", told)
	}
	for body, path := range map[string]string{`{"owner":""}`: "owner", `{}`: "owner", `{"owner":"bob","name":"a:b"}`: "name", `{"owner":"bob","to":"x"}`: "to"} {
		if told := transfer("alice", "small", body).problem(t, 422, problem.Invalid); !told.has(path, "") {
			t.Errorf("%s: %+v", body, told)
		}
	}
	transfer("bob", p.study.ID, toBob).problem(t, 404, problem.NotFound)
	transfer("carol", p.study.ID, `{"owner":"carol"}`).problem(t, 403, problem.Forbidden)
	transfer(auth.Viewer, p.study.ID, toBob).problem(t, 403, problem.Forbidden)
	transfer(auth.Admin, "never-was", toBob).problem(t, 404, problem.NotFound)
	if view, err := s.as("alice").Study(t.Context(), "small"); err != nil || view.Owner != "alice" {
		t.Fatalf("after what was refused it is %s's: %v", view.Owner, err)
	}

	r, err := http.NewRequestWithContext(t.Context(), "GET", s.server.URL+"/api/v1/studies/"+p.study.ID+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.asMembers(map[string]string{"carol": "editor"})
	r.Header.Set("Authorization", "Bearer "+s.secrets["alice"])
	stream, err := http.DefaultClient.Do(r)
	if err != nil || stream.StatusCode != 200 {
		t.Fatalf("%v: %v", stream, err)
	}
	defer stream.Body.Close()
	first := transfer("alice", "small", toBob, "once")
	if again := transfer("alice", "small", toBob, "once"); first.status != 200 || again.status != 200 || string(again.body) != string(first.body) {
		t.Errorf("%d %s, and again with its key %d %s", first.status, first.body, again.status, again.body)
	}
	arrived[trial.Annotation](t, s.do(ask{method: "POST", path: "/api/v1/studies/small/annotate", body: `{"add_tags":["secret-tag"]}`, token: s.secrets["bob"]}))
	ended, all := make(chan error, 1), new(strings.Builder)
	go func() {
		_, err := io.Copy(all, stream.Body)
		ended <- err
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("alice's stream goes on")
	}
	if strings.Contains(all.String(), "secret-tag") {
		t.Error("alice heard of it")
	}
	transfer("alice", p.study.ID, `{"owner":"alice"}`).problem(t, 404, problem.NotFound)
	if _, err := s.as("rack").Report(t.Context(), p.lease.Trial, reportOf(p.lease, 1, 0.5)); err != nil {
		t.Errorf("its trial: %v", err)
	}
	if view, err := s.as("carol").Study(t.Context(), "bob:small"); err != nil || view.Owner != "bob" || view.Role != "editor" {
		t.Errorf("its group sees %s's as %q: %v", view.Owner, view.Role, err)
	}
	if _, err := s.as("alice").CreateStudy(t.Context(), []byte(smallStudy), "application/yaml"); err != nil {
		t.Errorf("its name is not free for alice: %v", err)
	}
	if told := transfer("bob", "small", `{"owner":"alice"}`).problem(t, 409, problem.Conflict); !told.has("name", "alice has a study of this name already") {
		t.Errorf("to who has one of the name: %+v", told)
	}
	if got := transfer("bob", "small", `{"owner":"alice","name":"bobs"}`); got.status != 200 || !strings.Contains(string(got.body), `"name":"bobs"`) {
		t.Errorf("under another name: %d %s", got.status, got.body)
	}
	lines := logged(t, folder)
	for _, want := range []string{
		"user:alice asked transfer-study /api/v1/studies/small/owner",
		"user:alice done transfer-study study " + p.study.ID + ", alice:small to bob:small",
		"user:bob done transfer-study study " + p.study.ID + ", bob:small to alice:bobs",
		"user:carol refused transfer-study /api/v1/studies/" + p.study.ID + "/owner, forbidden",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("%q is not in\n%s", want, strings.Join(lines, "\n"))
		}
	}
}
