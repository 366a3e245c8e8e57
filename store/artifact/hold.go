package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Held are the artifacts of a folder that another process may be sweeping: a
// sweep takes away their names there, and these are names of our own.
type Held struct {
	store *Store // of the folder itself, for what is put later
	links string
}

// Hold keeps all artifacts that are in the folder now, until Release. It copies
// no bytes.
func Hold(dir string) (*Held, error) {
	s := at(dir)
	if err := os.MkdirAll(s.temporary, directoryMode); err != nil {
		return nil, fmt.Errorf("hold artifacts: %w", err)
	}
	// A server that starts removes what is here.
	links, err := os.MkdirTemp(s.temporary, "held-*")
	if err != nil {
		return nil, fmt.Errorf("hold artifacts: %w", err)
	}
	h := &Held{store: s, links: links}
	for entry, err := range s.All() {
		if err == nil {
			err = h.hold(entry.SHA256)
		}
		if err != nil {
			return nil, errors.Join(err, h.Release())
		}
	}
	return h, nil
}

func (h *Held) hold(name string) error {
	path, err := h.store.path(name)
	if err != nil {
		return err
	}
	err = os.Link(path, filepath.Join(h.links, name))
	if errors.Is(err, fs.ErrNotExist) { // swept while we listed
		return nil
	}
	if err != nil {
		return fmt.Errorf("hold artifact %s: %w", name, err)
	}
	return nil
}

// Open returns the artifact's bytes and their number, if it is held, or was put
// since; the caller closes it. The error is not_found if it is neither.
func (h *Held) Open(name string) (io.ReadCloser, int64, error) {
	if !validName(name) {
		return h.store.Open(name) // which says what is wrong with it
	}
	held, size, err := open(filepath.Join(h.links, name), name)
	if err != nil {
		return h.store.Open(name)
	}
	return held, size, nil
}

// Release lets the artifacts go.
func (h *Held) Release() error {
	if err := os.RemoveAll(h.links); err != nil {
		return fmt.Errorf("let artifacts go: %w", err)
	}
	return nil
}

// Verify reads every artifact of the folder and returns what there is, by name
// with the length, and the names of those whose bytes are not the ones they are
// named by. It changes nothing; a server may be using the folder.
func Verify(ctx context.Context, dir string) (sizes map[string]int64, damaged []string, err error) {
	s := at(dir)
	sizes = map[string]int64{}
	if _, err := os.Stat(s.files); errors.Is(err, fs.ErrNotExist) {
		return sizes, nil, nil
	}
	for entry, err := range s.All() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return sizes, damaged, err
		}
		whole, err := s.whole(ctx, entry.SHA256)
		if errors.Is(err, fs.ErrNotExist) { // swept meanwhile
			continue
		}
		if err != nil {
			return sizes, damaged, err
		}
		sizes[entry.SHA256] = entry.Bytes
		if !whole {
			damaged = append(damaged, entry.SHA256)
		}
	}
	return sizes, damaged, nil
}

// whole reports whether the artifact has the hash it is named by.
func (s *Store) whole(ctx context.Context, name string) (bool, error) {
	path, err := s.path(name)
	if err != nil {
		return false, err
	}
	file, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("open an artifact: %w", err)
	}
	hash := sha256.New()
	_, err = io.Copy(hash, reader{ctx, file})
	if err := errors.Join(err, file.Close()); err != nil {
		return false, fmt.Errorf("read artifact %s: %w", name, err)
	}
	return hex.EncodeToString(hash.Sum(nil)) == name, nil
}
