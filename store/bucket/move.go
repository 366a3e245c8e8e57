package bucket

import (
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"time"

	"github.com/tandem-tune/tandem/store/artifact"
)

// Source is another place that has artifacts.
type Source interface {
	Open(sha256 string) (io.ReadCloser, int64, error)
	All() iter.Seq2[artifact.Entry, error]
	DeleteBefore(sha256 string, cutoff time.Time) (bool, error)
}

// Take moves all artifacts of the other place to the bucket and returns how many those
// were. Each is deleted there when it is here, so it may be called again after it failed.
func (s *Store) Take(ctx context.Context, from Source) (moved int, err error) {
	for entry, err := range from.All() {
		if err == nil {
			err = s.take(ctx, from, entry.SHA256)
		}
		if err != nil {
			return moved, err
		}
		moved++
	}
	if rows, ok := from.(interface{ Tidy(context.Context) error }); ok {
		return moved, rows.Tidy(ctx)
	}
	return moved, nil
}

func (s *Store) take(ctx context.Context, from Source, sha256 string) error {
	bytes, _, err := from.Open(sha256)
	if err != nil {
		return err
	}
	_, err = s.Put(ctx, sha256, bytes, math.MaxInt64-1)
	if err := errors.Join(err, bytes.Close()); err != nil {
		return err
	}
	_, err = from.DeleteBefore(sha256, time.Now().Add(time.Hour))
	return err
}
