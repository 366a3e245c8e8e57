package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/record"
)

// health remembers why the store is not to be trusted any more: its term is
// over, or the database found its own data damaged.
type health struct{ *record.Health }

func newHealth() *health { return &health{record.NewHealth()} }

// explain turns an error of the driver into one a caller can act on, and
// breaks the store if it is one that does not pass.
func (h *health) explain(err error) error {
	var refusal *problem.Error
	var fault *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal):
		return err
	case errors.Is(err, context.Canceled):
		return record.GaveUp(err)
	case !errors.As(err, &fault):
		return away(err)
	}
	switch weigh(fault) {
	case passing:
		return away(err)
	case full:
		return problem.New(problem.Unavailable, "%w, or that of its database, so nothing can be stored: %w; free some space, no restart is needed", problem.ErrDiskFull, err)
	case defect:
		return problem.New(problem.Internal, "the store: %w", err)
	}
	return h.Break(problem.New(problem.Unavailable,
		"the store has stopped because the database reports that its data or its disk is damaged: %w; check the disk and restore a backup, then start the server again", err))
}

// away says that the database does not answer as it should just now.
func away(err error) error {
	return problem.New(problem.Unavailable, "the database cannot be used right now: %w; try again", err)
}

// weight is how far an error of PostgreSQL reaches.
type weight int

const (
	fatal   weight = iota // the data cannot be trusted
	full                  // no write fits
	passing               // the transaction is over, the next may work
	defect                // one statement was wrong, and only it failed
)

// diskFull is what PostgreSQL says of its own disk.
const diskFull = "53100"

func weigh(fault *pgconn.PgError) weight {
	switch code := fault.Code; {
	case strings.HasPrefix(code, "XX001"), strings.HasPrefix(code, "XX002"), code == "58030": // data or index corrupted, I/O error
		return fatal
	case code == diskFull:
		return full
	case strings.HasPrefix(code, "08"), // connection
		strings.HasPrefix(code, "53"),    // no memory, no connections left
		strings.HasPrefix(code, "57"),    // shut down, not up yet, cancelled
		strings.HasPrefix(code, "40"),    // deadlock
		code == "25P03", code == "25P04", // it took too long
		code == "25006",                                // this one is a replica now
		code == "55P03",                                // a lock was not to be had
		strings.HasPrefix(code, "28"), code == "3D000": // may be repaired by whoever changed it
		return passing
	}
	return defect
}

// lost reports whether the connection is gone, so that another one may do.
func lost(err error) bool {
	var refusal *problem.Error
	var fault *pgconn.PgError
	switch {
	case err == nil, errors.As(err, &refusal), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &fault):
		return strings.HasPrefix(fault.Code, "57P") || strings.HasPrefix(fault.Code, "08") || fault.Code == "25P03"
	}
	return true
}

// taken reports whether a row with the same key is there already.
func taken(err error) bool { return state(err) == "23505" }

// orphan reports whether the row that a row belongs to is missing.
func orphan(err error) bool { return state(err) == "23503" }

func state(err error) string {
	if fault, ok := errors.AsType[*pgconn.PgError](err); ok {
		return fault.Code
	}
	return ""
}
