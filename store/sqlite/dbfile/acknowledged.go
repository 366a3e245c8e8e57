package dbfile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Acknowledged is a file beside the database with the number of the last commit
// that callers were told of. A database that ends before it has lost something,
// whatever lost it: SQLite takes a write-ahead log up to the first page that is
// damaged, and an empty file for a new database, and says nothing.
//
// It is written without waiting for the disk, after the disk has the commit. So
// after a power loss it may be behind the database, and never before it.
type Acknowledged struct{ file *os.File }

func acknowledgedPath(path string) string { return path + ".acknowledged" }

func OpenAcknowledged(path string) (Acknowledged, error) {
	file, err := os.OpenFile(acknowledgedPath(path), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return Acknowledged{}, problem.New(problem.Unavailable, "open the file with the last acknowledged commit: %w", err)
	}
	return Acknowledged{file}, nil
}

// format has a fixed width, so that each number replaces the whole of another.
const acknowledgedFormat = "%020d %08x\n"

func (a Acknowledged) Write(commit int64) {
	text := fmt.Sprintf(acknowledgedFormat, commit, acknowledgedSum(commit))
	// The commit is durable already. If this fails, less is noticed at the next
	// start, and nothing is lost.
	_, _ = a.file.WriteAt([]byte(text), 0)
}

func (a Acknowledged) Close() error { return a.file.Close() }

func acknowledgedSum(commit int64) uint32 {
	return crc32.Checksum(fmt.Append(nil, commit), castagnoli)
}

// readAcknowledged returns the last acknowledged commit; 0 if that is not known.
func readAcknowledged(path string) (int64, error) {
	data, err := os.ReadFile(acknowledgedPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, problem.New(problem.Unavailable, "read the last acknowledged commit: %w", err)
	}
	var commit int64
	var sum uint32
	if _, err := fmt.Sscanf(string(data), acknowledgedFormat, &commit, &sum); err != nil || sum != acknowledgedSum(commit) {
		return 0, nil //nolint:nilerr // it was being written when the power failed
	}
	return commit, nil
}

// checkAcknowledged refuses a database that ends before what was acknowledged.
func checkAcknowledged(ctx context.Context, database *sql.DB, path string) error {
	last, err := readAcknowledged(path)
	if err != nil || last == 0 {
		return err
	}
	var commits, counted int64
	err = database.QueryRowContext(ctx, "SELECT count(*) FROM pragma_table_info('server') WHERE name = 'commits'").Scan(&counted)
	if err == nil && counted > 0 { // earlier schemas, and empty files, count none
		err = database.QueryRowContext(ctx, "SELECT commits FROM server").Scan(&commits)
	}
	if err != nil {
		return Unreadable(path, err)
	}
	if commits >= last {
		return nil
	}
	return problem.New(problem.Unavailable,
		`the database %s ends with commit %d, but commit %d was acknowledged: its disk lost what it had confirmed, or the file was damaged, or it is an older copy.
What to do: look for what was there before (%[1]s-wal belongs to it), or make a data folder from a backup with "tandem restore".
If you put an older copy there on purpose, remove %[4]s and start again`,
		path, commits, last, acknowledgedPath(path))
}
