package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
)

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func opener(data []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
}

func TestArtifactsThroughTheClient(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(c *api.Config) { c.ArtifactLimit = 3 << 20 })
	ctx, worker := t.Context(), s.client(auth.Worker)
	for _, data := range [][]byte{{}, []byte("<script>alert(1)</script>"), bytes.Repeat([]byte("weights!"), 3<<17)} {
		if err := worker.PutArtifact(ctx, hashOf(data), int64(len(data)), opener(data)); err != nil {
			t.Fatal(err)
		}
		stream, err := s.client(auth.Admin).Artifact(ctx, hashOf(data)) // of no trial: a worker does not see it
		if err != nil {
			t.Fatal(err)
		}
		back, err := io.ReadAll(stream)
		if closed := stream.Close(); err != nil || closed != nil || !bytes.Equal(back, data) {
			t.Fatalf("%d bytes back of %d: %v, %v", len(back), len(data), err, closed)
		}
		path := "/api/v1/artifacts/" + hashOf(data)
		for _, method := range []string{"GET", "HEAD"} {
			got := s.admin(method, path, "")
			if got.status != 200 || got.header.Get("Content-Type") != "application/octet-stream" ||
				!strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment") || got.header.Get("X-Content-Type-Options") != "nosniff" ||
				got.header.Get("Content-Security-Policy") != "sandbox; default-src 'none'" {
				t.Errorf("%s: %d %v", method, got.status, got.header)
			}
		}
	}
	over := bytes.Repeat([]byte("x"), 3<<20+1)
	if err := worker.PutArtifact(ctx, hashOf(over), int64(len(over)), opener(over)); !problem.Is(err, problem.Exhausted) {
		t.Errorf("one byte over the limit: %v", err)
	}
	if err := worker.PutArtifact(ctx, hashOf([]byte("a")), 1, opener([]byte("b"))); !problem.Is(err, problem.Invalid) {
		t.Errorf("other bytes than the hash says: %v", err)
	}
	if _, err := worker.Artifact(ctx, strings.Repeat("a", 64)); !problem.Is(err, problem.NotFound) {
		t.Errorf("no such artifact: %v", err)
	}
	for _, name := range []string{"..%2f..%2fetc%2fpasswd", strings.Repeat("A", 64), strings.Repeat("0", 63), strings.Repeat("0", 64) + "%00"} {
		s.admin("GET", "/api/v1/artifacts/"+name, "").problem(t, 422, problem.Invalid)
		s.admin("PUT", "/api/v1/artifacts/"+name, "x").problem(t, 422, problem.Invalid)
	}
}

func TestUploadWithoutALengthIsBounded(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(c *api.Config) { c.ArtifactLimit = 1 << 10 })
	endless := ask{method: "PUT", path: "/api/v1/artifacts/" + strings.Repeat("0", 64), token: s.secrets[auth.Worker]}
	got := s.doChunked(endless, io.LimitReader(zeros{}, 1<<20))
	got.problem(t, 413, problem.Exhausted)
}

func TestCheckpointsAreOfWhatWasUploaded(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx := t.Context()
	s.create()
	worker := s.worker()
	lease := s.lease(worker)
	if _, err := worker.Report(ctx, lease.Trial, reportOf(lease, 1, 0.5)); err != nil {
		t.Fatal(err)
	}
	weights := []byte("weights")
	commit := protocol.CheckpointCommit{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Artifact: hashOf(weights), Bytes: int64(len(weights))}
	path := "/api/v1/trials/" + string(lease.Trial) + "/checkpoint"
	send := func(commit protocol.CheckpointCommit) answer {
		body, err := json.Marshal(commit)
		if err != nil {
			t.Fatal(err)
		}
		return s.do(ask{method: "POST", path: path, body: string(body), token: s.secrets[auth.Worker]})
	}
	if told := send(commit).problem(t, 409, problem.Conflict); !strings.Contains(told.Detail, "PUT its bytes first") {
		t.Errorf("%+v", told)
	}
	if err := worker.PutArtifact(ctx, commit.Artifact, commit.Bytes, opener(weights)); err != nil {
		t.Fatal(err)
	}
	wrong := commit
	wrong.Bytes++
	if told := send(wrong).problem(t, 422, problem.Invalid); !told.has("bytes", "must be 7") {
		t.Errorf("%+v", told)
	}
	if err := worker.CommitCheckpoint(ctx, lease.Trial, commit); err != nil {
		t.Fatal(err)
	}
	detail, err := s.client(auth.Viewer).Trial(ctx, "small", lease.Number)
	if err != nil || detail.Trial.Checkpoint == nil || detail.Trial.Checkpoint.Artifact != commit.Artifact {
		t.Fatalf("%+v: %v", detail.Trial.Checkpoint, err)
	}
}

// TestUploadOfWhatIsThereAlready sends an artifact again, by a client that asks
// before it sends and by one that does not: both see the answer.
func TestUploadOfWhatIsThereAlready(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	data := bytes.Repeat([]byte("weights!"), 1<<19)
	path := "/api/v1/artifacts/" + hashOf(data)
	sent := make([]int64, 3)
	for i := range sent {
		err := s.client(auth.Worker).PutArtifact(t.Context(), hashOf(data), int64(len(data)), func() (io.ReadCloser, error) {
			return io.NopCloser(&meter{Reader: bytes.NewReader(data), read: &sent[i]}), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.admin("PUT", path, string(data), "Content-Type", "application/octet-stream"); got.status != 204 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	for _, count := range sent { // also what is there is looked at to its end
		if count != int64(len(data)) {
			t.Errorf("our client sent %v bytes of %d", sent, len(data))
		}
	}
}

type meter struct {
	io.Reader
	read *int64
}

func (m *meter) Read(into []byte) (int, error) {
	count, err := m.Reader.Read(into)
	*m.read += int64(count)
	return count, err
}

func TestUploadThatBreaksOffIsNoArtifact(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	data := bytes.Repeat([]byte("x"), 1<<20)
	err := s.client(auth.Worker).PutArtifact(t.Context(), hashOf(data), int64(len(data)), func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(bytes.NewReader(data[:1<<19]), broken{})), nil
	})
	if err == nil {
		t.Fatal("half an upload was taken")
	}
	if _, err := s.client(auth.Worker).Artifact(t.Context(), hashOf(data)); !problem.Is(err, problem.NotFound) {
		t.Fatalf("half an upload is there: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(into []byte) (int, error) { return len(into), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }
