package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
)

// view is one state of the database, for the rows of one answer and what proves
// that they are all there. It lives as long as one call.
type view struct {
	ctx context.Context
	tx  querier
}

// querier is a transaction, or a connection where one query is the whole answer.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// look makes an answer from one state of the database.
func look[T any](ctx context.Context, s *Store, read func(view) (T, error)) (T, error) {
	var none T
	if err := s.Err(); err != nil {
		return none, err
	}
	tx, err := s.readers.BeginTx(ctx, nil)
	if err != nil {
		return none, s.health.Explain(err)
	}
	value, err := read(view{ctx, tx})
	// Nothing was written, and behind the context's end there is nothing to end.
	_ = tx.Rollback()
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return none, s.health.Explain(err)
	}
	return value, nil
}

// collect reads the rows that a query finds.
func collect[T any](v view, scan func(*sql.Rows) (T, error), query string, args ...any) ([]T, error) {
	rows, err := v.tx.QueryContext(v.ctx, query, args...)
	if err != nil {
		return nil, err
	}
	var found []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		found = append(found, one)
	}
	return found, errors.Join(rows.Err(), rows.Close())
}

// scanner reads a row, proves it, and returns its checksum with it.
type scanner[T any] func(*sql.Rows) (value T, checksum int64, err error)

// proven reads a row where its list is not what is asked for.
func proven[T any](scan scanner[T]) func(*sql.Rows) (T, error) {
	return func(rows *sql.Rows) (T, error) {
		value, _, err := scan(rows)
		return value, err
	}
}

// list names the rows that are tallied together.
type list struct {
	kind, owner string
	// all takes the lists of all owners together.
	all bool
}

func (l list) String() string {
	if l.owner == "" {
		return "the list of all"
	}
	return fmt.Sprintf("the list of %q", l.owner)
}

// tables are the kinds of lists that are not named like their table.
func (l list) table() string {
	if l.kind == told {
		return "event"
	}
	return l.kind
}

// told is the kind of list of a trial's own events.
const told = "told"

// tally is how many rows a list has, and the sum of their checksums.
type tally struct {
	entries, total int64
	newest         int64 // the highest sequence of events
}

func (v view) tally(of list) (tally, error) {
	var t tally
	err := v.tx.QueryRowContext(v.ctx, `SELECT coalesce(sum(entries), 0), coalesce(sum(total), 0), coalesce(max(newest), 0)
		FROM tally WHERE kind = ? AND (owner = ? OR ?)`, of.kind, of.owner, of.all).Scan(&t.entries, &t.total, &t.newest)
	return t, err
}

// whole reads a list and proves that nothing is missing in it, there twice, or
// an older version of itself.
func whole[T any](v view, scan scanner[T], of list, query string, args ...any) ([]T, error) {
	var seen tally
	values, err := collect(v, func(rows *sql.Rows) (T, error) {
		value, sum, err := scan(rows)
		seen.entries++
		seen.total += sum
		return value, err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	written, err := v.tally(of)
	switch {
	case err != nil:
		return nil, err
	case seen.entries != written.entries:
		return nil, dbfile.Damage{Table: of.table(), Row: of.String(), Finding: fmt.Sprintf("%d rows are there, and %d were written", seen.entries, written.entries)}
	case seen.total != written.total:
		return nil, dbfile.Damage{Table: of.table(), Row: of.String(), Finding: "some row is not its newest version"}
	}
	return values, nil
}

// only is the one row found, which must be the one asked for, or what is said
// when there is none.
func only[T any](found []T, err error, is func(T) bool, none func() error) (T, error) {
	var nothing T
	switch {
	case err != nil:
		return nothing, err
	case len(found) == 0:
		return nothing, none()
	case !is(found[0]):
		return nothing, dbfile.Damage{Table: fmt.Sprintf("of %T", nothing), Row: "an index", Finding: "it leads to another row than was asked for"}
	}
	return found[0], nil
}

// absence is a row that its index did not find.
type absence struct {
	table, key string
	// count asks the table itself, not its index, for the number of its rows and
	// of those with the key.
	count string
	// missing is what is said if the row is really not there.
	missing error
}

// missing makes sure that the row is not there.
func (v view) missing(a absence) error {
	var rows, same int64
	if err := v.tx.QueryRowContext(v.ctx, a.count, a.key).Scan(&rows, &same); err != nil {
		return err
	}
	written, err := v.tally(list{kind: a.table, all: true})
	switch {
	case err != nil:
		return err
	case same > 0:
		return dbfile.Damage{Table: a.table, Row: fmt.Sprintf("row %q", a.key), Finding: "it is there, but its index does not lead to it"}
	case rows != written.entries:
		return dbfile.Damage{Table: a.table, Row: "all rows", Finding: fmt.Sprintf("%d are there, and %d were written", rows, written.entries)}
	}
	return a.missing
}
