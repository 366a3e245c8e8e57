package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"
)

// Entry is an artifact as a sweep sees it.
type Entry struct {
	SHA256 string
	Bytes  int64
	// Modified is when the artifact was last put.
	Modified time.Time
}

// All lists the artifacts by name. One that is put or deleted meanwhile may or
// may not be in it. An error costs what it names, not the rest of the list.
func (s *Store) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		folders, err := os.ReadDir(s.files)
		if err != nil {
			yield(Entry{}, fmt.Errorf("list the artifacts: %w", err))
			return
		}
		for _, folder := range folders {
			if !s.listFolder(folder.Name(), yield) {
				return
			}
		}
	}
}

// listFolder yields one folder's artifacts and reports whether to go on.
// Whatever else lies there is not ours, and is left alone.
func (s *Store) listFolder(name string, yield func(Entry, error) bool) bool {
	files, err := os.ReadDir(filepath.Join(s.files, name))
	if err != nil {
		return yield(Entry{}, fmt.Errorf("list the artifacts: %w", err))
	}
	for _, file := range files {
		if !validName(file.Name()) || file.Name()[:2] != name || !file.Type().IsRegular() {
			continue
		}
		info, err := file.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			err = fmt.Errorf("look at artifact %s: %w", file.Name(), err)
			if !yield(Entry{}, err) {
				return false
			}
			continue
		}
		if !yield(Entry{SHA256: file.Name(), Bytes: info.Size(), Modified: info.ModTime()}, nil) {
			return false
		}
	}
	return true
}
