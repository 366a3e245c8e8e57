package document

import (
	"bytes"
	"compress/gzip"
	"io"

	"github.com/tandem-tune/tandem/internal/problem"
)

// The bounds of a packed skeleton, and of what it is unpacked.
const (
	MaxPacked   = 128 << 10
	maxUnpacked = 32 << 20
)

// Pack is the [Skeleton], compressed to at most [MaxPacked] bytes.
func Pack(model []byte) ([]byte, error) {
	skeleton, err := Skeleton(model)
	if err != nil {
		return nil, err
	}
	if len(skeleton) > maxUnpacked {
		return nil, problem.New(problem.Exhausted, "without weights the model has %d bytes, and at most %d are sent", len(skeleton), maxUnpacked)
	}
	var packed bytes.Buffer
	compressor, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := compressor.Write(skeleton); err != nil {
		return nil, err
	}
	if err := compressor.Close(); err != nil {
		return nil, err
	}
	if packed.Len() > MaxPacked {
		return nil, problem.New(problem.Exhausted, "without weights the model has %d bytes, compressed %d, and at most %d are sent", len(skeleton), packed.Len(), MaxPacked)
	}
	return packed.Bytes(), nil
}

// Unpack is what [Pack] packed, filled with at most so many bytes of weights.
func Unpack(packed []byte, most int64) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, problem.New(problem.Invalid, "the skeleton cannot be unpacked: %w", err)
	}
	skeleton, err := io.ReadAll(io.LimitReader(reader, maxUnpacked+1))
	if err != nil || len(skeleton) > maxUnpacked {
		return nil, problem.New(problem.Invalid, "the skeleton cannot be unpacked, or has more than %d bytes: %w", maxUnpacked, err)
	}
	return Fill(skeleton, most)
}
