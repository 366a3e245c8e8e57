package api_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

// logs uploads the content and logs it under the name.
func (s *stage) logs(worker *rest.Client, lease protocol.Lease, name, content string) error {
	s.t.Helper()
	hash, size := hashOf([]byte(content)), int64(len(content))
	if err := worker.PutArtifact(s.t.Context(), hash, size, opener([]byte(content))); err != nil {
		s.t.Fatal(err)
	}
	return worker.LogArtifact(s.t.Context(), lease.Trial, protocol.ArtifactLog{LeaseEpoch: lease.LeaseEpoch, Name: name, Artifact: hash, Bytes: size})
}

func (s *stage) logged(number int) []trial.Artifact {
	s.t.Helper()
	detail, err := s.client(auth.Viewer).Trial(s.t.Context(), "small", number)
	if err != nil {
		s.t.Fatal(err)
	}
	return detail.Trial.Logged
}

func TestArtifactsOfATrial(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create()
	worker := s.worker()
	lease := s.lease(worker)
	path := fmt.Sprintf("/api/v1/studies/small/trials/%d", lease.Number)
	if got := s.do(ask{method: "GET", path: path, token: s.secrets[auth.Viewer]}); strings.Contains(string(got.body), `"artifacts"`) {
		t.Errorf("a trial without artifacts shows some: %s", got.body)
	}
	if _, err := worker.Report(t.Context(), lease.Trial, reportOf(lease, 1, 0.5)); err != nil {
		t.Fatal(err)
	}
	const evil = "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
	for name, kind := range map[string][2]string{
		"confusion.PNG": {"image", "image/png"}, "matrix.csv": {"table", "text/csv; charset=utf-8"}, "notes.md": {"text", "text/plain; charset=utf-8"},
		"page.html": {"file", "application/octet-stream"}, "plot.svg": {"file", "application/octet-stream"}, "script.js": {"file", "application/octet-stream"}, "bare": {"file", "application/octet-stream"},
	} {
		if err := s.logs(worker, lease, name, evil+name); err != nil {
			t.Fatal(err)
		}
		got := s.do(ask{method: "GET", path: path + "/artifacts/" + name, token: s.secrets[auth.Viewer]})
		if got.status != 200 || string(got.body) != evil+name || got.header.Get("Content-Type") != kind[1] || got.header.Get("X-Content-Type-Options") != "nosniff" ||
			got.header.Get("Content-Security-Policy") != "sandbox; default-src 'none'" || got.header.Get("Content-Disposition") != `attachment; filename="`+name+`"` {
			t.Errorf("%s: %d %v", name, got.status, got.header)
		}
	}
	list := s.logged(lease.Number)
	if len(list) != 7 || list[1].Name != "confusion.PNG" || list[1].Kind != "image" || list[1].Epoch != 1 || list[1].LeaseEpoch != lease.LeaseEpoch || list[1].Bytes != int64(len(evil)+13) {
		t.Fatalf("%+v", list)
	}
	stream, err := s.client(auth.Viewer).TrialArtifact(t.Context(), "small", lease.Number, "matrix.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if text, err := io.ReadAll(stream); string(text) != evil+"matrix.csv" {
		t.Errorf("%q: %v", text, err)
	}
	if got := s.do(ask{method: "GET", path: path + "/artifacts/none.png", token: s.secrets[auth.Viewer]}); got.status != 404 {
		t.Errorf("one that was not logged: %d", got.status)
	}
}

// Who came by a link sees what a trial drew, and no trained model: it has weights.
func TestALinkOpensNoTrainedModel(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	view := s.create()
	worker := s.worker()
	lease := s.lease(worker)
	names := []string{"confusion.png", "model-int8.onnx", "model.onnx"}
	for _, name := range names {
		if err := s.logs(worker, lease, name, name); err != nil {
			t.Fatal(err)
		}
	}
	s.shared(view.ID, time.Hour)
	path := fmt.Sprintf("/api/v1/studies/%s/trials/%d", view.ID, lease.Number)
	for who, sees := range map[auth.Scope][]string{auth.Viewer: names, auth.Link: names[:1]} {
		var shown, had []string
		for _, one := range arrived[protocol.TrialDetail](t, s.do(ask{method: "GET", path: path, token: s.secrets[who]})).Trial.Logged {
			shown = append(shown, one.Name)
		}
		for _, name := range names {
			if s.do(ask{method: "GET", path: path + "/artifacts/" + name, token: s.secrets[who]}).status == 200 {
				had = append(had, name)
			}
		}
		if !slices.Equal(shown, sees) || !slices.Equal(had, sees) {
			t.Errorf("%s is shown %q and has %q, want %q", who, shown, had, sees)
		}
	}
}

func TestArtifactsAreFencedBoundedAndKept(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx := t.Context()
	s.create()
	worker := s.worker()
	lease := s.lease(worker)
	stale := lease
	stale.LeaseEpoch++
	if err := s.logs(worker, stale, "a.txt", "x"); !problem.Is(err, problem.LeaseLost) {
		t.Errorf("under another lease: %v", err)
	}
	never := protocol.ArtifactLog{LeaseEpoch: lease.LeaseEpoch, Name: "a.txt", Artifact: hashOf([]byte("never sent")), Bytes: 10}
	if err := worker.LogArtifact(ctx, lease.Trial, never); !problem.Is(err, problem.Conflict) {
		t.Errorf("bytes that were not sent: %v", err)
	}
	for name, content := range map[string]string{"../a.txt": "x", ".hidden": "x", "a b": "x", "a\n": "x", "large.txt": strings.Repeat("x", trial.LargestArtifact+1)} {
		if err := s.logs(worker, lease, name, content); !problem.Is(err, problem.Invalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for range 2 { // the same again changes nothing
		if err := s.logs(worker, lease, "a.txt", "one"); err != nil {
			t.Fatal(err)
		}
	}
	first := s.logged(lease.Number)
	if err := s.logs(worker, lease, "a.txt", "another"); err != nil {
		t.Fatal(err)
	}
	second := s.logged(lease.Number)
	if len(first) != 1 || len(second) != 1 || second[0].SHA256 != hashOf([]byte("another")) {
		t.Errorf("%+v, then %+v", first, second)
	}
	all := access.WithCaller(ctx, access.Caller{Sight: access.All})
	if used, err := s.studies.Referenced(all); err != nil || !used[second[0].SHA256] || used[first[0].SHA256] {
		t.Errorf("referenced are %v, %v", used, err)
	}
	for i := range trial.MostArtifacts {
		err := s.logs(worker, lease, fmt.Sprintf("b%d", i), "x")
		if last := i == trial.MostArtifacts-1; last != problem.Is(err, problem.Invalid) {
			t.Errorf("artifact %d: %v", i+2, err)
		}
	}
	s.train(worker, lease, 0.5)
	if err := s.logs(worker, lease, "late.txt", "x"); !problem.Is(err, problem.LeaseLost) {
		t.Errorf("after the end: %v", err)
	}
	if err := s.client(auth.Admin).DeleteStudy(ctx, "small"); err != nil {
		t.Fatal(err)
	}
	if used, err := s.studies.Referenced(all); err != nil || len(used) > 0 {
		t.Errorf("they outlive their study: %v, %v", used, err)
	}
}
