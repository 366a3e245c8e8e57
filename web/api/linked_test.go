package api_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
)

// bucket is a place that clients reach by links, here for one upload at a time.
type bucket struct {
	api.Artifacts
	*httptest.Server
	away  bool
	token atomic.Bool // one came
	links atomic.Int64
	sent  atomic.Pointer[[]byte]
}

func newBucket(t *testing.T, under api.Artifacts) *bucket {
	b := &bucket{Artifacts: under}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.token.Store(b.token.Load() || r.Header.Get("Authorization") != "" || r.Header.Get("X-Sum") != "signed")
		content, err := io.ReadAll(r.Body)
		if err != nil || b.away {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		b.sent.Store(&content)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *bucket) Link(context.Context, string) (string, error) { return b.URL, nil }

func (b *bucket) UploadLink(context.Context, string, string) (string, map[string]string, error) {
	b.links.Add(1)
	return b.URL, map[string]string{"X-Sum": "signed"}, nil
}

func (b *bucket) TakeUpload(ctx context.Context, _, sha256 string, limit int64, first int) (int64, []byte, error) {
	content := b.sent.Swap(nil)
	if content == nil {
		return 0, nil, problem.New(problem.Conflict, "nothing was put")
	}
	size, err := b.Put(ctx, sha256, bytes.NewReader(*content), limit)
	return size, (*content)[:first], err
}

// TestUploadsGoToTheBucket: large ones go there without the token, and count as the
// caller's. Where the bucket does not answer, the server takes them.
func TestUploadsGoToTheBucket(t *testing.T) {
	t.Parallel()
	var place *bucket
	s := newStage(t, func(c *api.Config) { place = newBucket(t, c.Artifacts); c.Artifacts = place })
	s.create()
	worker := s.worker()
	lease := s.lease(worker)
	if _, err := worker.Report(t.Context(), lease.Trial, reportOf(lease, 1, 0.5)); err != nil {
		t.Fatal(err)
	}
	content := bytes.Repeat([]byte("weights!"), 1<<18)
	put := func(content []byte) {
		t.Helper()
		if err := worker.PutArtifact(t.Context(), hashOf(content), int64(len(content)), opener(content)); err != nil {
			t.Fatal(err)
		}
	}
	put([]byte("small"))
	if place.links.Load() != 0 {
		t.Error("a small one went by a link")
	}
	put(content)
	if place.links.Load() != 1 || place.token.Load() {
		t.Errorf("%d links were asked for; a token or no header came: %v", place.links.Load(), place.token.Load())
	}
	commit := protocol.CheckpointCommit{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Artifact: hashOf(content), Bytes: int64(len(content))}
	if err := worker.CommitCheckpoint(t.Context(), lease.Trial, commit); err != nil {
		t.Errorf("what came by a link is not the caller's: %v", err)
	}
	s.do(ask{method: "POST", path: "/api/v1/artifacts/" + hashOf(content) + "/uploaded", token: s.secrets[auth.Worker]}).problem(t, 409, problem.Conflict)

	place.away = true
	for _, text := range []string{"others!!", "further!"} {
		put(bytes.Repeat([]byte(text), 1<<18))
	}
	if place.links.Load() != 2 {
		t.Errorf("%d links were asked for, the last of which led nowhere", place.links.Load())
	}
}

func TestAServerWithoutABucketGivesNoLinks(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, call := range []string{"link", "uploaded"} {
		told := s.do(ask{method: "POST", path: "/api/v1/artifacts/" + strings.Repeat("0", 64) + "/" + call, token: s.secrets[auth.Worker]}).problem(t, 404, problem.NotFound)
		if !strings.Contains(told.Detail, "PUT the bytes to it") {
			t.Errorf("%s: %+v", call, told)
		}
	}
}
