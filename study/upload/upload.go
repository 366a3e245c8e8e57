// Package upload knows which artifacts their holders have sent in full, so that nobody
// commits a checkpoint of bytes that are somebody else's.
package upload

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/trial"
)

// Life is how long an upload may wait for its commit. No sweep may remove
// an artifact that was put since.
const Life = 10 * time.Minute

// maxUploads is how many uploads of one holder wait for their commits.
const maxUploads = 4096

// Uploads are the artifacts that holders have sent in full, by holder, the oldest
// first. They are not stored: who commits one that was forgotten sends it again.
type Uploads struct {
	now   func() time.Time
	mutex sync.Mutex
	sent  map[string][]upload
}

type upload struct {
	artifact string
	bytes    int64
	sealed   bool // it is encrypted
	at       time.Time
}

// New returns the list without uploads.
func New(now func() time.Time) *Uploads {
	return &Uploads{now: now, sent: make(map[string][]upload)}
}

// Uploaded notes that the caller has sent all bytes of an artifact, which is stored, and
// whether it is encrypted.
func (u *Uploads) Uploaded(ctx context.Context, sha256 string, bytes int64, sealed bool) {
	holder, now := access.CallerOf(ctx).Holder, u.now()
	u.mutex.Lock()
	defer u.mutex.Unlock()
	list := slices.DeleteFunc(u.sent[holder], func(one upload) bool { return one.artifact == sha256 })
	if len(list) >= maxUploads {
		list = slices.Delete(list, 0, 1)
	}
	u.sent[holder] = append(list, upload{sha256, bytes, sealed, now})
}

// ForgetUploads drops what has waited for too long.
func (u *Uploads) ForgetUploads() {
	before := u.now().Add(-Life)
	u.mutex.Lock()
	defer u.mutex.Unlock()
	for holder, list := range u.sent {
		list = slices.DeleteFunc(list, func(one upload) bool { return one.at.Before(before) })
		if u.sent[holder] = list; len(list) == 0 {
			delete(u.sent, holder)
		}
	}
}

// of is an artifact that the holder has sent since the time.
func (u *Uploads) of(holder, artifact string, since time.Time) (sent upload, found bool) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	for _, one := range u.sent[holder] {
		if one.artifact == artifact && !one.at.Before(since) {
			return one, true
		}
	}
	return upload{}, false
}

// Sent is an artifact that the caller has sent in full lately. The error is a conflict where
// it has not.
func (u *Uploads) Sent(ctx context.Context, artifact string) (bytes int64, sealed bool, err error) {
	sent, found := u.of(access.CallerOf(ctx).Holder, artifact, u.now().Add(-Life))
	if !found {
		err = problem.New(problem.Conflict, "the artifact %s is not one that you have sent to this server in the last %g minutes: PUT its bytes first, then commit again",
			artifact, Life.Minutes())
	}
	return sent.bytes, sent.sealed, err
}

// CheckUpload refuses a checkpoint of bytes that the caller has not shown to have:
// it must have sent them in full, or they are a checkpoint of the trial already,
// which a child has from its parent. The answer does not tell whether others have
// such an artifact. One that is not encrypted is refused where it should be.
func (u *Uploads) CheckUpload(ctx context.Context, t trial.Trial, commitment protocol.CheckpointCommit, encrypted bool) error {
	if access.CallerOf(ctx).Holder == "" { // the program itself
		return nil
	}
	size, sealed, unsent := u.Sent(ctx, commitment.Artifact)
	if encrypted && unsent == nil && !sealed {
		return problem.New(problem.Invalid, "the checkpoint is not encrypted, and its study names encryption.recipients: let a worker with --identity run it")
	}
	for _, kept := range t.Kept(false) {
		if kept.Artifact == commitment.Artifact {
			size, unsent = kept.Bytes, nil
		}
	}
	if unsent != nil {
		return unsent
	}
	return checkSize("checkpoint", size, commitment.Bytes)
}

func checkSize(what string, size, said int64) error {
	if size != said {
		return problem.WithFields("the "+what+" is not valid", []problem.Field{{Path: "bytes", Value: said,
			Message: fmt.Sprintf("must be %d, the size of the artifact", size)}})
	}
	return nil
}

// CheckLogged refuses a file of bytes that the caller has not sent in full lately.
func (u *Uploads) CheckLogged(ctx context.Context, log protocol.ArtifactLog) error {
	if access.CallerOf(ctx).Holder == "" { // the program itself
		return nil
	}
	size, _, err := u.Sent(ctx, log.Artifact)
	if err != nil {
		return err
	}
	return checkSize("artifact", size, log.Bytes)
}
