package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/trial"
)

// AppendLog adds text at the offset of the lease's log, up to
// record.LogLimit bytes for the trial; see study.LogStore.
func (s *Store) AppendLog(ctx context.Context, id trial.ID, epoch trial.LeaseEpoch, offset int64, text string) error {
	chunk := record.Chunk{Offset: offset, Text: text}
	if err := chunk.Check(); err != nil {
		return err
	}
	return s.writer.do(ctx, func(session *session) error { return session.appendLog(id, epoch, chunk) })
}

func (s *session) appendLog(id trial.ID, epoch trial.LeaseEpoch, chunk record.Chunk) error {
	var log record.Log
	var current int64
	err := s.row(`SELECT trial.lease_epoch, coalesce(log.bytes, 0), coalesce(log."full", 0)
		FROM trial LEFT JOIN log ON log.trial = trial.id WHERE trial.id = ?`, []any{string(id)}, &current, &log.Bytes, &log.Full)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return record.NoTrial(id)
	case err != nil:
		return err
	case current != int64(epoch):
		return record.LogClosed(id, epoch)
	}
	kept, err := s.spans(id, epoch, chunk.Span())
	if err != nil {
		return err
	}
	pieces, log := log.Add(chunk, kept, record.LogLimit)
	if len(pieces) == 0 {
		return nil
	}
	for _, piece := range pieces {
		err := s.exec("INSERT INTO log_chunk (trial, lease_epoch, start, stop, text) VALUES (?, ?, ?, ?, ?)",
			string(id), int64(epoch), piece.Start, piece.Stop, piece.Text)
		if err != nil {
			return err
		}
	}
	return s.exec(`INSERT INTO log (trial, bytes, "full") VALUES (?, ?, ?)
		ON CONFLICT (trial) DO UPDATE SET bytes = excluded.bytes, "full" = excluded."full"`, string(id), log.Bytes, log.Full)
}

// spans returns the kept spans of the lease that touch the span, in order.
func (s *session) spans(id trial.ID, epoch trial.LeaseEpoch, touching record.Span) (list []record.Span, err error) {
	// Spans do not overlap, so the first one that ends before ends the search:
	// text that is appended costs one row, however long the log is.
	rows, err := s.connection.QueryContext(context.Background(),
		"SELECT start, stop FROM log_chunk WHERE trial = ? AND lease_epoch = ? AND start < ? ORDER BY start DESC",
		string(id), int64(epoch), touching.Stop)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var span record.Span
		if err := rows.Scan(&span.Start, &span.Stop); err != nil {
			return nil, err
		}
		if span.Stop <= touching.Start {
			break
		}
		list = append(list, span)
	}
	slices.Reverse(list)
	return list, rows.Err()
}

// Log returns the trial's log, the leases in order.
func (s *Store) Log(ctx context.Context, id trial.ID) (string, error) {
	var full bool
	chunks, err := collect(ctx, s, func(row *sql.Rows) (string, error) {
		var text string
		return text, row.Scan(&text, &full)
	}, `SELECT text, log."full" FROM log_chunk JOIN log USING (trial) WHERE trial = ? ORDER BY lease_epoch, start`, string(id))
	if err := s.orMissing(ctx, len(chunks), err, trialExists(id)); err != nil {
		return "", err
	}
	if full {
		chunks = append(chunks, record.LogNotice(record.LogLimit))
	}
	return strings.Join(chunks, ""), nil
}
