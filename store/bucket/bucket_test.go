package bucket_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/store/artifact/artifacttest"
	"github.com/tandem-tune/tandem/store/bucket"
	"github.com/tandem-tune/tandem/store/bucket/buckettest"
)

const room = artifacttest.Room

// opened is a store in a new bucket, and the bucket.
func opened(t *testing.T) (*bucket.Store, string, *minio.Client) {
	t.Helper()
	return openedAt(t, buckettest.Open(t))
}

func openedAt(t *testing.T, service *buckettest.Service) (*bucket.Store, string, *minio.Client) {
	t.Helper()
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

func TestConformance(t *testing.T) {
	sizes := []int{1 << 20}
	if !fake() { // which refuses empty objects
		sizes = append(sizes, 0)
	}
	artifacttest.Run(t, func(t *testing.T) artifacttest.Place {
		store, _, _ := opened(t)
		return store
	}, sizes...)
}

func TestALargeArtifactComesBack(t *testing.T) {
	if fake() {
		t.Skip("the fake service keeps the signatures of signed parts as if they were data: TANDEM_TEST_S3 names another")
	}
	store, _, _ := opened(t)
	content := artifacttest.Content(20 << 20)
	if _, err := store.Put(t.Context(), artifacttest.Name(content), bytes.NewReader(content), 20<<20); err != nil {
		t.Fatal(err)
	}
	artifacttest.WantContent(t, store, content)
}

func TestOthersObjectsAreNotListed(t *testing.T) {
	store, name, client := opened(t)
	artifacttest.Put(t, store, artifacttest.Content(9))
	for _, key := range []string{"site/sha256/README", "site/sha256/aa/" + strings.Repeat("b", 64), "other/sha256/aa/" + strings.Repeat("a", 64)} {
		if _, err := client.PutObject(t.Context(), name, key, strings.NewReader("x"), 1, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := artifacttest.List(t, store); len(got) != 1 {
		t.Errorf("%v are listed, want one", got)
	}
}

func TestALinkReadsAnArtifact(t *testing.T) {
	store, _, _ := opened(t)
	content := artifacttest.Content(1000)
	link, err := store.Link(t.Context(), artifacttest.Put(t, store, content))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Get(link) //nolint:gosec // our own link
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if back, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK || !bytes.Equal(back, content) {
		t.Errorf("the link answers %s with %d bytes, %v", response.Status, len(back), err)
	}
}

// sent puts the content by the link and returns the status.
func sent(t *testing.T, link string, headers map[string]string, content []byte) int {
	t.Helper()
	asked, err := http.NewRequestWithContext(t.Context(), http.MethodPut, link, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		asked.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(asked)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

// TestUploadsByLinks: by a link come the bytes that it is for and no others. Only whoever
// put them has them taken, once; until then nobody reads them.
func TestUploadsByLinks(t *testing.T) {
	store, bucketName, client := opened(t)
	content := append([]byte("magic"), artifacttest.Content(100_000)...)
	name := artifacttest.Name(content)
	take := func(holder string, limit int64) (int64, string, error) {
		size, start, err := store.TakeUpload(t.Context(), holder, name, limit, 5)
		return size, string(start), err
	}
	if _, _, err := take("ann", room); !problem.Is(err, problem.Conflict) {
		t.Errorf("without an upload: %v", err)
	}
	link, headers, err := store.UploadLink(t.Context(), "ann", name)
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Repeat([]byte("x"), len(content))
	sum := sha256.Sum256(other)
	for what, status := range map[string]int{
		"other bytes":                         sent(t, link, headers, other),
		"a part":                              sent(t, link, headers, content[:9]),
		"bytes without their checksum":        sent(t, link, nil, content),
		"other bytes with their own checksum": sent(t, link, map[string]string{"X-Amz-Checksum-Sha256": base64.StdEncoding.EncodeToString(sum[:])}, other),
	} {
		if status/100 == 2 {
			t.Errorf("%s were taken", what)
		}
	}
	if status := sent(t, link, headers, content); status != http.StatusOK {
		t.Fatalf("the bytes were answered %d", status)
	}
	artifacttest.WantAbsent(t, store, name)
	if _, _, err := take("bob", room); !problem.Is(err, problem.Conflict) {
		t.Errorf("by another holder, who did not send it: %v", err)
	}
	if size, start, err := take("ann", room); size != int64(len(content)) || start != "magic" || err != nil {
		t.Errorf("%d bytes were taken, which begin with %q: %v", size, start, err)
	}
	artifacttest.WantContent(t, store, content)
	if _, _, err := take("ann", room); !problem.Is(err, problem.Conflict) {
		t.Errorf("a second time: %v", err)
	}

	if status := sent(t, link, headers, content); status != http.StatusOK {
		t.Fatalf("again the bytes were answered %d", status)
	}
	if _, _, err := take("ann", int64(len(content)-1)); !problem.Is(err, problem.Exhausted) {
		t.Errorf("one byte over the limit: %v", err)
	}
	if _, _, err := store.UploadLink(t.Context(), "ann", "../up"); !problem.Is(err, problem.Invalid) {
		t.Errorf("a link for what is no name: %v", err)
	}
	if status := sent(t, link, headers, content); status != http.StatusOK {
		t.Fatalf("a third time the bytes were answered %d", status)
	}
	left := func(later time.Duration) (keys []string) {
		if err := bucket.TidyAt(store, t.Context(), time.Now().Add(later)); err != nil {
			t.Error(err)
		}
		for one := range client.ListObjectsIter(t.Context(), bucketName, minio.ListObjectsOptions{Prefix: "site/incoming/", Recursive: true}) {
			keys = append(keys, one.Key)
		}
		return keys
	}
	if young, old := left(time.Hour), left(2*time.Hour); len(young) != 1 || len(old) != 0 {
		t.Errorf("of what nobody took, %v is left after an hour and %v after two", young, old)
	}
}

func TestLinksForUploadsAreBounded(t *testing.T) {
	store, _, _ := opened(t)
	for number := range 64 {
		for range 2 { // the same one again is no other
			if _, _, err := store.UploadLink(t.Context(), "ann", fmt.Sprintf("%064x", number)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, _, err := store.UploadLink(t.Context(), "ann", strings.Repeat("a", 64)); !problem.Is(err, problem.Conflict) {
		t.Errorf("one too many: %v", err)
	}
	if _, _, err := store.UploadLink(t.Context(), "bob", strings.Repeat("a", 64)); err != nil {
		t.Errorf("another holder: %v", err)
	}
}

// TestNoLinksForUploadsIntoABucketThatChecksNothing: they would let wrong bytes in.
func TestNoLinksForUploadsIntoABucketThatChecksNothing(t *testing.T) {
	if !fake() {
		t.Skip("a real service checks them")
	}
	service := buckettest.Open(t)
	service.Careless.Store(true)
	store, _, _ := openedAt(t, service)
	if err := store.Unlinked(); err == nil {
		t.Fatal("nothing was noticed")
	}
	if _, _, err := store.UploadLink(t.Context(), "ann", strings.Repeat("a", 64)); !problem.Is(err, problem.NotFound) {
		t.Errorf("a link: %v", err)
	}
	artifacttest.Put(t, store, artifacttest.Content(9)) // through the server
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
	artifacttest.Put(t, store, content)
	refusing.Status = http.StatusForbidden
	for what, did := range map[string]error{"Put": second(store.Put(t.Context(), artifacttest.Name(content), bytes.NewReader(content), room)), "Open": third(store.Open(artifacttest.Name(content)))} {
		if !problem.Is(did, problem.Unavailable) || !strings.Contains(did.Error(), "AWS_ACCESS_KEY_ID") {
			t.Errorf("%s of a bucket that refuses: %v", what, did)
		}
	}
	refusing.Status = 0
	artifacttest.WantContent(t, store, content)
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
		if _, err := folder.Put(t.Context(), artifacttest.Name(content), bytes.NewReader(content), room); err != nil {
			t.Fatal(err)
		}
	}
	for round, want := range []int{len(contents), 0} {
		if moved, err := store.Take(t.Context(), folder); moved != want || err != nil {
			t.Errorf("round %d: %d moved, %v; want %d", round, moved, err, want)
		}
	}
	for _, content := range contents {
		artifacttest.WantContent(t, store, content)
		if _, _, err := folder.Open(artifacttest.Name(content)); !problem.Is(err, problem.NotFound) {
			t.Errorf("it is still in the folder: %v", err)
		}
	}
	// One that cannot be read stays where it is, and stops the rest.
	broken := artifacttest.Name([]byte("right"))
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
