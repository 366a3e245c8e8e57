package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/artifact"
)

// Put stores what it reads and returns how many bytes that are. When it returns, the
// bucket has the artifact. The error is invalid if the bytes have another hash and
// exhausted if there are more than limit; then nothing is kept.
//
// Bytes that are there already are read to their end and stored all the same: nobody
// learns from an upload what others have. The artifact's age starts anew.
func (s *Store) Put(ctx context.Context, sha256 string, r io.Reader, limit int64) (_ int64, err error) {
	if err := artifact.CheckName(sha256); err != nil {
		return 0, err
	}
	file, err := os.CreateTemp(s.folder, "put-*") // created with mode 0600
	if err != nil {
		return 0, fmt.Errorf("receive an artifact: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	bytes, err := artifact.Receive(ctx, file, r, sha256, limit)
	if err != nil {
		return 0, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return 0, fmt.Errorf("read an upload: %w", err)
	}
	done, err := s.begin(ctx, sha256)
	if err != nil {
		return 0, err
	}
	defer done()
	if _, err := s.client.PutObject(ctx, s.bucket, s.key(sha256), file, bytes, minio.PutObjectOptions{ContentType: "application/octet-stream"}); err != nil {
		return 0, s.failed("write to", err)
	}
	return bytes, nil
}

// begin says that the artifact is being put, once nobody deletes it.
func (s *Store) begin(ctx context.Context, sha256 string) (done func(), err error) {
	for {
		s.mutex.Lock()
		ends, deleted := s.deleting[sha256]
		if !deleted {
			s.putting[sha256]++
		}
		s.mutex.Unlock()
		if !deleted {
			return func() { s.put(sha256) }, nil
		}
		select {
		case <-ends:
		case <-ctx.Done():
			return nil, problem.New(problem.Unavailable, "the artifact was not stored: %w", ctx.Err())
		}
	}
}

func (s *Store) put(sha256 string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.putting[sha256]--; s.putting[sha256] == 0 {
		delete(s.putting, sha256)
	}
}

// Open returns the artifact's bytes and their number; the caller closes it. The error is
// not_found if there is no such artifact.
func (s *Store) Open(sha256 string) (io.ReadCloser, int64, error) {
	if err := artifact.CheckName(sha256); err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	waits := time.AfterFunc(patience, cancel)
	object, err := s.client.GetObject(ctx, s.bucket, s.key(sha256), minio.GetObjectOptions{})
	if err == nil {
		var info minio.ObjectInfo
		if info, err = object.Stat(); err == nil {
			return &content{store: s, object: object, waits: waits, cancel: cancel}, info.Size, nil
		}
		_ = object.Close() // why there is none is said already
	}
	cancel()
	if missing(err) {
		return nil, 0, artifact.Missing(sha256)
	}
	return nil, 0, s.failed("read from", err)
}

func missing(err error) bool { return minio.ToErrorResponse(err).Code == minio.NoSuchKey }

// content is an object that is being read. A bucket that is silent for too long ends it.
type content struct {
	store  *Store
	object *minio.Object
	waits  *time.Timer
	cancel context.CancelFunc
}

// Read waits for bytes, but not for ever.
func (c *content) Read(into []byte) (int, error) {
	c.waits.Reset(patience)
	n, err := c.object.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		err = c.store.failed("read from", err)
	}
	return n, err
}

// Close lets the connection go.
func (c *content) Close() error {
	c.waits.Stop()
	defer c.cancel()
	return c.object.Close()
}

// All lists the artifacts by name. One that is put or deleted meanwhile may or may not be
// in it. What else lies there is not ours, and is left alone.
func (s *Store) All() iter.Seq2[artifact.Entry, error] {
	return func(yield func(artifact.Entry, error) bool) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for one := range s.client.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.folderKey(), Recursive: true}) {
			if one.Err != nil {
				yield(artifact.Entry{}, s.failed("list", one.Err))
				return
			}
			name := one.Key[strings.LastIndex(one.Key, "/")+1:]
			if artifact.CheckName(name) != nil || one.Key != s.key(name) {
				continue
			}
			if !yield(artifact.Entry{SHA256: name, Bytes: one.Size, Modified: one.LastModified.Add(skew)}, nil) {
				return
			}
		}
	}
}

// DeleteBefore removes the artifact unless it was put at the time or later, and reports
// whether it did. Readers that have it open may fail. The bucket's clock may differ, so it
// keeps artifacts for a quarter of an hour longer.
func (s *Store) DeleteBefore(sha256 string, cutoff time.Time) (bool, error) {
	if err := artifact.CheckName(sha256); err != nil {
		return false, err
	}
	done := s.claim(sha256)
	if done == nil {
		return false, nil
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	info, err := s.client.StatObject(ctx, s.bucket, s.key(sha256), minio.StatObjectOptions{})
	switch {
	case missing(err):
		return false, nil
	case err != nil:
		return false, s.failed("read from", err)
	case !info.LastModified.Add(skew).Before(cutoff):
		return false, nil
	}
	if err := s.client.RemoveObject(ctx, s.bucket, s.key(sha256), minio.RemoveObjectOptions{}); err != nil {
		return false, s.failed("delete from", err)
	}
	return true, nil
}

// claim says that the artifact is being deleted; nil if it is being put, or deleted.
func (s *Store) claim(sha256 string) (done func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, deleted := s.deleting[sha256]; deleted || s.putting[sha256] > 0 {
		return nil
	}
	ends := make(chan struct{})
	s.deleting[sha256] = ends
	return func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		delete(s.deleting, sha256)
		close(ends)
	}
}
