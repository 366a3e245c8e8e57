package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
	"github.com/tandem-tune/tandem/trial"
)

// AppendLog adds text at the offset of the lease's log, up to
// record.LogLimit bytes for the trial; see journal.LogStore.
func (s *Store) AppendLog(ctx context.Context, id trial.ID, epoch trial.LeaseEpoch, offset int64, text string) error {
	chunk := record.Chunk{Offset: offset, Text: text}
	if err := chunk.Check(); err != nil {
		return err
	}
	return s.writer.Do(ctx, func(session *session) error { return session.appendLog(id, epoch, chunk) })
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
		err := s.exec("INSERT INTO log_chunk (trial, lease_epoch, start, stop, text, checksum) VALUES (?, ?, ?, ?, ?, ?)",
			dbfile.Row("log_chunk", string(id), int64(epoch), piece.Start, piece.Stop, piece.Text)...)
		if err != nil {
			return err
		}
	}
	full := int64(0)
	if log.Full {
		full = 1
	}
	return s.exec(`INSERT INTO log (trial, bytes, "full", checksum) VALUES (?, ?, ?, ?)
		ON CONFLICT (trial) DO UPDATE SET bytes = excluded.bytes, "full" = excluded."full", checksum = excluded.checksum`,
		dbfile.Row("log", string(id), log.Bytes, full)...)
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
	return look(ctx, s, func(v view) (string, error) {
		chunks, err := whole(v, scanChunk, list{kind: "log_chunk", owner: string(id)},
			`SELECT trial, lease_epoch, start, stop, text, checksum FROM log_chunk WHERE trial = ? ORDER BY lease_epoch, start`, string(id))
		if err := v.orNoTrial(len(chunks), err, id); err != nil {
			return "", err
		}
		logs, err := collect(v, scanLog, `SELECT trial, bytes, "full", checksum FROM log WHERE trial = ?`, string(id))
		if err != nil {
			return "", err
		}
		var log record.Log // an empty one has no row
		if len(logs) > 0 {
			log = logs[0]
		}
		text := strings.Join(chunks, "")
		if log.Bytes != int64(len(text)) {
			return "", dbfile.Damage{Table: "log", Row: fmt.Sprintf("row %q", id), Finding: fmt.Sprintf("it counts %d bytes of text, and %d are there", log.Bytes, len(text))}
		}
		if log.Full {
			text += record.LogNotice(record.LogLimit)
		}
		return text, nil
	})
}

func scanChunk(rows *sql.Rows) (text string, sum int64, err error) {
	var of string
	var lease, start, stop int64
	if err = dbfile.Columns("log_chunk", rows, &of, &lease, &start, &stop, &text, &sum); err != nil {
		return text, sum, err
	}
	computed := dbfile.Checksum("log_chunk", of, lease, start, stop, text)
	return text, sum, dbfile.Prove("log_chunk", sum, computed, "from byte ", start, " of lease ", lease, " of trial ", of)
}

func scanLog(rows *sql.Rows) (log record.Log, err error) {
	var of string
	var full, sum int64
	if err = dbfile.Columns("log", rows, &of, &log.Bytes, &full, &sum); err != nil {
		return log, err
	}
	log.Full = full != 0
	return log, dbfile.Prove("log", sum, dbfile.Checksum("log", of, log.Bytes, full), of)
}
