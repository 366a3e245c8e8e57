// Package artifact keeps the bytes of checkpoints in files named by their
// SHA-256: sha256/ab/ab12... below one directory.
//
// Its one invariant: a file under its final name is complete, has the hash it
// is named by, and survives a power loss. It must not know what the bytes mean
// or who refers to them; deleting what nobody refers to is the caller's sweep.
package artifact

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/files"
	"github.com/tandem-tune/tandem/store/filesystem"
)

// The modes: what a model learned is nobody else's business on the machine.
const (
	directoryMode fs.FileMode = 0o700
	fileMode      fs.FileMode = 0o600
)

// Store keeps artifacts in one directory. It is safe for concurrent use within
// one process; two processes must not open the same directory.
type Store struct {
	files     string // dir/sha256: what is complete
	temporary string // dir/temporary: what is being received
	// mutex makes a Put's last step and a Delete exclude each other, so that a
	// sweep cannot take away what a Put has just promised.
	mutex sync.Mutex
}

// at is the store in the directory, which need not be there.
func at(dir string) *Store {
	return &Store{files: filepath.Join(dir, "sha256"), temporary: filepath.Join(dir, "temporary")}
}

// Open makes the directory if there is none and returns its store. What a
// crash left half received is removed.
func Open(dir string) (_ *Store, err error) {
	defer func() { err = filesystem.Explain(dir, err) }()
	s := at(dir)
	if err := os.RemoveAll(s.temporary); err != nil {
		return nil, fmt.Errorf("remove unfinished artifacts: %w", err)
	}
	for _, folder := range []string{s.files, s.temporary} {
		if err := os.MkdirAll(folder, directoryMode); err != nil {
			return nil, fmt.Errorf("make the folder for artifacts: %w", err)
		}
	}
	return s, errors.Join(files.SyncFolder(dir), files.SyncFolder(filepath.Dir(dir)))
}

// Open returns the artifact's bytes and their number; the caller closes it.
// The error is not_found if there is no such artifact.
func (s *Store) Open(sha256 string) (io.ReadCloser, int64, error) {
	path, err := s.path(sha256)
	if err != nil {
		return nil, 0, err
	}
	return open(path, sha256)
}

func open(path, name string) (io.ReadCloser, int64, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, Missing(name)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("open an artifact: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("measure an artifact: %w", err), file.Close())
	}
	return file, info.Size(), nil
}

// DeleteBefore removes the artifact unless it was put at the time or later,
// and reports whether it did. A sweep uses it, because an artifact that was old
// when the sweep saw it may have been put again since. Readers that have it open
// read it to the end.
func (s *Store) DeleteBefore(sha256 string, cutoff time.Time) (bool, error) {
	path, err := s.path(sha256)
	if err != nil {
		return false, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at an artifact: %w", err)
	}
	if !info.ModTime().Before(cutoff) {
		return false, nil
	}
	if err := os.Remove(path); err != nil {
		return false, fmt.Errorf("delete an artifact: %w", err)
	}
	return true, nil
}

// path returns where the artifact is, once its name is known to be a hash and
// therefore cannot lead anywhere else.
func (s *Store) path(sha256 string) (string, error) {
	if err := CheckName(sha256); err != nil {
		return "", err
	}
	return filepath.Join(s.files, sha256[:2], sha256), nil
}

func validName(name string) bool {
	return len(name) == 64 && !strings.ContainsFunc(name, func(c rune) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
}
