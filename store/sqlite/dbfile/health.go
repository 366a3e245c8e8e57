package dbfile

import (
	"context"
	"database/sql"
	"errors"
	"syscall"

	"github.com/mattn/go-sqlite3"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/record"
)

// Health remembers the first failure after which the store is not to be
// trusted. A disk that failed to write may pretend to have written at the next
// try (Rebello et al., USENIX ATC 2020), so there is no way back from it.
type Health struct {
	*record.Health
	path string // of the database
}

// NewHealth is that of a database that works.
func NewHealth(path string) *Health { return &Health{record.NewHealth(), path} }

// Fail stops the store because the database or its disk failed.
func (h *Health) Fail(cause error) error {
	return h.Break(problem.New(problem.Unavailable,
		"the store has stopped because the database or its disk failed: %w; check the disk, then start the server again", cause))
}

// Explain turns an error of the driver into one a caller can act on, and
// stops the store if it is one that does not pass.
func (h *Health) Explain(err error) error {
	var refusal *problem.Error
	var fault sqlite3.Error
	var found Damage
	switch {
	case err == nil:
		return nil
	case errors.As(err, &found):
		return h.Break(Damaged(h.path, found.Error()))
	case errors.As(err, &refusal):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return record.GaveUp(err)
	case errors.Is(err, sql.ErrConnDone) || err.Error() == "sql: database is closed":
		return record.Closed()
	case !errors.As(err, &fault):
		return problem.New(problem.Internal, "the store: %w", err)
	}
	switch Weigh(fault) {
	case passing:
		return problem.New(problem.Unavailable, "the database cannot be used right now: %w; try again", err)
	case full:
		return problem.New(problem.Unavailable, "%w (or its quota), so nothing can be stored: %w; free some space, no restart is needed", problem.ErrDiskFull, err)
	case Defect:
		return problem.New(problem.Internal, "the store: %w", err)
	}
	if fault.Code == sqlite3.ErrCorrupt || fault.Code == sqlite3.ErrNotADB {
		return h.Break(Damaged(h.path, err.Error()))
	}
	return h.Fail(err)
}

// weight is how far an error of SQLite reaches.
type weight int

const (
	fatal   weight = iota // the store cannot be trusted
	full                  // no write fits
	passing               // the transaction is over, the next may work
	Defect                // one statement was wrong, and only it failed
)

func Weigh(fault sqlite3.Error) weight {
	switch fault.Code {
	case sqlite3.ErrFull:
		return full
	case sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrNomem, sqlite3.ErrInterrupt:
		return passing
	case sqlite3.ErrConstraint, sqlite3.ErrTooBig, sqlite3.ErrError, sqlite3.ErrMismatch, sqlite3.ErrMisuse, sqlite3.ErrRange:
		return Defect
	}
	noRoom := fault.SystemErrno == syscall.ENOSPC || fault.SystemErrno == syscall.EDQUOT
	if noRoom && (fault.ExtendedCode == sqlite3.ErrIoErrWrite || fault.ExtendedCode == sqlite3.ErrIoErrSHMSize) {
		return full // a write was refused; a sync that fails for that has lost something
	}
	outOfFiles := fault.SystemErrno == syscall.EMFILE || fault.SystemErrno == syscall.ENFILE
	if fault.ExtendedCode == sqlite3.ErrIoErrNoMem || fault.Code == sqlite3.ErrCantOpen && outOfFiles {
		return passing
	}
	return fatal
}

// Taken reports whether a row with the same key is there already.
func Taken(err error) bool {
	var fault sqlite3.Error
	return errors.As(err, &fault) &&
		(fault.ExtendedCode == sqlite3.ErrConstraintUnique || fault.ExtendedCode == sqlite3.ErrConstraintPrimaryKey)
}

// Orphan reports whether the row that a row belongs to is missing.
func Orphan(err error) bool {
	var fault sqlite3.Error
	return errors.As(err, &fault) && fault.ExtendedCode == sqlite3.ErrConstraintForeignKey
}
