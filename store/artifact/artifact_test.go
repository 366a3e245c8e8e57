package artifact_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/store/artifact/artifacttest"
)

const room = artifacttest.Room

func TestConformance(t *testing.T) {
	artifacttest.Run(t, func(t *testing.T) artifacttest.Place {
		store, dir := open(t)
		t.Cleanup(func() {
			if files := regular(t, filepath.Dir(dir)); len(files) != len(artifacttest.List(t, store)) {
				t.Errorf("files %v, want the artifacts alone", files)
			}
		})
		return store
	}, 0, artifacttest.Room)
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

func read(t *testing.T, store *artifact.Store, name string) []byte {
	t.Helper()
	r, _, err := store.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
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

func TestFilesLieWhereTheHashSaysAndBelongToTheOwnerAlone(t *testing.T) {
	store, dir := open(t)
	hash := artifacttest.Put(t, store, []byte("weights"))
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
	hash := artifacttest.Put(t, store, []byte("weights"))
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

func TestPutAgainReadsEverythingAndMakesTheArtifactYoung(t *testing.T) {
	store, dir := open(t)
	hash := artifacttest.Put(t, store, []byte("weights"))
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
	if entries := artifacttest.List(t, store); len(entries) != 1 || !entries[0].Modified.Equal(old) {
		t.Errorf("entries %v, want one as old as before", entries)
	}
	artifacttest.Put(t, store, []byte("weights"))
	// The time of the file system may lag a tick of the kernel behind.
	if entries := artifacttest.List(t, store); len(entries) != 1 || !entries[0].Modified.After(old.Add(time.Minute)) {
		t.Errorf("entries %v, want one put just now", entries)
	}
}

func TestSweepSparesWhatWasPutAgain(t *testing.T) {
	store, dir := open(t)
	hash := artifacttest.Put(t, store, []byte("weights"))
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "sha256", hash[:2], hash), old, old); err != nil {
		t.Fatal(err)
	}
	cutoff := old.Add(time.Minute)
	artifacttest.Put(t, store, []byte("weights"))
	if deleted, err := store.DeleteBefore(hash, cutoff); deleted || err != nil || !store.Exists(hash) {
		t.Errorf("a young artifact: deleted %v, %v", deleted, err)
	}
	if deleted, err := store.DeleteBefore(hash, time.Now().Add(time.Hour)); !deleted || err != nil || store.Exists(hash) {
		t.Errorf("an old artifact: deleted %v, %v", deleted, err)
	}
}

func TestAllSaysWhatItCannotList(t *testing.T) {
	store, dir := open(t)
	artifacttest.Put(t, store, []byte("weights"))
	name := artifacttest.List(t, store)[0].SHA256
	for _, foreign := range []string{"00-not-a-folder", filepath.Join(name[:2], "README")} { // of the latter nothing is said
		if err := os.WriteFile(filepath.Join(dir, "sha256", foreign), nil, 0o600); err != nil {
			t.Fatal(err)
		}
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

func TestOpenFailsWhereNoFolderCanBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := artifact.Open(filepath.Join(file, "artifacts")); err == nil {
		t.Error("a store was opened below a file")
	}
}
