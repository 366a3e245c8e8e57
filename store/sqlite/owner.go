package sqlite

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
)

// owner is the right to use a database file, held through a lock on a file
// beside it. The kernel drops the lock when the process dies, however it dies.
type owner struct {
	file   *os.File
	marker string // a file that is there while the database is open, or was when its server died
}

// acquire takes the right, or says who has it.
func acquire(path string) (*owner, error) {
	file, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, problem.New(problem.Unavailable, "open the lock of %s: %w", path, err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(file.Name()) // says only more than we know anyway
		return nil, errors.Join(held(path, strings.TrimSpace(string(holder)), err), file.Close())
	}
	o := &owner{file: file, marker: path + ".unclean"}
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	text := fmt.Sprintf("process %d on %s, since %s\n", os.Getpid(), host, time.Now().Format(time.RFC3339))
	if err := errors.Join(file.Truncate(0), writeAt(file, text)); err != nil {
		return nil, errors.Join(problem.New(problem.Unavailable, "write the lock of %s: %w", path, err), o.release())
	}
	return o, nil
}

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

func held(path, holder string, err error) error {
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return problem.New(problem.Unavailable, "lock %s: %w", path, err)
	}
	if holder == "" {
		holder = "a process that is starting"
	}
	return problem.New(problem.Conflict,
		"another server has the database %s: %s. Stop that one first, or choose another data folder", path, holder)
}

// prepare makes the database's file if there is none, and reports whether the
// last server died with it open.
func (o *owner) prepare(path string) (suspect bool, err error) {
	if err := create(path); err != nil {
		return false, err
	}
	if _, err = os.Stat(o.marker); err == nil {
		return true, nil
	}
	text := []byte("It is removed by a clean stop. If it is here at the next start, the database is checked first.\n")
	if err := os.WriteFile(o.marker, text, 0o600); err != nil {
		return false, errors.Join(fmt.Errorf("mark %s as open: %w", path, err), o.clean())
	}
	return false, dbfile.SyncFile(o.marker)
}

// clean notes that the database was closed as it should be.
func (o *owner) clean() error { return dbfile.Remove(o.marker) }

// release gives the right up. The lock file stays: if it were removed, two
// servers could hold locks on two files of its name.
//
// It unlocks explicitly: closing alone leaves the lock to a command that is
// being started at this moment, until that one closes what it inherited.
func (o *owner) release() error {
	return errors.Join(unix.Flock(int(o.file.Fd()), unix.LOCK_UN), o.file.Close())
}

// create makes the file with nobody else allowed to read it: there are hashes
// of tokens in it, and what a model learns is nobody else's business.
func create(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return problem.New(problem.Unavailable, "open %s: %w", path, err)
	}
	if err := errors.Join(file.Chmod(0o600), file.Close()); err != nil {
		return fmt.Errorf("keep others from reading %s: %w", path, err)
	}
	return dbfile.SyncFile(path)
}
