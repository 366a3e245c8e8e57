package dbfile

import (
	"errors"

	"github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/filesystem"
)

// Explained tells what the machine or another program kept from us apart from what is
// wrong with the database.
func Explained(path string, err error) error {
	if fault, ok := errors.AsType[sqlite3.Error](err); ok {
		if inTheWay(fault) {
			return problem.New(problem.Unavailable,
				"another program has the database %s locked: %w. End it (a sqlite3 that is open on it, or a copy that is being made), then try again; nothing is damaged or lost", path, err)
		}
		if cause := causeOf(path, fault); cause != nil {
			err = filesystem.Cause(err, cause)
		}
	}
	return filesystem.Explain(path, err)
}

// Unreadable is a database that cannot be read: it is damaged, unless it is only the
// machine that does not let us.
func Unreadable(path string, err error) error {
	var fault sqlite3.Error
	if errors.As(err, &fault) && (inTheWay(fault) || causeOf(path, fault) != nil) {
		return Explained(path, err)
	}
	return Damaged(path, err.Error())
}

func inTheWay(fault sqlite3.Error) bool {
	return fault.Code == sqlite3.ErrBusy || fault.Code == sqlite3.ErrLocked || fault.Code == sqlite3.ErrProtocol
}

// causeOf is the error of the system behind one of SQLite's; nil where it is of the
// database itself.
func causeOf(path string, fault sqlite3.Error) error {
	switch fault.Code {
	case sqlite3.ErrFull:
		return unix.ENOSPC
	case sqlite3.ErrReadonly:
		if unix.Access(path, unix.W_OK) == unix.EROFS { //nolint:errorlint // a number of the system
			return unix.EROFS
		}
		return unix.EACCES
	case sqlite3.ErrPerm:
		return unix.EACCES
	case sqlite3.ErrNomem:
		return unix.ENOMEM
	case sqlite3.ErrCantOpen, sqlite3.ErrIoErr:
	default:
		return nil
	}
	switch {
	case fault.ExtendedCode == sqlite3.ErrIoErrNoMem:
		return unix.ENOMEM
	case fault.ExtendedCode == sqlite3.ErrIoErrShortRead && fault.SystemErrno == 0:
		return nil // a page is not there
	case fault.SystemErrno != 0 && fault.SystemErrno != unix.ENOENT:
		return fault.SystemErrno
	case filesystem.Full(path):
		return unix.ENOSPC
	}
	return unix.EIO
}
