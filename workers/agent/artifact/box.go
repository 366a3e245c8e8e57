package artifact

import (
	"archive/tar"
	"cmp"
	"errors"
	"io"
	"sync"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/trial"
)

// Box is how checkpoints and data sets of a study travel: encrypted to the recipients, or
// as they are where there are none.
type Box struct {
	Keys       *sealed.Keys
	Recipients []string
}

// LabelOf is what stands in an encrypted checkpoint of the trial, or of the one that it
// continues.
func LabelOf(study string, id trial.ID, kept trial.Checkpoint) sealed.Label {
	return sealed.Label{Study: study, Trial: string(cmp.Or(kept.Trial, id)), Rung: kept.Rung, Epoch: kept.Epoch}
}

// Pack writes the folder's content. Its label is the comment of a header that tar files
// may begin with, so that "age -d" gives an archive which every tar reads.
func (b Box) Pack(folder string, out io.Writer, limit Limits, label sealed.Label) error {
	if len(b.Recipients) == 0 {
		return pack(folder, out, limit)
	}
	text, err := b.Keys.Sign(label, b.Recipients[0])
	if err != nil {
		return err
	}
	encrypted, err := sealed.Encrypt(out, b.Recipients)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(encrypted)
	err = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "label", PAXRecords: map[string]string{"comment": text}})
	if err = errors.Join(err, archive.Flush()); err == nil { // and no end: the files follow
		err = pack(folder, encrypted, limit)
	}
	return errors.Join(err, encrypted.Close())
}

// Open puts the content into an empty folder. The error is invalid if it is
// damaged, or not the one that the label names; then some of it may lie there. vouched says
// that a holder of the workers' key wrote it, which only such a holder can tell.
func (b Box) Open(in io.Reader, folder string, limit Limits, wanted sealed.Label) (vouched bool, err error) {
	if len(b.Recipients) == 0 {
		return false, unpack(in, folder, limit, nil)
	}
	opened, err := b.Keys.Decrypt(in)
	if err != nil {
		return false, err
	}
	err = unpack(opened, folder, limit, func(comment string) (err error) {
		vouched, err = b.Keys.Verify(comment, wanted, b.Recipients[0])
		return err
	})
	if err == nil { // its end is behind the archive's
		_, err = io.Copy(io.Discard, opened)
	}
	return vouched, err
}

func (c *Checkpoint) box() Box { return Box{c.Keys, c.Lease.Recipients} }

func (c *Checkpoint) label(epoch int) sealed.Label {
	return LabelOf(c.Lease.StudyID, c.Lease.Trial, trial.Checkpoint{Rung: c.Lease.Rung, Epoch: epoch})
}

// Memory is how far trials of encrypted studies came here, whatever the server says. The
// zero value knows none. It is safe for concurrent use.
type Memory struct {
	mutex  sync.Mutex
	newest map[trial.ID]reached
}

type reached struct{ rung, epoch int }

// mostRemembered bounds the trials that are known; then it begins anew.
const mostRemembered = 10_000

func (m *Memory) note(lease protocol.Lease, epoch int) {
	if len(lease.Recipients) == 0 {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.newest == nil || len(m.newest) >= mostRemembered {
		m.newest = map[trial.ID]reached{}
	}
	m.newest[lease.Trial] = reached{lease.Rung, epoch}
}

func (m *Memory) forget(id trial.ID) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.newest, id)
}

// check refuses a lease with an older checkpoint than this worker committed.
func (m *Memory) check(lease protocol.Lease) error {
	if len(lease.Recipients) == 0 {
		return nil
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known, has := m.newest[lease.Trial]
	offered := 0
	if lease.Checkpoint != nil {
		offered = lease.Checkpoint.Epoch
	}
	// A higher rung may start from scratch.
	if !has || offered >= known.epoch || offered == 0 && lease.Rung > known.rung {
		return nil
	}
	return problem.New(problem.Conflict, "checkpoint_rolled_back: the server offers epoch %d, and this worker committed epoch %d: restart the worker if the server was restored from a backup", offered, known.epoch)
}
