package files_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tandem-tune/tandem/internal/files"
)

// What is written takes the place of what was there, with its mode; what cannot be read to
// its end changes nothing, and leaves nothing.
func TestAFileIsReplacedWholeOrNotAtAll(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	broken := errors.New("broken")
	for _, one := range []struct {
		content io.Reader
		mode    os.FileMode
		err     error
		want    string
	}{
		{strings.NewReader("old"), 0o600, nil, "old"},
		{io.MultiReader(strings.NewReader("ne"), iotest.ErrReader(broken)), 0o644, broken, "old"},
		{strings.NewReader("new"), 0o644, nil, "new"},
	} {
		if err := files.Write(path, one.content, one.mode); !errors.Is(err, one.err) {
			t.Errorf("%v, want %v", err, one.err)
		}
		content, err := os.ReadFile(path)
		if err != nil || string(content) != one.want {
			t.Errorf("the file has %q, %v, want %q", content, err, one.want)
		}
		names, err := os.ReadDir(folder)
		if err != nil || len(names) != 1 {
			t.Errorf("the folder has %v, %v", names, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o644 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if sum, err := files.Sum(path); err != nil || sum != "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437" {
		t.Errorf("the sum is %s, %v", sum, err)
	}
	if err := files.Write(filepath.Join(folder, "absent", "file"), strings.NewReader(""), 0o600); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in no folder: %v", err)
	}
}
