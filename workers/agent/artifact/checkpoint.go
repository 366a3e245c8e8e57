package artifact

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/retry"
)

// transferPatience is how long an attempt to transfer an artifact may take.
const transferPatience = time.Hour

// Server is what checkpoints need of the study server.
type Server interface {
	CommitCheckpoint(ctx context.Context, id trial.ID, commit protocol.CheckpointCommit) error
	LogArtifact(ctx context.Context, id trial.ID, log protocol.ArtifactLog) error
	// PutArtifact uploads size bytes under their SHA-256; open may be called
	// once for each attempt.
	PutArtifact(ctx context.Context, sha256 string, size int64, open func() (io.ReadCloser, error)) error
	Artifact(ctx context.Context, sha256 string) (io.ReadCloser, error)
}

// Checkpoint is the checkpoint folder of one run.
type Checkpoint struct {
	Server Server
	Cache  *Cache
	Limits Limits
	Lease  protocol.Lease
	Folder string
	// Keys encrypt it, if the lease names recipients; Memory is the worker's.
	Keys   *sealed.Keys
	Memory *Memory
	// Stalled is called when the server did not answer an attempt, Reached when it has taken
	// or refused one, Refused when it refused what is not waited for.
	Stalled, Refused func(error)
	Reached          func()

	mutex     sync.Mutex // held while one is on its way, which can take long
	committed string     // fingerprint of what the server has
	refused   error      // of what was not waited for; Keep returns it
}

// Changed waits for what is on its way, and reports whether the folder has something that
// the server does not have.
func (c *Checkpoint) Changed() (bool, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	content, err := fingerprint(c.Folder)
	return content != "" && content != c.committed, err
}

// Keep packs the folder, which copies it, and publishes it as the state after the epoch. It
// returns when the server has it, for good; with behind, when it is packed. Then the next
// Keep waits for the server, and fails if that refused it.
func (c *Checkpoint) Keep(ctx context.Context, epoch int, behind bool) (hash string, bytes int64, err error) {
	c.mutex.Lock()
	packed, content, err := c.pack(epoch)
	if err != nil {
		c.mutex.Unlock()
		return "", 0, err
	}
	if !behind {
		defer c.mutex.Unlock()
		return packed.SHA256, packed.Bytes, c.publish(ctx, packed, content, epoch)
	}
	go func() {
		defer c.mutex.Unlock()
		if err := c.publish(ctx, packed, content, epoch); err != nil && ctx.Err() == nil {
			c.refused = fmt.Errorf("the checkpoint of epoch %d was not kept: %w", epoch, err)
			c.Refused(c.refused)
		}
	}()
	return packed.SHA256, packed.Bytes, nil
}

// sendings is how often an artifact is sent for one checkpoint.
const sendings = 5

// publish uploads the artifact, commits it as the state after the epoch, and lets go of it.
func (c *Checkpoint) publish(ctx context.Context, packed *File, content string, epoch int) error {
	defer c.Cache.release(packed)
	open := func() (io.ReadCloser, error) { return os.Open(packed.path) }
	err := c.deliver(ctx, func(ctx context.Context) error { return c.upload(ctx, packed.SHA256, packed.Bytes, open) }, func(ctx context.Context) error {
		return c.Server.CommitCheckpoint(ctx, c.Lease.Trial, protocol.CheckpointCommit{
			LeaseEpoch: c.Lease.LeaseEpoch, Epoch: epoch, Artifact: packed.SHA256, Bytes: packed.Bytes,
		})
	})
	if ctx.Err() == nil { // else the run is at its end, whoever answered
		c.Reached()
	}
	if err == nil {
		c.committed = content
		c.Memory.note(c.Lease, epoch)
	}
	return err
}

// pack makes an artifact and a fingerprint of the folder as it is after the epoch. A script
// may still be writing to it: then it is not a checkpoint of anything.
func (c *Checkpoint) pack(epoch int) (packed *File, content string, err error) {
	if err, c.refused = c.refused, nil; err != nil {
		return nil, "", err
	}
	if content, err = fingerprint(c.Folder); err != nil {
		return nil, "", err
	}
	if content == "" {
		return nil, "", problem.New(problem.Invalid, "the checkpoint folder %s is empty: write the state into it first", c.Folder)
	}
	packed, err = c.Cache.add(func(out io.Writer) error { return c.box().Pack(c.Folder, out, c.Limits, c.label(epoch)) }, tarLimit(c.Limits))
	if err != nil {
		return nil, "", err
	}
	if after, err := fingerprint(c.Folder); err != nil || after != content {
		c.Cache.release(packed)
		return nil, "", problem.New(problem.Conflict, "the checkpoint changed while it was packed: write beside it, and rename into it when the files are complete")
	}
	return packed, content, nil
}

// tarLimit is the size of the largest archive within the limits: headers and
// padding come on top of the files, and what encryption adds.
func tarLimit(l Limits) int64 { return l.Bytes + int64(l.Files)*4096 + 1<<20 + l.Bytes>>11 }

func (c *Checkpoint) upload(ctx context.Context, hash string, size int64, open func() (io.ReadCloser, error)) error {
	err := c.Server.PutArtifact(ctx, hash, size, open)
	if problem.Is(err, problem.Exhausted) {
		return problem.New(problem.Invalid, "the server does not take the file of %d MiB: %w: keep less in it", size>>20, err) // nor will it later
	}
	return err
}

// Restore puts the lease's checkpoint into the checkpoint folder.
func (c *Checkpoint) Restore(ctx context.Context) error {
	wanted := c.Lease.Checkpoint
	if err := c.Memory.check(c.Lease); err != nil || wanted == nil {
		return err
	}
	found := c.Cache.take(wanted.Artifact)
	if found == nil {
		var err error
		if found, err = c.download(ctx, wanted.Artifact); problem.Is(err, problem.NotFound) {
			err = Unusable{err}
		}
		if err != nil {
			return fmt.Errorf("the checkpoint of epoch %d could not be restored: %w", wanted.Epoch, err)
		}
	}
	defer c.Cache.release(found)
	file, err := os.Open(found.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := c.box().Open(file, c.Folder, c.Limits, LabelOf(c.Lease.StudyID, c.Lease.Trial, *wanted)); err != nil {
		if spoilt(err) {
			err = Unusable{err}
			c.Memory.forget(c.Lease.Trial)
		}
		return fmt.Errorf("the checkpoint of epoch %d could not be restored: %w", wanted.Epoch, err)
	}
	c.committed, err = fingerprint(c.Folder)
	return err
}

// Unusable is the fault of a checkpoint that no worker can go on from.
type Unusable struct{ error }

func (u Unusable) Unwrap() error { return u.error }

// spoilt tells an archive that is none, or holds what no checkpoint may, from
// what this worker has no room for.
func spoilt(err error) bool {
	return problem.Is(err, problem.Invalid) || errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, fs.ErrExist)
}

// download gets an artifact from the server, once more if it arrives damaged.
func (c *Checkpoint) download(ctx context.Context, hash string) (*File, error) {
	var err error
	for range 2 {
		var received *File
		err = retry.Do(ctx, transferPatience, c.Stalled, func(ctx context.Context) (err error) {
			received, err = c.Cache.add(func(out io.Writer) error { return c.fetch(ctx, hash, out) }, tarLimit(c.Limits))
			return err
		})
		if err != nil {
			return nil, err
		}
		if received.SHA256 == hash {
			return received, nil
		}
		err = Unusable{problem.New(problem.Invalid, "it arrived damaged: the SHA-256 is %s, not %s", received.SHA256, hash)}
		c.Cache.forget(received)
	}
	return nil, err
}

func (c *Checkpoint) fetch(ctx context.Context, hash string, out io.Writer) error {
	body, err := c.Server.Artifact(ctx, hash)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(out, body)
	return err
}
