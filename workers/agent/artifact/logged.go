package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/retry"
)

// Log reads a file that the script logs and keeps it with the trial under the name. It
// returns when the server has it, for good.
func (c *Checkpoint) Log(ctx context.Context, name string, from io.Reader) error {
	if len(c.Lease.Recipients) > 0 { // no byte of it leaves this machine
		return problem.New(problem.Invalid, "study %s is encrypted and keeps no artifacts, which the server could read: save the file with the checkpoint", c.Lease.Study)
	}
	content, err := io.ReadAll(io.LimitReader(from, trial.LargestNamed(name)+1))
	if tooLarge := new(http.MaxBytesError); err != nil && !errors.As(err, &tooLarge) {
		return problem.New(problem.Invalid, "read the artifact: %w", err)
	}
	size := int64(len(content))
	if err != nil {
		size = trial.LargestNamed(name) + 1
	}
	if err := trial.CheckArtifact(name, size); err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	return c.deliver(ctx, func(ctx context.Context) error { return c.upload(ctx, hash, size, open) }, func(ctx context.Context) error {
		return c.Server.LogArtifact(ctx, c.Lease.Trial, protocol.ArtifactLog{LeaseEpoch: c.Lease.LeaseEpoch, Name: name, Artifact: hash, Bytes: size})
	})
}

// LogFolder keeps the files that a command left in a folder, and notes those that it cannot.
func (c *Checkpoint) LogFolder(ctx context.Context, folder string, note func(format string, args ...any)) {
	root, err := os.OpenRoot(folder) // a link leads to nothing outside
	if err != nil {
		note("artifacts were not kept: %v", err)
		return
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		note("not all artifacts were kept: %v", err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			note("the artifact %s was not kept: it is no plain file", entry.Name())
			continue
		}
		file, err := root.Open(entry.Name())
		if err == nil {
			err = errors.Join(c.Log(ctx, entry.Name(), file), file.Close())
		}
		if err != nil {
			note("the artifact %s was not kept: %v", entry.Name(), err)
		}
		if problem.Is(err, problem.LeaseLost) || ctx.Err() != nil {
			return
		}
	}
}

// deliver sends an artifact and commits it. A server that was started between the two, or
// took over from the one that has the bytes, answers conflict: it wants them sent again.
func (c *Checkpoint) deliver(ctx context.Context, send, commit func(context.Context) error) error {
	for sent := 1; ; sent++ {
		if err := retry.Do(ctx, transferPatience, c.Stalled, send); err != nil {
			return err
		}
		err := retry.Do(ctx, retry.CallPatience, c.Stalled, commit)
		if sent == sendings || !problem.Is(err, problem.Conflict) {
			return err
		}
	}
}
