package artifact

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/problem"
)

var roomy = Limits{Bytes: 1 << 20, Files: 100}

func fill(t rapid.TB, directory string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func packed(t rapid.TB, directory string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := pack(directory, &out, roomy); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestArchiveComesBackAndIsDeterministic(t *testing.T) {
	base := t.TempDir()
	number := 0
	rapid.Check(t, func(rt *rapid.T) {
		number++
		files := rapid.MapOfN(rapid.StringMatching(`[a-zé ]{1,8}(/[a-z]{1,120}){0,2}`), rapid.String(), 0, 6).Draw(rt, "files")
		from, again, to := filepath.Join(base, fmt.Sprint(number, "a")), filepath.Join(base, fmt.Sprint(number, "b")), filepath.Join(base, fmt.Sprint(number, "c"))
		for _, directory := range []string{from, again, to} {
			if err := os.Mkdir(directory, 0o700); err != nil {
				rt.Fatal(err)
			}
		}
		for name := range files {
			for other := range files {
				if strings.HasPrefix(other, name+"/") {
					delete(files, other) // a file cannot be a folder too
				}
			}
		}
		fill(rt, from, files)
		fill(rt, again, files)
		for name := range files {
			if err := os.Chtimes(filepath.Join(again, name), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
				rt.Fatal(err)
			}
		}
		content := packed(rt, from)
		if !bytes.Equal(content, packed(rt, again)) {
			rt.Fatal("equal files gave different archives")
		}
		if err := unpack(bytes.NewReader(content), to, roomy, nil); err != nil {
			rt.Fatal(err)
		}
		if !bytes.Equal(content, packed(rt, to)) {
			rt.Fatal("what came back is not what was packed")
		}
	})
}

func TestPackRefuses(t *testing.T) {
	tests := []struct {
		name string
		make func(directory string) error
		code problem.Code
		say  string
	}{
		{"a link", func(d string) error { return os.Symlink("/etc/passwd", filepath.Join(d, "x")) }, problem.Invalid, "neither a file nor a folder"},
		{"a socket's kind", func(d string) error { return mkfifo(filepath.Join(d, "x")) }, problem.Invalid, "neither a file nor a folder"},
		{"a backslash", func(d string) error { return os.WriteFile(filepath.Join(d, `a\b`), nil, 0o600) }, problem.Invalid, "name"},
		{"too much", func(d string) error { return os.WriteFile(filepath.Join(d, "x"), make([]byte, roomy.Bytes+1), 0o600) }, problem.Exhausted, "at most 1 MiB and 100 files"},
		{"too deep", func(d string) error { return os.MkdirAll(filepath.Join(d, strings.Repeat("a/", deepest+1)), 0o700) }, problem.Invalid, "name"},
		{"too many", func(d string) error {
			for i := range roomy.Files + 1 {
				if err := os.WriteFile(filepath.Join(d, fmt.Sprint(i)), nil, 0o600); err != nil {
					return err
				}
			}
			return nil
		}, problem.Exhausted, "at most 1 MiB and 100 files"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			directory := t.TempDir()
			if err := test.make(directory); err != nil {
				t.Fatal(err)
			}
			if err := pack(directory, io.Discard, roomy); !problem.Is(err, test.code) || !strings.Contains(err.Error(), test.say) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestUnpackRefuses(t *testing.T) {
	file := func(name string) []tar.Header {
		return []tar.Header{{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: 4}}
	}
	tests := []struct {
		name    string
		headers []tar.Header
	}{
		{"a path upwards", file("../x")},
		{"a path upwards, later", file("a/../../x")},
		{"an absolute path", file("/tmp/x")},
		{"a backslash", file(`..\x`)},
		{"a name twice", append(file("x"), file("x")...)},
		{"a symbolic link", []tar.Header{{Typeflag: tar.TypeSymlink, Name: "x", Linkname: "/etc"}}},
		{"a hard link", []tar.Header{{Typeflag: tar.TypeLink, Name: "x", Linkname: "/etc/passwd"}}},
		{"a device", []tar.Header{{Typeflag: tar.TypeChar, Name: "x"}}},
		{"a file through a link", []tar.Header{{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/tmp"}, file("a/x")[0]}},
		{"too much", []tar.Header{{Typeflag: tar.TypeReg, Name: "x", Size: roomy.Bytes + 1}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			archive := tar.NewWriter(&out)
			for _, header := range test.headers {
				if err := archive.WriteHeader(&header); err != nil {
					t.Fatal(err)
				}
				if _, err := archive.Write(make([]byte, header.Size)); err != nil {
					t.Fatal(err)
				}
			}
			if err := archive.Close(); err != nil {
				t.Fatal(err)
			}
			outside := t.TempDir()
			inside := filepath.Join(outside, "in")
			if err := os.Mkdir(inside, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := unpack(&out, inside, roomy, nil); err == nil {
				t.Error("it was unpacked")
			}
			if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
				t.Errorf("something was written outside: %v, %v", entries, err)
			}
		})
	}
	if err := unpack(strings.NewReader("no archive at all, but long enough to be a header of one"), t.TempDir(), roomy, nil); err == nil {
		t.Error("noise was unpacked")
	}
}

func TestFingerprint(t *testing.T) {
	directory := t.TempDir()
	look := func() string {
		t.Helper()
		content, err := fingerprint(directory)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	if look() != "" {
		t.Error("an empty folder has a fingerprint")
	}
	fill(t, directory, map[string]string{"a": "1"})
	first := look()
	if first == "" || look() != first {
		t.Error("nothing changed")
	}
	fill(t, directory, map[string]string{"new": "2"})
	if err := os.Rename(filepath.Join(directory, "new"), filepath.Join(directory, "a")); err != nil {
		t.Fatal(err)
	}
	if look() == first {
		t.Error("a file of the same size that was renamed into place was not seen")
	}
}

func TestCache(t *testing.T) {
	c := NewCache(t.TempDir(), 2, 100)
	add := func(content string) *File {
		t.Helper()
		a, err := c.add(func(out io.Writer) error { _, err := io.WriteString(out, content); return err }, 50)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first, second := add("first"), add("second")
	c.release(second)
	third := add("third")
	c.release(third)
	if c.take(first.SHA256) == nil {
		t.Error("an artifact in use was removed")
	}
	c.release(first)
	c.release(first)
	add("fourth")
	if c.take(first.SHA256) != nil {
		t.Error("the oldest is still there")
	}
	if same := add("third"); same.SHA256 != third.SHA256 || same.Bytes != 5 {
		t.Errorf("got %+v", same)
	}
	kept := c.take(third.SHA256)
	if kept == nil {
		t.Fatal("a new one is gone")
	}
	if err := os.WriteFile(kept.path, []byte("spoilt"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c.take(third.SHA256) != nil {
		t.Error("a file that no longer has its hash was given out")
	}
	_, err := c.add(func(out io.Writer) error { _, err := out.Write(make([]byte, 51)); return err }, 50)
	if !problem.Is(err, problem.Exhausted) {
		t.Errorf("more than the limit: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(c.directory, "new-*")); err != nil || len(left) > 0 {
		t.Errorf("half an artifact is left: %v, %v", left, err)
	}
}

func mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }
