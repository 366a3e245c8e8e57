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
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/problem"
)

// Put stores what it reads and returns how many bytes that are. When it
// returns, the artifact survives a power loss. The error is invalid if the
// bytes have another hash and exhausted if there are more than limit; then
// nothing is kept.
//
// An artifact that is there already is not read again: its age starts anew, and
// its size is returned.
func (s *Store) Put(ctx context.Context, sha256 string, r io.Reader, limit int64) (int64, error) {
	path, err := s.path(sha256)
	if err != nil {
		return 0, err
	}
	if bytes, found, err := s.refresh(path); found || err != nil {
		return bytes, err
	}
	file, err := os.CreateTemp(s.temporary, "put-*") // created with mode 0600
	if err != nil {
		return 0, storage("receive an artifact", err)
	}
	received := file.Name()
	bytes, err := receive(file, reader{ctx, r}, sha256, limit)
	if err == nil {
		err = s.publish(received, path)
	}
	if err != nil {
		return 0, errors.Join(err, discard(received))
	}
	return bytes, nil
}

// refresh gives an artifact that exists the present as its time and returns
// its size.
func (s *Store) refresh(path string) (bytes int64, found bool, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("look at an artifact: %w", err)
	}
	now := time.Now()
	if err := os.Chtimes(path, now, now); err != nil {
		return 0, false, fmt.Errorf("refresh an artifact: %w", err)
	}
	// Another Put may have named it, and not have come further yet.
	return info.Size(), true, s.syncName(path)
}

// receive writes at most limit bytes with the hash to the file, makes them
// durable and closes the file.
func receive(file *os.File, from io.Reader, name string, limit int64) (int64, error) {
	hash := sha256.New()
	// One byte more than the limit is enough to know that it is exceeded.
	bytes, err := io.Copy(io.MultiWriter(file, hash), io.LimitReader(from, limit+1))
	switch {
	case err != nil:
		err = storage("receive an artifact", err)
	case bytes > limit:
		err = problem.New(problem.Exhausted, "the artifact is larger than the %d bytes allowed: make the checkpoint smaller, or raise the limit", limit)
	case hex.EncodeToString(hash.Sum(nil)) != name:
		err = problem.New(problem.Invalid, "the %d bytes received have the SHA-256 %x, not %s: send the file again", bytes, hash.Sum(nil), name)
	default:
		if err = file.Sync(); err != nil {
			err = storage("make an artifact durable", err)
		}
	}
	if closeErr := file.Close(); err == nil && closeErr != nil {
		err = storage("close an artifact", closeErr)
	}
	return bytes, err
}

// publish gives the received file its final name, durably. If another Put of
// the same artifact was faster, its equal file is replaced.
func (s *Store) publish(received, path string) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, directoryMode); err != nil {
		return storage("make a folder of artifacts", err)
	}
	s.mutex.Lock()
	err := os.Rename(received, path)
	s.mutex.Unlock()
	if err != nil {
		return storage("name an artifact", err)
	}
	return s.syncName(path)
}

// syncName makes the artifact's name durable, and that of its folder, which may
// be new.
func (s *Store) syncName(path string) error {
	return errors.Join(syncFolder(filepath.Dir(path)), syncFolder(s.files))
}

// discard removes a received file, which may have got its final name already.
func discard(received string) error {
	if err := os.Remove(received); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove an unfinished artifact: %w", err)
	}
	return nil
}

// storage is a failure of the disk or of the sender. A full disk is said as
// something that passes, since somebody can make room.
func storage(doing string, err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return problem.New(problem.Unavailable, "%s: the server's disk is full, make room on it: %w", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// reader ends when its context does.
type reader struct {
	ctx  context.Context
	from io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, problem.New(problem.Unavailable, "the artifact was not received to its end: %w", err)
	}
	return r.from.Read(p)
}
