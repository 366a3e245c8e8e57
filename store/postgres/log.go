package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/trial"
)

// AppendLog adds text at the offset of the lease's log, up to
// record.LogLimit bytes for the trial; see journal.LogStore.
func (s *Store) AppendLog(ctx context.Context, id trial.ID, epoch trial.LeaseEpoch, offset int64, text string) error {
	chunk := record.Chunk{Offset: offset, Text: text}
	if err := chunk.Check(); err != nil {
		return err
	}
	return s.writer.Do(ctx, func(run *session) error { return run.appendLog(id, epoch, chunk) })
}

func (s *session) appendLog(id trial.ID, epoch trial.LeaseEpoch, chunk record.Chunk) error {
	var log record.Log
	var current int64
	err := s.row(`SELECT trial.lease_epoch, coalesce(log.bytes, 0), coalesce(log."full", false)
		FROM trial LEFT JOIN log ON log.trial = trial.id WHERE trial.id = $1`, []any{string(id)}, &current, &log.Bytes, &log.Full)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
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
		s.do(fine, "INSERT INTO log_chunk (trial, lease_epoch, start, stop, text) VALUES ($1, $2, $3, $4, $5)",
			string(id), int64(epoch), piece.Start, piece.Stop, piece.Text)
	}
	s.do(fine, `INSERT INTO log (trial, bytes, "full") VALUES ($1, $2, $3)
		ON CONFLICT (trial) DO UPDATE SET bytes = excluded.bytes, "full" = excluded."full"`, string(id), log.Bytes, log.Full)
	return nil
}

// spans returns the kept spans of the lease that touch the span, in order.
func (s *session) spans(id trial.ID, epoch trial.LeaseEpoch, touching record.Span) ([]record.Span, error) {
	// Spans do not overlap, so none before the first that ends before reaches
	// it: text that is appended costs one row, however long the log is.
	rows, err := s.connection.Query(s.ctx, `SELECT start, stop FROM log_chunk WHERE trial = $1 AND lease_epoch = $2 AND start < $3
		AND start >= coalesce((SELECT max(start) FROM log_chunk WHERE trial = $1 AND lease_epoch = $2 AND start <= $4), 0)
		ORDER BY start`, string(id), int64(epoch), touching.Stop, touching.Start)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (span record.Span, err error) {
		err = row.Scan(&span.Start, &span.Stop)
		return span, err
	})
	return slices.DeleteFunc(list, func(span record.Span) bool { return span.Stop <= touching.Start }), err
}

// Log returns the trial's log, the leases in order.
func (s *Store) Log(ctx context.Context, id trial.ID) (string, error) {
	var full bool
	chunks, err := collect(ctx, s, func(row pgx.CollectableRow) (string, error) {
		var text string
		return text, row.Scan(&text, &full)
	}, `SELECT text, log."full" FROM log_chunk JOIN log USING (trial) WHERE trial = $1 ORDER BY lease_epoch, start`, string(id))
	if err := s.orMissing(ctx, len(chunks), err, trialExists(id)); err != nil {
		return "", err
	}
	if full {
		chunks = append(chunks, record.LogNotice(record.LogLimit))
	}
	return strings.Join(chunks, ""), nil
}
