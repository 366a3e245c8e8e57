package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Receive copies an artifact's bytes, wherever they are kept, and returns how
// many it wrote. The error is invalid if they have another hash and exhausted
// if there are more than limit.
func Receive(ctx context.Context, to io.Writer, from io.Reader, name string, limit int64) (int64, error) {
	hash := sha256.New()
	// One byte more than the limit is enough to know that it is exceeded.
	bytes, err := io.Copy(io.MultiWriter(to, hash), io.LimitReader(reader{ctx, from}, limit+1))
	switch {
	case err != nil:
		return bytes, storage("receive an artifact", err)
	case bytes > limit:
		return bytes, problem.New(problem.Exhausted, "the artifact is larger than the %d bytes allowed: make the checkpoint smaller, or raise the limit", limit)
	case hex.EncodeToString(hash.Sum(nil)) != name:
		return bytes, problem.New(problem.Invalid, "the %d bytes received have the SHA-256 %x, not %s: send the file again", bytes, hash.Sum(nil), name)
	}
	return bytes, nil
}

// CheckName refuses what is no SHA-256, and so no artifact's name.
func CheckName(sha256 string) error {
	if validName(sha256) {
		return nil
	}
	return problem.WithFields("this cannot be an artifact", []problem.Field{
		{Path: "sha256", Message: "must be a SHA-256 as 64 lower-case hexadecimal digits", Value: sha256},
	})
}

// Missing says that there is no artifact with the name.
func Missing(sha256 string) error {
	return problem.New(problem.NotFound, "there is no artifact %s", sha256)
}

// reader ends when its context does.
type reader struct {
	ctx  context.Context
	from io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, problem.New(problem.Unavailable, "the artifact was not received to its end: %w", err)
	}
	return r.from.Read(p)
}
