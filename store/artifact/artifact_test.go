package artifact_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/artifact"
)

const room = 1 << 20

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func random(seed uint64, size int) []byte {
	source := rand.New(rand.NewPCG(seed, 1))
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(source.Uint32())
	}
	return content
}

func open(t *testing.T) (*artifact.Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "artifacts")
	store, err := artifact.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return store, dir
}

func put(t *testing.T, store *artifact.Store, content []byte) string {
	t.Helper()
	name := hashOf(content)
	size, err := store.Put(t.Context(), name, bytes.NewReader(content), room)
	if err != nil || size != int64(len(content)) {
		t.Fatalf("Put returned %d, %v; want %d bytes", size, err, len(content))
	}
	return name
}

func read(t *testing.T, store *artifact.Store, name string) []byte {
	t.Helper()
	r, size, err := store.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	content, err := io.ReadAll(r)
	if err != nil || int64(len(content)) != size {
		t.Fatalf("read %d bytes of %d: %v", len(content), size, err)
	}
	return content
}

// regular returns every file below the directory.
func regular(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func list(t *testing.T, store *artifact.Store) []artifact.Entry {
	t.Helper()
	var entries []artifact.Entry
	for entry, err := range store.All() {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry)
	}
	return entries
}

func TestWhatIsPutIsRead(t *testing.T) {
	store, _ := open(t)
	for name, size := range map[string]int{"empty": 0, "one byte": 1, "several buffers": 100_000, "exactly the limit": room} {
		t.Run(name, func(t *testing.T) {
			content := random(uint64(size), size)
			hash := put(t, store, content)
			if !store.Exists(hash) || !bytes.Equal(read(t, store, hash), content) {
				t.Error("other bytes came back")
			}
		})
	}
}

func TestFilesLieWhereTheHashSaysAndBelongToTheOwnerAlone(t *testing.T) {
	store, dir := open(t)
	hash := put(t, store, []byte("weights"))
	path := filepath.Join(dir, "sha256", hash[:2], hash)
	for path, want := range map[string]fs.FileMode{
		path: 0o600, filepath.Dir(path): fs.ModeDir | 0o700, dir: fs.ModeDir | 0o700, filepath.Join(dir, "temporary"): fs.ModeDir | 0o700,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
	}
}

func TestReopenedStoreHasItsArtifactsAndNoLeftovers(t *testing.T) {
	store, dir := open(t)
	hash := put(t, store, []byte("weights"))
	leftover := filepath.Join(dir, "temporary", "put-crashed")
	if err := os.WriteFile(leftover, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	reopened, err := artifact.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if string(read(t, reopened, hash)) != "weights" {
		t.Error("the artifact changed")
	}
	if files := regular(t, dir); len(files) != 1 {
		t.Errorf("files %v, want the artifact alone", files)
	}
}

// broken fails after its text, as a connection does.
type broken struct{ text io.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.text.Read(p)
	if err == io.EOF {
		err = errors.New("connection reset")
	}
	return n, err
}

func TestRefusedBytesLeaveNothing(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	content := random(7, 5000)
	hash := hashOf(content)
	cases := []struct {
		name  string
		ctx   context.Context
		from  io.Reader
		limit int64
		want  problem.Code
	}{
		{"other bytes", t.Context(), strings.NewReader("other"), room, problem.Invalid},
		{"cut short", t.Context(), bytes.NewReader(content[:4999]), room, problem.Invalid},
		{"one byte more", t.Context(), io.MultiReader(bytes.NewReader(content), strings.NewReader("x")), room, problem.Invalid},
		{"one byte over the limit", t.Context(), bytes.NewReader(content), 4999, problem.Exhausted},
		{"endless", t.Context(), rand.NewChaCha8([32]byte{}), room, problem.Exhausted},
		{"nothing allowed", t.Context(), bytes.NewReader(content), 0, problem.Exhausted},
		{"context ended", ended, bytes.NewReader(content), room, problem.Unavailable},
		{"sender broke off", t.Context(), broken{bytes.NewReader(content)}, room, problem.Internal},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			store, dir := open(t)
			if _, err := store.Put(c.ctx, hash, c.from, c.limit); !problem.Is(err, c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
			if store.Exists(hash) {
				t.Error("the artifact exists")
			}
			if files := regular(t, dir); len(files) != 0 {
				t.Errorf("left behind: %v", files)
			}
			put(t, store, content) // and a retry works
		})
	}
}

func TestNamesThatAreNoHashesAreRefused(t *testing.T) {
	store, dir := open(t)
	hash := put(t, store, []byte("weights"))
	outside := filepath.Join(filepath.Dir(dir), "outside")
	if err := os.WriteFile(outside, []byte("weights"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"empty": "", "short": hash[:63], "long": hash + "0", "upper case": strings.ToUpper(hash),
		"up and out": "../../outside", "up and out, as long as a hash": strings.Repeat("../", 18) + "outside/..",
		"absolute": outside, "a folder": hash[:2], "padded": " " + hash[1:], "not a digit": "g" + hash[1:],
		"zero byte": hash[:63] + "\x00", "line break": hash[:63] + "\n", "not ASCII": hash[:62] + "é",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := store.Put(t.Context(), bad, strings.NewReader("weights"), room); !problem.Is(err, problem.Invalid) {
				t.Errorf("Put: %v", err)
			}
			if _, _, err := store.Open(bad); !problem.Is(err, problem.Invalid) {
				t.Errorf("Open: %v", err)
			}
			if _, err := store.DeleteBefore(bad, time.Now()); !problem.Is(err, problem.Invalid) {
				t.Errorf("DeleteBefore: %v", err)
			}
			if store.Exists(bad) {
				t.Error("Exists")
			}
		})
	}
	if files := regular(t, filepath.Dir(dir)); len(files) != 2 {
		t.Errorf("files %v, want the artifact and the one outside", files)
	}
}

func TestMissingArtifacts(t *testing.T) {
	store, _ := open(t)
	hash := hashOf([]byte("never put"))
	if _, _, err := store.Open(hash); !problem.Is(err, problem.NotFound) {
		t.Errorf("Open: %v", err)
	}
	if deleted, err := store.DeleteBefore(hash, time.Now()); deleted || err != nil {
		t.Errorf("DeleteBefore: %v, %v", deleted, err)
	}
}

func TestPutAgainReadsEverythingAndMakesTheArtifactYoung(t *testing.T) {
	store, dir := open(t)
	hash := put(t, store, []byte("weights"))
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "sha256", hash[:2], hash), old, old); err != nil {
		t.Fatal(err)
	}
	// What is there is neither confirmed without its bytes nor taken away by others.
	if _, err := store.Put(t.Context(), hash, strings.NewReader("others!"), room); !problem.Is(err, problem.Invalid) {
		t.Errorf("other bytes: %v", err)
	}
	if _, err := store.Put(t.Context(), hash, strings.NewReader("weights"), 6); !problem.Is(err, problem.Exhausted) {
		t.Errorf("more bytes than are allowed: %v", err)
	}
	if entries := list(t, store); len(entries) != 1 || !entries[0].Modified.Equal(old) {
		t.Errorf("entries %v, want one as old as before", entries)
	}
	put(t, store, []byte("weights"))
	// The time of the file system may lag a tick of the kernel behind.
	if entries := list(t, store); len(entries) != 1 || !entries[0].Modified.After(old.Add(time.Minute)) {
		t.Errorf("entries %v, want one put just now", entries)
	}
}

func TestSweepSparesWhatWasPutAgain(t *testing.T) {
	store, dir := open(t)
	hash := put(t, store, []byte("weights"))
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "sha256", hash[:2], hash), old, old); err != nil {
		t.Fatal(err)
	}
	cutoff := old.Add(time.Minute)
	put(t, store, []byte("weights"))
	if deleted, err := store.DeleteBefore(hash, cutoff); deleted || err != nil || !store.Exists(hash) {
		t.Errorf("a young artifact: deleted %v, %v", deleted, err)
	}
	if deleted, err := store.DeleteBefore(hash, time.Now().Add(time.Hour)); !deleted || err != nil || store.Exists(hash) {
		t.Errorf("an old artifact: deleted %v, %v", deleted, err)
	}
}

func TestAllListsArtifactsAndNothingElse(t *testing.T) {
	store, dir := open(t)
	if entries := list(t, store); len(entries) != 0 {
		t.Fatalf("an empty store lists %v", entries)
	}
	want := map[string]int64{}
	for i := range 20 {
		content := random(uint64(i), i*10)
		want[put(t, store, content)] = int64(len(content))
	}
	var some string
	for some = range want {
		break
	}
	foreign := filepath.Join(dir, "sha256", some[:2], "README")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	entries := list(t, store)
	if len(entries) != len(want) {
		t.Errorf("%d entries, want %d", len(entries), len(want))
	}
	for i, entry := range entries {
		if bytes, ok := want[entry.SHA256]; !ok || bytes != entry.Bytes {
			t.Errorf("entry %+v was not put so", entry)
		}
		if i > 0 && entries[i-1].SHA256 >= entry.SHA256 {
			t.Errorf("%s is out of order", entry.SHA256)
		}
	}
	for range store.All() {
		break // a caller may stop early
	}
	deleted, err := store.DeleteBefore(some, time.Now().Add(time.Hour))
	if !deleted || err != nil || store.Exists(some) || len(list(t, store)) != len(want)-1 {
		t.Errorf("after DeleteBefore (%v, %v) the artifact is still there", deleted, err)
	}
}

func TestAllSaysWhatItCannotList(t *testing.T) {
	store, dir := open(t)
	put(t, store, []byte("weights"))
	if err := os.WriteFile(filepath.Join(dir, "sha256", "00-not-a-folder"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var errs, entries int
	for _, err := range store.All() {
		if err != nil {
			errs++
		} else {
			entries++
		}
	}
	if errs != 1 || entries != 1 {
		t.Errorf("%d errors and %d entries, want one of each", errs, entries)
	}
}

func TestConcurrentPutsOfOneHash(t *testing.T) {
	store, dir := open(t)
	content := random(3, 200_000)
	hash := hashOf(content)
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			sent := content
			if i%4 == 3 {
				sent = content[1:]
			}
			size, err := store.Put(t.Context(), hash, bytes.NewReader(sent), room)
			if wrong := i%4 == 3; wrong != (err != nil) || wrong && !problem.Is(err, problem.Invalid) {
				t.Errorf("put %d: %v", i, err)
			}
			if err == nil && size != int64(len(content)) {
				t.Errorf("put %d: %d bytes, want %d", i, size, len(content))
			}
		})
	}
	group.Wait()
	if !bytes.Equal(read(t, store, hash), content) {
		t.Error("other bytes came back")
	}
	if files := regular(t, dir); len(files) != 1 {
		t.Errorf("files %v, want the artifact alone", files)
	}
}

func TestOpenFailsWhereNoFolderCanBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := artifact.Open(filepath.Join(file, "artifacts")); err == nil {
		t.Error("a store was opened below a file")
	}
}
