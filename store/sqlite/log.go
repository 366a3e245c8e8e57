package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/trial"
)

// AppendLog adds text at the offset of a lease's log; see study.LogStore.
func (s *Store) AppendLog(ctx context.Context, id trial.ID, epoch trial.LeaseEpoch, offset int64, text string) error {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if text == "" {
		return nil
	}
	return s.writer.do(ctx, func(session *session) error {
		kept, err := session.number("SELECT COALESCE(SUM(bytes), 0) FROM log_chunk WHERE trial_id = ?", string(id))
		if err != nil {
			return err
		}
		end, err := session.number("SELECT COALESCE(MAX(start + bytes), 0) FROM log_chunk WHERE trial_id = ? AND lease_epoch = ?", string(id), int64(epoch))
		if err != nil {
			return err
		}
		start := offset
		if skip := end - offset; skip > 0 { // the chunk, or its beginning, came before
			if skip >= int64(len(text)) {
				return nil
			}
			text, start = text[skip:], end
		}
		if kept >= s.logBytes {
			return nil
		}
		if room := s.logBytes - kept; int64(len(text)) > room {
			text = text[:room] + fmt.Sprintf("\n[the log ends here: only the first %d bytes of it are kept]\n", s.logBytes)
		}
		err = session.exec("INSERT INTO log_chunk (trial_id, lease_epoch, start, bytes, text) VALUES (?, ?, ?, ?, ?)",
			string(id), int64(epoch), start, len(text), strings.ToValidUTF8(text, "\uFFFD"))
		if orphaned(err) {
			return problem.New(problem.NotFound, "there is no trial %q", id)
		}
		return err
	})
}

// Log returns the trial's log, the leases in order.
func (s *Store) Log(ctx context.Context, id trial.ID) (string, error) {
	if _, err := s.Trial(ctx, id); err != nil {
		return "", err
	}
	chunks, err := collect(ctx, s, func(row *sql.Rows) (string, error) {
		var text string
		return text, row.Scan(&text)
	}, "SELECT text FROM log_chunk WHERE trial_id = ? ORDER BY lease_epoch, start", string(id))
	return strings.Join(chunks, ""), err
}

// number reads one integer inside the write transaction.
func (s *session) number(query string, args ...any) (int64, error) {
	statement, err := s.statement(query)
	if err != nil {
		return 0, err
	}
	var number int64
	return number, statement.QueryRow(args...).Scan(&number)
}
