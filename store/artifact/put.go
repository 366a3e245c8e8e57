package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tandem-tune/tandem/internal/failpoint"
	"github.com/tandem-tune/tandem/internal/files"
	"github.com/tandem-tune/tandem/internal/problem"
)

// Put stores what it reads and returns how many bytes that are. When it
// returns, the artifact survives a power loss. The error is invalid if the
// bytes have another hash and exhausted if there are more than limit; then
// nothing is kept.
//
// Bytes that are there already are read to their end all the same, and replaced:
// nobody learns from an upload what others have. The artifact's age starts anew.
func (s *Store) Put(ctx context.Context, sha256 string, r io.Reader, limit int64) (int64, error) {
	path, err := s.path(sha256)
	if err != nil {
		return 0, err
	}
	file, err := os.CreateTemp(s.temporary, "put-*") // created with mode 0600
	if err != nil {
		return 0, storage("receive an artifact", err)
	}
	received := file.Name()
	bytes, err := receive(ctx, file, r, sha256, limit)
	if err == nil {
		err = failpoint.Here(failpoint.ArtifactReceived)
	}
	if err == nil {
		err = s.publish(received, path)
	}
	if err != nil {
		return 0, errors.Join(err, discard(received))
	}
	return bytes, nil
}

// receive writes at most limit bytes with the hash to the file, makes them
// durable and closes the file.
func receive(ctx context.Context, file *os.File, from io.Reader, name string, limit int64) (int64, error) {
	bytes, err := Receive(ctx, file, from, name, limit)
	if err == nil {
		if err = file.Sync(); err != nil {
			err = storage("make an artifact durable", err)
		}
	}
	if closeErr := file.Close(); err == nil && closeErr != nil {
		err = storage("close an artifact", closeErr)
	}
	return bytes, err
}

// publish gives the received file its final name, durably. An equal file that has
// it is replaced.
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
	if err := failpoint.Here(failpoint.ArtifactNamed); err != nil {
		return err
	}
	return s.syncName(path)
}

// syncName makes the artifact's name durable, and that of its folder, which may
// be new.
func (s *Store) syncName(path string) error {
	return errors.Join(files.SyncFolder(filepath.Dir(path)), files.SyncFolder(s.files))
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
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return problem.New(problem.Unavailable, "%s: %w, make room on it: %w", doing, problem.ErrDiskFull, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
