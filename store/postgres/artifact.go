package postgres

import (
	"context"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/artifact"
)

// chunkBytes is how much of an artifact one row holds.
const chunkBytes = 1 << 20

// Artifacts keeps the bytes of checkpoints in the database, in pieces, so that
// every server has them. Bytes belong to an upload while they come; the row
// that makes an artifact of it is written under the owner's term, so a server
// that was replaced publishes nothing. It is safe for concurrent use.
type Artifacts struct {
	store *Store
	// beginning makes an upload known here as soon as it is in the database.
	beginning sync.Mutex
	uploads   map[int64]bool
}

// Artifacts returns the artifacts of the term's database.
func (s *Store) Artifacts() *Artifacts {
	return &Artifacts{store: s, uploads: make(map[int64]bool)}
}

// Put stores what it reads and returns how many bytes that are. When it
// returns, the artifact survives a power loss. The error is invalid if the
// bytes have another hash and exhausted if there are more than limit; then
// nothing is kept.
//
// Bytes that are there already are read to their end all the same: nobody learns
// from an upload what others have. The artifact's age starts anew.
func (a *Artifacts) Put(ctx context.Context, sha256 string, r io.Reader, limit int64) (int64, error) {
	if err := artifact.CheckName(sha256); err != nil {
		return 0, err
	}
	upload, err := a.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer a.end(upload)
	pieces := &chunks{ctx: ctx, artifacts: a, upload: upload}
	bytes, err := artifact.Receive(ctx, pieces, r, sha256, limit)
	if err == nil {
		err = pieces.flush()
	}
	if err == nil {
		err = a.publish(ctx, sha256, upload, bytes)
	}
	if err != nil {
		return 0, err
	}
	return bytes, nil
}

// begin makes an upload that nothing refers to.
func (a *Artifacts) begin(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	a.beginning.Lock()
	defer a.beginning.Unlock()
	var upload int64
	err := a.store.database.reads.QueryRow(ctx, "INSERT INTO upload (term) VALUES ($1) RETURNING id", a.store.term.number).Scan(&upload)
	if err != nil {
		return 0, a.store.health.explain(err)
	}
	a.uploads[upload] = true
	return upload, nil
}

// end forgets an upload that was published or given up; what was given up is
// removed by Tidy.
func (a *Artifacts) end(upload int64) {
	a.beginning.Lock()
	defer a.beginning.Unlock()
	delete(a.uploads, upload)
}

// publish makes an artifact of the upload, unless there is an equal one.
func (a *Artifacts) publish(ctx context.Context, sha256 string, upload, bytes int64) error {
	return a.store.writer.Do(ctx, func(run *session) error {
		run.do(fine, `INSERT INTO artifact (sha256, bytes, put, upload) VALUES ($1, $2, clock_timestamp(), $3)
			ON CONFLICT (sha256) DO UPDATE SET put = excluded.put`, sha256, bytes, upload)
		return nil
	})
}

// chunks cuts what is written to it into rows.
type chunks struct {
	ctx       context.Context
	artifacts *Artifacts
	upload    int64
	number    int64
	pending   []byte
}

// Write keeps the bytes, and stores those that make a whole row.
func (c *chunks) Write(data []byte) (int, error) {
	for rest := data; len(rest) > 0; {
		room := min(chunkBytes-len(c.pending), len(rest))
		c.pending, rest = append(c.pending, rest[:room]...), rest[room:]
		if len(c.pending) == chunkBytes {
			if err := c.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(data), nil
}

// flush stores what is left.
func (c *chunks) flush() error {
	if len(c.pending) == 0 {
		return nil
	}
	if err := c.artifacts.store.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.ctx, answerTime)
	defer cancel()
	_, err := c.artifacts.store.database.reads.Exec(ctx, "INSERT INTO upload_chunk (upload, number, data) VALUES ($1, $2, $3)", c.upload, c.number, c.pending)
	if orphan(err) {
		return problem.New(problem.Unavailable, "another server has taken the database over while this was uploaded: send it again")
	}
	c.number, c.pending = c.number+1, c.pending[:0]
	return c.artifacts.store.health.explain(err)
}

// Open returns the artifact's bytes and their number; the caller closes it.
// The error is not_found if there is no such artifact.
func (a *Artifacts) Open(sha256 string) (io.ReadCloser, int64, error) {
	if err := artifact.CheckName(sha256); err != nil {
		return nil, 0, err
	}
	type place struct{ upload, bytes int64 }
	found, err := collect(context.Background(), a.store, func(row pgx.CollectableRow) (at place, err error) {
		return at, row.Scan(&at.upload, &at.bytes)
	}, "SELECT upload, bytes FROM artifact WHERE sha256 = $1", sha256)
	at, err := only(found, err, artifact.Missing(sha256))
	if err != nil {
		return nil, 0, err
	}
	return io.NopCloser(&content{store: a.store, sha256: sha256, upload: at.upload, left: at.bytes}), at.bytes, nil
}

// content reads an upload row by row.
type content struct {
	store   *Store
	sha256  string
	upload  int64
	number  int64
	left    int64 // in rows that were not fetched
	fetched []byte
}

// Read returns bytes of the row at hand, or fetches the next one.
func (c *content) Read(into []byte) (int, error) {
	if len(c.fetched) == 0 && c.left > 0 {
		found, err := collect(context.Background(), c.store, func(row pgx.CollectableRow) (data []byte, err error) {
			return data, row.Scan(&data)
		}, "SELECT data FROM upload_chunk WHERE upload = $1 AND number = $2", c.upload, c.number)
		if c.fetched, err = only(found, err, artifact.Missing(c.sha256)); err != nil {
			return 0, err
		}
		c.left, c.number = c.left-int64(len(c.fetched)), c.number+1
	}
	if len(c.fetched) == 0 {
		return 0, io.EOF
	}
	count := copy(into, c.fetched)
	c.fetched = c.fetched[count:]
	return count, nil
}

// All lists the artifacts by name, as they were when it began.
func (a *Artifacts) All() iter.Seq2[artifact.Entry, error] {
	return func(yield func(artifact.Entry, error) bool) {
		list, err := collect(context.Background(), a.store, func(row pgx.CollectableRow) (one artifact.Entry, err error) {
			return one, row.Scan(&one.SHA256, &one.Bytes, &one.Modified)
		}, "SELECT sha256, bytes, put FROM artifact ORDER BY sha256")
		if err != nil {
			yield(artifact.Entry{}, err)
			return
		}
		for _, one := range list {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// DeleteBefore removes the artifact unless it was put at the time or later,
// and reports whether it did. Its bytes go with the next Tidy. The time is
// taken as an age, and compared by the database's clock.
func (a *Artifacts) DeleteBefore(sha256 string, cutoff time.Time) (bool, error) {
	if err := artifact.CheckName(sha256); err != nil {
		return false, err
	}
	var deleted bool
	err := a.store.writer.Do(context.Background(), func(run *session) error {
		run.do(func(results pgx.BatchResults) error {
			tag, err := results.Exec()
			deleted = tag.RowsAffected() > 0
			return err
		}, "DELETE FROM artifact WHERE sha256 = $1 AND put < clock_timestamp() - $2::interval", sha256, time.Since(cutoff))
		return nil
	})
	return deleted && err == nil, err
}

// Tidy removes the bytes that no artifact has and no upload under way needs, a
// little at a time.
func (a *Artifacts) Tidy(ctx context.Context) error {
	useless, err := a.useless(ctx)
	if err != nil {
		return err
	}
	for _, upload := range useless {
		for _, query := range []string{
			"DELETE FROM upload_chunk WHERE upload = $1 AND number IN (SELECT number FROM upload_chunk WHERE upload = $1 LIMIT 64)",
			"DELETE FROM upload WHERE id = $1",
		} {
			for more := true; more; {
				if more, err = a.remove(ctx, query, upload); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// useless are the uploads that will never be an artifact, or were one.
func (a *Artifacts) useless(ctx context.Context) ([]int64, error) {
	a.beginning.Lock()
	defer a.beginning.Unlock()
	list, err := collect(ctx, a.store, pgx.RowTo[int64], `SELECT id FROM upload
		WHERE term <= $1 AND NOT EXISTS (SELECT 1 FROM artifact WHERE artifact.upload = upload.id) ORDER BY id`, a.store.term.number)
	var left []int64
	for _, upload := range list {
		if !a.uploads[upload] {
			left = append(left, upload)
		}
	}
	return left, err
}

// remove runs a statement that deletes something of the upload, and reports
// whether it did.
func (a *Artifacts) remove(ctx context.Context, query string, upload int64) (bool, error) {
	if err := a.store.readable(); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	tag, err := a.store.database.reads.Exec(ctx, query, upload)
	return tag.RowsAffected() > 0, a.store.health.explain(err)
}
