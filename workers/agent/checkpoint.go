package agent

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/retry"
)

// transferPatience is how long an attempt to transfer an artifact may take.
const transferPatience = time.Hour

// commit packs the checkpoint folder, uploads it and publishes it as the state
// after the epoch. It returns when the server has it, for good.
func (r *run) commit(epoch int) (*artifact, error) {
	defer r.working()()
	r.committing.Lock()
	defer r.committing.Unlock()
	if p := r.soFar(); epoch < 1 || epoch > p.last {
		return nil, problem.WithFields("the checkpoint is not valid", []problem.Field{{Path: "epoch", Value: epoch,
			Message: fmt.Sprintf("must be 1 to %d, the newest epoch reported: report an epoch before its checkpoint", p.last)}})
	}
	if r.unwanted() {
		return nil, problem.New(problem.Conflict, "the trial was stopped: its checkpoint is not wanted any more")
	}
	packed, content, err := r.pack()
	if err != nil {
		return nil, err
	}
	defer r.agent.cache.release(packed)
	err = r.publish(packed, epoch)
	if problem.Is(err, problem.LeaseLost) {
		return nil, r.judged(err)
	}
	if err != nil {
		return nil, r.answered(err)
	}
	r.reached()
	r.committed = content
	r.logger.Debug("kept a checkpoint", "epoch", epoch, "bytes", packed.bytes)
	return packed, nil
}

// sendings is how often an artifact is sent for one checkpoint.
const sendings = 5

// publish uploads the artifact and commits it as the state after the epoch. A
// server that was started between the two, or took over from the one that has the
// bytes, answers conflict: it wants them sent again.
func (r *run) publish(packed *artifact, epoch int) error {
	for sent := 1; ; sent++ {
		if err := r.upload(packed); err != nil {
			return err
		}
		err := retry.Do(r.ctx, retry.CallPatience, r.stalled, func(ctx context.Context) error {
			return r.agent.options.Server.CommitCheckpoint(ctx, r.lease.Trial, protocol.CheckpointCommit{
				LeaseEpoch: r.lease.LeaseEpoch, Epoch: epoch, Artifact: packed.sha256, Bytes: packed.bytes,
			})
		})
		if sent == sendings || !problem.Is(err, problem.Conflict) {
			return err
		}
	}
}

// unwanted reports whether the server wants the trial stopped.
func (r *run) unwanted() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.directive.Action == protocol.Stop
}

// pack makes an artifact of the checkpoint folder. A script may still be
// writing to it: then it is not a checkpoint of anything.
func (r *run) pack() (packed *artifact, content string, err error) {
	before, err := fingerprint(r.place.Checkpoint)
	if err != nil {
		return nil, "", err
	}
	if before == "" {
		return nil, "", problem.New(problem.Invalid, "the checkpoint folder %s is empty: write the state into it first", r.place.Checkpoint)
	}
	limit := r.limits()
	packed, err = r.agent.cache.add(func(out io.Writer) error { return pack(r.place.Checkpoint, out, limit) }, tarLimit(limit))
	if err != nil {
		return nil, "", err
	}
	if after, err := fingerprint(r.place.Checkpoint); err != nil || after != before {
		r.agent.cache.release(packed)
		return nil, "", problem.New(problem.Conflict, "the checkpoint changed while it was packed: write beside it, and rename into it when the files are complete")
	}
	return packed, before, nil
}

func (r *run) limits() limits {
	return limits{bytes: r.agent.options.MaxCheckpointBytes, files: r.agent.options.MaxCheckpointFiles}
}

// tarLimit is the size of the largest archive within the limits: headers and
// padding come on top of the files.
func tarLimit(l limits) int64 { return l.bytes + int64(l.files)*4096 + 1<<20 }

func (r *run) upload(packed *artifact) error {
	return retry.Do(r.ctx, transferPatience, r.stalled, func(ctx context.Context) error {
		err := r.agent.options.Server.PutArtifact(ctx, packed.sha256, packed.bytes, func() (io.ReadCloser, error) { return os.Open(packed.path) })
		if problem.Is(err, problem.Exhausted) {
			return problem.New(problem.Invalid, "the server does not take the checkpoint: %w", err) // nor will it later
		}
		return err
	})
}

// commitAtEnd publishes what a script that ended well left in its checkpoint
// folder. A script that publishes by itself knows better, and a folder that is
// what the server has already belongs to an earlier epoch.
func (r *run) commitAtEnd(p progress) {
	if r.publishes.Load() || !p.reported || r.unwanted() || r.ctx.Err() != nil {
		return
	}
	content, err := fingerprint(r.place.Checkpoint)
	if err == nil && (content == "" || content == r.committed) {
		return
	}
	if err == nil {
		_, err = r.commit(p.last)
	}
	if err != nil {
		r.log.note("the checkpoint of epoch %d was not kept: %v", p.last, err)
	}
}

// restore puts the lease's checkpoint into the checkpoint folder.
func (r *run) restore(ctx context.Context) error {
	wanted := r.lease.Checkpoint
	if wanted == nil {
		return nil
	}
	found := r.agent.cache.take(wanted.Artifact)
	if found == nil {
		var err error
		if found, err = r.download(ctx, wanted.Artifact); problem.Is(err, problem.NotFound) {
			err = unusable{err}
		}
		if err != nil {
			return fmt.Errorf("the checkpoint of epoch %d could not be restored: %w", wanted.Epoch, err)
		}
	}
	defer r.agent.cache.release(found)
	r.reached()
	file, err := os.Open(found.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unpack(file, r.place.Checkpoint, r.limits()); err != nil {
		if spoilt(err) {
			err = unusable{err}
		}
		return fmt.Errorf("the checkpoint of epoch %d could not be restored: %w", wanted.Epoch, err)
	}
	r.committed, err = fingerprint(r.place.Checkpoint)
	return err
}

// unusable is the fault of a checkpoint that no worker can go on from.
type unusable struct{ error }

func (u unusable) Unwrap() error { return u.error }

// spoilt tells an archive that is none, or holds what no checkpoint may, from
// what this worker has no room for.
func spoilt(err error) bool {
	return problem.Is(err, problem.Invalid) || errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, fs.ErrExist)
}

// download gets an artifact from the server, once more if it arrives damaged.
func (r *run) download(ctx context.Context, hash string) (*artifact, error) {
	var err error
	for range 2 {
		var received *artifact
		err = retry.Do(ctx, transferPatience, r.stalled, func(ctx context.Context) (err error) {
			received, err = r.agent.cache.add(func(out io.Writer) error { return r.fetch(ctx, hash, out) }, tarLimit(r.limits()))
			return err
		})
		if err != nil {
			return nil, err
		}
		if received.sha256 == hash {
			return received, nil
		}
		err = unusable{problem.New(problem.Invalid, "it arrived damaged: the SHA-256 is %s, not %s", received.sha256, hash)}
		r.agent.cache.forget(received)
	}
	return nil, err
}

func (r *run) fetch(ctx context.Context, hash string, out io.Writer) error {
	body, err := r.agent.options.Server.Artifact(ctx, hash)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(out, body)
	return err
}
