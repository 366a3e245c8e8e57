package bucket_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/store/bucket"
	"github.com/tandem-tune/tandem/store/bucket/buckettest"
)

const room = 64 << 20

func nameOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// opened is a store in a new bucket, and the bucket.
func opened(t *testing.T) (*bucket.Store, string, *minio.Client) {
	t.Helper()
	service := buckettest.Open(t)
	for _, one := range service.Environment {
		name, value, _ := strings.Cut(one, "=")
		t.Setenv(name, value)
	}
	name, client := service.Bucket(t)
	store, err := bucket.Open(t.Context(), bucket.Options{Address: "s3://" + name + "/site", Endpoint: service.Endpoint, Folder: filepath.Join(t.TempDir(), "uploads")})
	if err != nil {
		t.Fatal(err)
	}
	return store, name, client
}

func fake() bool { return os.Getenv("TANDEM_TEST_S3") == "" }

func put(t *testing.T, store *bucket.Store, content []byte) string {
	t.Helper()
	name := nameOf(content)
	if n, err := store.Put(t.Context(), name, iotest.HalfReader(bytes.NewReader(content)), room); err != nil || n != int64(len(content)) {
		t.Fatalf("Put returned %d, %v; want %d bytes", n, err, len(content))
	}
	return name
}

func wantBytes(t *testing.T, store *bucket.Store, content []byte) {
	t.Helper()
	stream, size, err := store.Open(nameOf(content))
	if err != nil || size != int64(len(content)) {
		t.Fatalf("Open returned %d, %v; want %d bytes", size, err, len(content))
	}
	back, err := io.ReadAll(stream)
	if err := errors.Join(err, stream.Close()); err != nil || !bytes.Equal(back, content) {
		t.Errorf("%d bytes came back as %d others, %v", len(content), len(back), err)
	}
}

func listed(t *testing.T, store *bucket.Store) (names []string) {
	t.Helper()
	for entry, err := range store.All() {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, entry.SHA256)
	}
	return names
}

func TestArtifactsComeBack(t *testing.T) {
	store, name, client := opened(t)
	var contents [][]byte
	sizes := []int{1, 1000, 1 << 20}
	if !fake() { // which refuses empty objects, and keeps the signatures of signed parts as if they were data
		sizes = append(sizes, 0, 20<<20)
	}
	for _, size := range sizes {
		content := bytes.Repeat([]byte{byte(size), byte(size >> 8), 'x'}, size/3+1)[:size]
		contents = append(contents, content)
		put(t, store, content)
	}
	for _, content := range contents {
		wantBytes(t, store, content)
	}
	if got := listed(t, store); len(got) != len(contents) {
		t.Errorf("%d artifacts are listed, want %d", len(got), len(contents))
	}
	stranger := minio.PutObjectOptions{}
	for _, key := range []string{"site/sha256/README", "site/sha256/aa/" + strings.Repeat("b", 64), "other/sha256/aa/" + strings.Repeat("a", 64)} {
		if _, err := client.PutObject(t.Context(), name, key, strings.NewReader("x"), 1, stranger); err != nil {
			t.Fatal(err)
		}
	}
	if got := listed(t, store); len(got) != len(contents) {
		t.Errorf("others' objects are listed: %v", got)
	}
	link, err := store.Link(t.Context(), nameOf(contents[1]))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Get(link) //nolint:gosec // our own link
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if back, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK || !bytes.Equal(back, contents[1]) {
		t.Errorf("the link answers %s with %d bytes, %v", response.Status, len(back), err)
	}
}

func TestWhatIsNoArtifactIsNotKept(t *testing.T) {
	store, _, _ := opened(t)
	content := bytes.Repeat([]byte("x"), 2<<20)
	name := nameOf(content)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for what, c := range map[string]struct {
		name string
		from io.Reader
		room int64
		ctx  context.Context
		want problem.Code
	}{
		"another hash":     {nameOf(nil), bytes.NewReader(content), room, t.Context(), problem.Invalid},
		"too large":        {name, bytes.NewReader(content), 1 << 20, t.Context(), problem.Exhausted},
		"no name":          {"../../etc/passwd", bytes.NewReader(content), room, t.Context(), problem.Invalid},
		"in capitals":      {strings.ToUpper(name), bytes.NewReader(content), room, t.Context(), problem.Invalid},
		"the caller left":  {name, bytes.NewReader(content), room, gone, problem.Unavailable},
		"the sender broke": {name, io.MultiReader(bytes.NewReader(content[:9]), iotest.ErrReader(errors.New("hung up"))), room, t.Context(), problem.Internal},
	} {
		if _, err := store.Put(c.ctx, c.name, c.from, c.room); !problem.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, _, err := store.Open(name); !problem.Is(err, problem.NotFound) {
		t.Errorf("it was opened: %v", err)
	}
	if got := listed(t, store); len(got) != 0 {
		t.Errorf("%v is in the bucket", got)
	}
}

func TestArtifactsGoWhenTheyAreOld(t *testing.T) {
	store, _, _ := opened(t)
	content := []byte("a checkpoint")
	name := put(t, store, content)
	if deleted, err := store.DeleteBefore(name, time.Now().Add(10*time.Minute)); deleted || err != nil {
		t.Errorf("a young one was deleted: %v, %v", deleted, err)
	}
	for round, want := range []bool{true, false} {
		if deleted, err := store.DeleteBefore(name, time.Now().Add(time.Hour)); deleted != want || err != nil {
			t.Errorf("round %d: deleted: %v, %v", round, deleted, err)
		}
	}
	if _, _, err := store.Open(name); !problem.Is(err, problem.NotFound) {
		t.Errorf("it is still there: %v", err)
	}
	put(t, store, content)
	wantBytes(t, store, content)
}

// TestNothingIsDeletedThatIsBeingPut puts and sweeps the same artifact at once. Whenever
// a Put returned and no later sweep deleted, it is there.
func TestNothingIsDeletedThatIsBeingPut(t *testing.T) {
	store, _, _ := opened(t)
	content := []byte("a checkpoint that is put again and again")
	for round := range 30 {
		put(t, store, content)
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := store.DeleteBefore(nameOf(content), time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
		})
		held := &late{from: bytes.NewReader(content), until: &both, waits: round%2 == 0}
		if _, err := store.Put(t.Context(), nameOf(content), held, room); err != nil {
			t.Error(err)
		}
		both.Wait()
		names := listed(t, store)
		if held.waits && len(names) != 1 {
			t.Fatalf("round %d: what was put after the sweep is gone", round)
		}
	}
}

// late reads to its end when the others are through.
type late struct {
	from  io.Reader
	until *sync.WaitGroup
	waits bool
}

func (l *late) Read(into []byte) (int, error) {
	if l.waits {
		l.until.Wait()
	}
	return l.from.Read(into)
}

func TestABucketThatCannotBeUsedIsRefused(t *testing.T) {
	service := buckettest.Open(t)
	for _, one := range service.Environment {
		name, value, _ := strings.Cut(one, "=")
		t.Setenv(name, value)
	}
	name, _ := service.Bucket(t)
	for address, c := range map[string]struct {
		endpoint string
		want     problem.Code
		says     string
	}{
		"https://" + name:                  {service.Endpoint, problem.Invalid, "write s3://BUCKET"},
		"s3://":                            {service.Endpoint, problem.Invalid, "write s3://BUCKET"},
		"s3://" + name:                     {"ftp://example.org", problem.Invalid, "must be https://HOST"},
		"s3://" + name + "-that-is-absent": {service.Endpoint, problem.Unavailable, "there is no such bucket"},
	} {
		_, err := bucket.Open(t.Context(), bucket.Options{Address: address, Endpoint: c.endpoint, Folder: filepath.Join(t.TempDir(), "uploads")})
		if !problem.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v", address, err)
		}
	}
	refusing := &buckettest.Refusing{}
	store, err := bucket.Open(t.Context(), bucket.Options{Address: "s3://" + name, Endpoint: service.Endpoint, Folder: filepath.Join(t.TempDir(), "uploads"), Transport: refusing})
	if err != nil {
		t.Fatal(err)
	}
	content := []byte("a checkpoint")
	put(t, store, content)
	refusing.Status = http.StatusForbidden
	for what, did := range map[string]error{"Put": second(store.Put(t.Context(), nameOf(content), bytes.NewReader(content), room)), "Open": third(store.Open(nameOf(content)))} {
		if !problem.Is(did, problem.Unavailable) || !strings.Contains(did.Error(), "AWS_ACCESS_KEY_ID") {
			t.Errorf("%s of a bucket that refuses: %v", what, did)
		}
	}
	refusing.Status = 0
	wantBytes(t, store, content)
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

func TestAFolderMovesToTheBucket(t *testing.T) {
	store, _, _ := opened(t)
	data := filepath.Join(t.TempDir(), "artifacts")
	folder, err := artifact.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	contents := [][]byte{[]byte("zero"), []byte("one"), bytes.Repeat([]byte("two"), 1<<20)}
	for _, content := range contents {
		if _, err := folder.Put(t.Context(), nameOf(content), bytes.NewReader(content), room); err != nil {
			t.Fatal(err)
		}
	}
	for round, want := range []int{len(contents), 0} {
		if moved, err := store.Take(t.Context(), folder); moved != want || err != nil {
			t.Errorf("round %d: %d moved, %v; want %d", round, moved, err, want)
		}
	}
	for _, content := range contents {
		wantBytes(t, store, content)
		if _, _, err := folder.Open(nameOf(content)); !problem.Is(err, problem.NotFound) {
			t.Errorf("it is still in the folder: %v", err)
		}
	}
	// One that cannot be read stays where it is, and stops the rest.
	broken := nameOf([]byte("right"))
	path := filepath.Join(data, "sha256", broken[:2], broken)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("wrong"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Take(t.Context(), folder); !problem.Is(err, problem.Invalid) {
		t.Errorf("a damaged artifact was moved: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("a damaged artifact was lost: %v", err)
	}
}
