package postgres_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/artifact/artifacttest"
	"github.com/tandem-tune/tandem/store/postgres"
)

const room = artifacttest.Room

// sizes are those at which pieces begin and end.
var sizes = []int{0, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3 << 20}

func TestArtifactsConform(t *testing.T) {
	t.Parallel()
	artifacttest.Run(t, func(t *testing.T) artifacttest.Place { return own(t, connect(t, fresh(t))).Artifacts() }, sizes...)
}

func TestArtifactsComeBackAndOutliveTheirServer(t *testing.T) {
	t.Parallel()
	address := fresh(t)
	store := own(t, connect(t, address))
	for _, size := range sizes {
		artifacttest.Put(t, store.Artifacts(), artifacttest.Content(size))
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	next := own(t, connect(t, address)).Artifacts()
	if err := next.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	listed := 0
	for entry, err := range next.All() {
		if err != nil || time.Since(entry.Modified) > time.Hour {
			t.Errorf("%+v, %v", entry, err)
		}
		listed++
	}
	if want := len(sizes); listed != want {
		t.Errorf("%d artifacts are listed, want %d", listed, want)
	}
	for _, size := range sizes {
		artifacttest.WantContent(t, next, artifacttest.Content(size))
	}
}

func TestUploadsThatCameToNothingAreTidied(t *testing.T) {
	t.Parallel()
	address := fresh(t)
	artifacts := own(t, connect(t, address)).Artifacts()
	content := artifacttest.Content(2 << 20)
	hangsUp := io.MultiReader(bytes.NewReader(content[:1<<20+5]), iotest.ErrReader(errors.New("hung up")))
	if _, err := artifacts.Put(t.Context(), artifacttest.Name(content), hangsUp, room); !problem.Is(err, problem.Internal) {
		t.Error(err)
	}
	if left := number(t, address, "SELECT count(*) FROM upload_chunk"); left == 0 {
		t.Error("nothing is left to be tidied: this test shows nothing")
	}
	if err := artifacts.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := number(t, address, "SELECT (SELECT count(*) FROM upload) + (SELECT count(*) FROM upload_chunk)"); left != 0 {
		t.Errorf("%d rows of uploads are left that came to nothing", left)
	}
}

func TestArtifactsGoWhenTheyAreOld(t *testing.T) {
	t.Parallel()
	address := fresh(t)
	artifacts := own(t, connect(t, address)).Artifacts()
	content := artifacttest.Content(3 << 20)
	name := artifacttest.Put(t, artifacts, content)
	age := func(interval string) {
		t.Helper()
		execute(t, address, "UPDATE artifact SET put = clock_timestamp() - interval '"+interval+"'")
	}
	if deleted, err := artifacts.DeleteBefore(name, time.Now().Add(-time.Hour)); deleted || err != nil {
		t.Errorf("a young one was deleted: %v, %v", deleted, err)
	}
	age("2 hours")
	artifacttest.Put(t, artifacts, content) // it begins anew
	if deleted, err := artifacts.DeleteBefore(name, time.Now().Add(-time.Hour)); deleted || err != nil {
		t.Errorf("one that was put again was deleted: %v, %v", deleted, err)
	}
	age("2 hours")
	for round, want := range []bool{true, false} {
		if deleted, err := artifacts.DeleteBefore(name, time.Now().Add(-time.Hour)); deleted != want || err != nil {
			t.Errorf("round %d: deleted: %v, %v", round, deleted, err)
		}
	}
	if err := artifacts.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := number(t, address, "SELECT count(*) FROM upload_chunk"); left != 0 {
		t.Errorf("%d of its rows are left", left)
	}
}

// TestAReplacedServerPublishesNothing replaces the owner in the middle of an
// upload.
func TestAReplacedServerPublishesNothing(t *testing.T) {
	t.Parallel()
	address := fresh(t)
	before := own(t, connect(t, address))
	content := artifacttest.Content(3 << 20)
	name := artifacttest.Name(content)
	var next *postgres.Store
	replaces := readerFunc(func([]byte) (int, error) {
		before.Mute()
		execute(t, address, "UPDATE pulse SET at = '-infinity'")
		next = await(t, stand(t, connect(t, address)))
		if err := next.Artifacts().Tidy(t.Context()); err != nil {
			t.Error(err)
		}
		return 0, io.EOF
	})
	half := len(content) / 2
	from := io.MultiReader(bytes.NewReader(content[:half]), replaces, bytes.NewReader(content[half:]))
	if _, err := before.Artifacts().Put(t.Context(), name, from, room); !problem.Is(err, problem.Unavailable) {
		t.Errorf("the upload was answered with %v", err)
	}
	if _, _, err := next.Artifacts().Open(name); !problem.Is(err, problem.NotFound) {
		t.Errorf("it was published: %v", err)
	}
	artifacttest.Put(t, next.Artifacts(), content)
	artifacttest.WantContent(t, next.Artifacts(), content)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(into []byte) (int, error) { return f(into) }
