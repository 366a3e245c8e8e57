// Package artifacttest is the conformance suite of the places that keep artifacts: a folder,
// a database, a bucket.
package artifacttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/artifact"
)

// Room is the limit of [Put], in bytes.
const Room = 4 << 20

// Place is what is tested.
type Place interface {
	Put(ctx context.Context, sha256 string, r io.Reader, limit int64) (bytes int64, err error)
	Open(sha256 string) (io.ReadCloser, int64, error)
	All() iter.Seq2[artifact.Entry, error]
	DeleteBefore(sha256 string, cutoff time.Time) (bool, error)
}

// Name is the content's.
func Name(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Content is some that is like no other size's.
func Content(size int) []byte {
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(i*i>>8 + size)
	}
	return content
}

// Put stores the content and returns its name.
func Put(t testing.TB, place Place, content []byte) string {
	t.Helper()
	name := Name(content)
	if size, err := place.Put(t.Context(), name, iotest.HalfReader(bytes.NewReader(content)), Room); err != nil || size != int64(len(content)) {
		t.Fatalf("Put returned %d, %v; want %d bytes", size, err, len(content))
	}
	return name
}

// WantContent fails unless the place has exactly the content under its name.
func WantContent(t testing.TB, place Place, content []byte) {
	t.Helper()
	stream, size, err := place.Open(Name(content))
	if err != nil || size != int64(len(content)) {
		t.Fatalf("Open returned %d, %v; want %d bytes", size, err, len(content))
	}
	back, err := io.ReadAll(stream)
	if err := errors.Join(err, stream.Close()); err != nil || !bytes.Equal(back, content) {
		t.Errorf("%d bytes came back as %d others, %v", len(content), len(back), err)
	}
}

// WantAbsent fails if the place has an artifact of the name.
func WantAbsent(t testing.TB, place Place, name string) {
	t.Helper()
	if _, _, err := place.Open(name); !problem.Is(err, problem.NotFound) {
		t.Errorf("%s was opened: %v", name, err)
	}
}

// List is what the place lists.
func List(t testing.TB, place Place) (entries []artifact.Entry) {
	t.Helper()
	for entry, err := range place.All() {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry)
	}
	return entries
}

// Run tests places. open makes an empty one for each test; sizes are of contents that may
// be hard for it.
func Run(t *testing.T, open func(t *testing.T) Place, sizes ...int) {
	for name, test := range map[string]func(*testing.T, Place){
		"what is put is read and listed":       func(t *testing.T, place Place) { kept(t, place, append(sizes, 1, 1000, 100_000)) },
		"refused bytes leave nothing":          refused,
		"names that are no hashes are refused": badNames,
		"what is there is not confirmed":       putAgain,
		"an old one goes, a young one stays":   ages,
		"many put the same at once":            concurrent,
		"a sweep spares what is being put":     swept,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func kept(t *testing.T, place Place, sizes []int) {
	if got := List(t, place); len(got) != 0 {
		t.Fatalf("an empty place lists %v", got)
	}
	want := map[string]int64{}
	for _, size := range sizes {
		want[Put(t, place, Content(size))] = int64(size)
	}
	entries := List(t, place)
	if len(entries) != len(want) {
		t.Errorf("%d artifacts are listed, want %d", len(entries), len(want))
	}
	for i, entry := range entries {
		if size, ok := want[entry.SHA256]; !ok || size != entry.Bytes || time.Since(entry.Modified) > time.Hour {
			t.Errorf("%+v was not put so", entry)
		}
		if i > 0 && entries[i-1].SHA256 >= entry.SHA256 {
			t.Errorf("%s is out of order", entry.SHA256)
		}
	}
	for range place.All() {
		break // a caller may stop early
	}
	for _, size := range sizes {
		WantContent(t, place, Content(size))
	}
}

func refused(t *testing.T, place Place) {
	content := Content(2<<20 + 5)
	name, short := Name(content), int64(len(content)-1)
	gone, leave := context.WithCancel(t.Context())
	leave()
	from := func() io.Reader { return bytes.NewReader(content) }
	hangsUp := io.MultiReader(bytes.NewReader(content[:1<<20+5]), iotest.ErrReader(errors.New("hung up")))
	for what, c := range map[string]struct {
		ctx  context.Context
		from io.Reader
		room int64
		want problem.Code
	}{
		"other bytes":            {t.Context(), strings.NewReader("other"), Room, problem.Invalid},
		"cut short":              {t.Context(), bytes.NewReader(content[:short]), Room, problem.Invalid},
		"one byte more":          {t.Context(), io.MultiReader(from(), strings.NewReader("x")), Room, problem.Invalid},
		"one byte over":          {t.Context(), from(), short, problem.Exhausted},
		"endless":                {t.Context(), endless{}, Room, problem.Exhausted},
		"nothing allowed":        {t.Context(), from(), 0, problem.Exhausted},
		"the caller left":        {gone, from(), Room, problem.Unavailable},
		"the sender broke off":   {t.Context(), hangsUp, Room, problem.Internal},
		"broke off at the start": {t.Context(), iotest.ErrReader(errors.New("hung up")), Room, problem.Internal},
	} {
		if _, err := place.Put(c.ctx, name, c.from, c.room); !problem.Is(err, c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
	WantAbsent(t, place, name)
	if got := List(t, place); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
	if deleted, err := place.DeleteBefore(name, time.Now().Add(time.Hour)); deleted || err != nil {
		t.Errorf("what is not there was deleted: %v, %v", deleted, err)
	}
	Put(t, place, content) // and a retry works
	WantContent(t, place, content)
}

func badNames(t *testing.T, place Place) {
	content := []byte("weights")
	name := Put(t, place, content)
	for what, bad := range map[string]string{
		"empty": "", "short": name[:63], "long": name + "0", "upper case": strings.ToUpper(name), "up and out": "../../outside",
		"up and out, as long as a hash": strings.Repeat("../", 18) + "outside/..", "absolute": "/etc/passwd", "a folder": name[:2],
		"padded": " " + name[1:], "no digit": "g" + name[1:], "zero byte": name[:63] + "\x00", "line break": name[:63] + "\n", "not ASCII": name[:62] + "é",
	} {
		_, put := place.Put(t.Context(), bad, bytes.NewReader(content), Room)
		_, _, opened := place.Open(bad)
		_, deleted := place.DeleteBefore(bad, time.Now())
		for call, err := range map[string]error{"Put": put, "Open": opened, "DeleteBefore": deleted} {
			if !problem.Is(err, problem.Invalid) {
				t.Errorf("%s of a name that is %s: %v", call, what, err)
			}
		}
	}
	if got := List(t, place); len(got) != 1 {
		t.Errorf("%v are listed, want the artifact alone", got)
	}
}

// putAgain: nobody learns from an upload what others have.
func putAgain(t *testing.T, place Place) {
	content := Content(1000)
	name := Put(t, place, content)
	if _, err := place.Put(t.Context(), name, strings.NewReader("others!"), Room); !problem.Is(err, problem.Invalid) {
		t.Errorf("other bytes: %v", err)
	}
	if _, err := place.Put(t.Context(), name, bytes.NewReader(content), 999); !problem.Is(err, problem.Exhausted) {
		t.Errorf("more bytes than are allowed: %v", err)
	}
	Put(t, place, content)
	WantContent(t, place, content)
}

func ages(t *testing.T, place Place) {
	content := Content(1<<20 + 1)
	name := Put(t, place, content)
	if deleted, err := place.DeleteBefore(name, time.Now().Add(-time.Hour)); deleted || err != nil {
		t.Errorf("a young one was deleted: %v, %v", deleted, err)
	}
	for round, want := range []bool{true, false} {
		if deleted, err := place.DeleteBefore(name, time.Now().Add(time.Hour)); deleted != want || err != nil {
			t.Errorf("round %d: deleted: %v, %v", round, deleted, err)
		}
	}
	WantAbsent(t, place, name)
	Put(t, place, content)
	WantContent(t, place, content)
}

func concurrent(t *testing.T, place Place) {
	content := Content(200_000)
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			sent, wrong := content, i%4 == 3
			if wrong {
				sent = content[1:]
			}
			size, err := place.Put(t.Context(), Name(content), bytes.NewReader(sent), Room)
			if wrong != (err != nil) || wrong && !problem.Is(err, problem.Invalid) || !wrong && size != int64(len(content)) {
				t.Errorf("put %d: %d bytes, %v", i, size, err)
			}
		})
	}
	group.Wait()
	WantContent(t, place, content)
	if got := List(t, place); len(got) != 1 {
		t.Errorf("%v are listed, want one", got)
	}
}

// swept puts and sweeps the same artifact at once. Whenever a Put returned and no later
// sweep deleted, it is there.
func swept(t *testing.T, place Place) {
	content := []byte("a checkpoint that is put again and again")
	for round := range 30 {
		Put(t, place, content)
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := place.DeleteBefore(Name(content), time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
		})
		held := &late{from: bytes.NewReader(content), until: &both, waits: round%2 == 0}
		if _, err := place.Put(t.Context(), Name(content), held, Room); err != nil {
			t.Error(err)
		}
		both.Wait()
		if got := List(t, place); held.waits && len(got) != 1 {
			t.Fatalf("round %d: what was put after the sweep is gone", round)
		}
	}
}

// endless has as many bytes as anybody reads.
type endless struct{}

// Read reads.
func (endless) Read(into []byte) (int, error) { return len(into), nil }

// late reads when the others are through, if it waits.
type late struct {
	from  io.Reader
	until *sync.WaitGroup
	waits bool
}

// Read reads.
func (l *late) Read(into []byte) (int, error) {
	if l.waits {
		l.until.Wait()
	}
	return l.from.Read(into)
}
