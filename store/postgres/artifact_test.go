package postgres_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/postgres"
)

const room = 4 << 20

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// contents are of sizes at which pieces begin and end.
func contents() [][]byte {
	var list [][]byte
	for _, size := range []int{0, 1, 1000, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3 << 20} {
		content := make([]byte, size)
		for i := range content {
			content[i] = byte(i*i>>8 + size)
		}
		list = append(list, content)
	}
	return list
}

func put(t *testing.T, artifacts *postgres.Artifacts, content []byte) string {
	t.Helper()
	name := hashOf(content)
	size, err := artifacts.Put(t.Context(), name, iotest.HalfReader(bytes.NewReader(content)), room)
	if err != nil || size != int64(len(content)) {
		t.Fatalf("Put returned %d, %v; want %d bytes", size, err, len(content))
	}
	return name
}

func wantArtifact(t *testing.T, artifacts *postgres.Artifacts, content []byte) {
	t.Helper()
	stream, size, err := artifacts.Open(hashOf(content))
	if err != nil || size != int64(len(content)) {
		t.Fatalf("Open returned %d, %v; want %d bytes", size, err, len(content))
	}
	back, err := io.ReadAll(stream)
	if err != nil || !bytes.Equal(back, content) {
		t.Errorf("%d bytes came back as %d others, %v", len(content), len(back), err)
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
}

func TestArtifactsComeBackAndOutliveTheirServer(t *testing.T) {
	t.Parallel()
	address := fresh(t)
	store := own(t, connect(t, address))
	for _, content := range contents() {
		put(t, store.Artifacts(), content)
		wantArtifact(t, store.Artifacts(), content)
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
	if want := len(contents()); listed != want {
		t.Errorf("%d artifacts are listed, want %d", listed, want)
	}
	for _, content := range contents() {
		wantArtifact(t, next, content)
	}
}

func TestWhatIsNoArtifactIsNotKept(t *testing.T) {
	t.Parallel()
	address := fresh(t)
	artifacts := own(t, connect(t, address)).Artifacts()
	content := bytes.Repeat([]byte("x"), 2<<20)
	name := hashOf(content)
	gone, leave := context.WithCancel(t.Context())
	leave()
	hangsUp := io.MultiReader(bytes.NewReader(content[:1<<20+5]), iotest.ErrReader(errors.New("hung up")))
	for what, c := range map[string]struct {
		name string
		from io.Reader
		room int64
		ctx  context.Context
		want problem.Code
	}{
		"another hash":     {hashOf(nil), bytes.NewReader(content), room, t.Context(), problem.Invalid},
		"too large":        {name, bytes.NewReader(content), 1 << 20, t.Context(), problem.Exhausted},
		"no name":          {"../../etc/passwd", bytes.NewReader(content), room, t.Context(), problem.Invalid},
		"in capitals":      {strings.ToUpper(name), bytes.NewReader(content), room, t.Context(), problem.Invalid},
		"the caller left":  {name, bytes.NewReader(content), room, gone, problem.Unavailable},
		"the sender broke": {name, hangsUp, room, t.Context(), problem.Internal},
	} {
		if _, err := artifacts.Put(c.ctx, c.name, c.from, c.room); !problem.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, absent := range []string{name, hashOf(nil)} {
		if _, _, err := artifacts.Open(absent); !problem.Is(err, problem.NotFound) {
			t.Errorf("it was opened: %v", err)
		}
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
	content := contents()[6]
	name := put(t, artifacts, content)
	age := func(interval string) {
		t.Helper()
		execute(t, address, "UPDATE artifact SET put = clock_timestamp() - interval '"+interval+"'")
	}
	if deleted, err := artifacts.DeleteBefore(name, time.Now().Add(-time.Hour)); deleted || err != nil {
		t.Errorf("a young one was deleted: %v, %v", deleted, err)
	}
	age("2 hours")
	for what, c := range map[string]struct {
		from io.Reader
		room int64
		want problem.Code
	}{
		"other bytes": {strings.NewReader("other"), room, problem.Invalid}, "too many": {bytes.NewReader(content), 1 << 20, problem.Exhausted},
	} {
		if _, err := artifacts.Put(t.Context(), name, c.from, c.room); !problem.Is(err, c.want) {
			t.Errorf("%s under a name that is there: %v", what, err)
		}
	}
	put(t, artifacts, content) // it begins anew
	if deleted, err := artifacts.DeleteBefore(name, time.Now().Add(-time.Hour)); deleted || err != nil {
		t.Errorf("one that was put again was deleted: %v, %v", deleted, err)
	}
	age("2 hours")
	for round, want := range []bool{true, false} {
		if deleted, err := artifacts.DeleteBefore(name, time.Now().Add(-time.Hour)); deleted != want || err != nil {
			t.Errorf("round %d: deleted: %v, %v", round, deleted, err)
		}
	}
	if _, _, err := artifacts.Open(name); !problem.Is(err, problem.NotFound) {
		t.Errorf("it is still there: %v", err)
	}
	if err := artifacts.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := number(t, address, "SELECT count(*) FROM upload_chunk"); left != 0 {
		t.Errorf("%d of its rows are left", left)
	}
	put(t, artifacts, content)
	wantArtifact(t, artifacts, content)
}

// TestAReplacedServerPublishesNothing replaces the owner in the middle of an
// upload.
func TestAReplacedServerPublishesNothing(t *testing.T) {
	t.Parallel()
	address := fresh(t)
	before := own(t, connect(t, address))
	content := contents()[6]
	name := hashOf(content)
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
	put(t, next.Artifacts(), content)
	wantArtifact(t, next.Artifacts(), content)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(into []byte) (int, error) { return f(into) }
