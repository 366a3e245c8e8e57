package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/workers/agent/retry"
)

const (
	// spare is how much room a data set leaves on a disk.
	spare = 256 << 20
	// unsaid is the size of a data set where the server does not say it.
	unsaid = 4 << 30
	// mostUnused is how many data sets are kept that no trial uses, as long as they fit.
	mostUnused = 8
)

// Shelf keeps data sets of encrypted studies in the clear, one of each for all trials of a
// worker: in memory up to MemoryBytes, else on disk. It is safe for concurrent use.
type Shelf struct {
	Server Server
	Keys   *sealed.Keys
	// Memory is a folder in memory; empty: there is none.
	Memory      func() string
	MemoryBytes int64
	// Forgets has no data set outlive its use.
	Forgets bool

	cache *Cache
	gate  gate.Gate // each is fetched once
}

// Open has the shelf keep data sets on disk in the directory.
func (s *Shelf) Open(directory string) *Shelf {
	unused := mostUnused
	if s.Forgets {
		unused = 0
	}
	s.cache, s.gate = NewCache(directory, unused, math.MaxInt64), gate.New()
	return s
}

// With is the shelf for a holder of the keys.
func (s *Shelf) With(keys *sealed.Keys) *Shelf {
	opened := *s
	opened.Keys = keys
	return &opened
}

// Loan are data sets in use: their folders, by name.
type Loan struct {
	Folders map[string]string
	cache   *Cache
	files   []*File
}

// Return ends the use.
func (l Loan) Return() {
	for _, one := range l.files {
		l.cache.release(one)
	}
}

// Lend returns the lease's data sets, which it fetches unless they are there. stalled is
// called when the server did not answer an attempt. Unless the context ended, an error is
// one that another attempt of this worker would meet as well.
func (s *Shelf) Lend(ctx context.Context, lease protocol.Lease, stalled func(error)) (Loan, error) {
	loan := Loan{Folders: map[string]string{}, cache: s.cache}
	for _, name := range slices.Sorted(maps.Keys(lease.Datasets)) {
		found, err := s.one(ctx, name, lease, stalled)
		if err != nil {
			loan.Return()
			return Loan{}, fmt.Errorf("the data set %s: %w", name, err)
		}
		loan.files, loan.Folders[name] = append(loan.files, found), found.path
	}
	return loan, nil
}

func (s *Shelf) one(ctx context.Context, name string, lease protocol.Lease, stalled func(error)) (found *File, err error) {
	hash := lease.Datasets[name]
	if len(lease.Recipients) == 0 {
		return nil, problem.New(problem.Invalid, "its study names no recipients, so nothing vouches for it")
	}
	if err := s.gate.Enter(ctx); err != nil {
		return nil, err
	}
	defer s.gate.Leave()
	if found = s.cache.use(hash + "-" + name); found != nil {
		return found, nil
	}
	err = retry.Do(ctx, transferPatience, stalled, func(ctx context.Context) (err error) {
		found, err = s.fetch(ctx, hash, name, lease.Recipients)
		return err
	})
	return found, err
}

// fetch decrypts a data set as it comes. Nothing is kept of one that is not whole, not the
// one of the hash, or not of the name.
func (s *Shelf) fetch(ctx context.Context, hash, name string, recipients []string) (*File, error) {
	body, err := s.Server.Artifact(ctx, hash)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	size := int64(unsaid)
	if sized, is := body.(interface{ Size() int64 }); is && sized.Size() >= 0 {
		size = sized.Size()
	}
	folder, err := s.place(size)
	if err != nil {
		return nil, err
	}
	part, err := os.MkdirTemp(folder, "new-")
	if err != nil {
		return nil, retry.Local{Err: err}
	}
	from := &arriving{from: body}
	hashed := sha256.New()
	_, err = Box{s.Keys, recipients}.Open(io.TeeReader(from, hashed), part, Limits{Bytes: size, Files: math.MaxInt, Mode: 0o400}, sealed.Label{Dataset: name})
	switch actual := hex.EncodeToString(hashed.Sum(nil)); {
	case from.broken != nil:
		err = from.broken // of the way, not of the data set
	case errors.Is(err, syscall.ENOSPC):
		err = retry.Local{Err: problem.New(problem.Exhausted, "%s is full: %w", folder, err)}
	case err != nil:
		err = retry.Local{Err: err}
	case actual != hash:
		err = problem.New(problem.Invalid, "dataset_swapped: the server gave one of the SHA-256 %s, not %s", actual, hash)
	}
	made := &File{SHA256: hash + "-" + name, Bytes: size, users: 1}
	made.path = filepath.Join(folder, made.SHA256)
	if err == nil {
		err = os.Rename(part, made.path)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(part))
	}
	s.cache.keep(made)
	return made, nil
}

// arriving tells what is wrong with a download from what is wrong with what it holds.
type arriving struct {
	from   io.Reader
	broken error
}

func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		a.broken = err
	}
	return n, err
}

// place is the folder for a data set of the size. Those that no trial uses make room.
func (s *Shelf) place(size int64) (string, error) {
	if folder := s.Memory(); folder != "" {
		if s.cache.within(folder)+size <= s.MemoryBytes && freeIn(folder) >= 2*size {
			return folder, nil
		}
	}
	if err := os.MkdirAll(s.cache.directory, 0o700); err != nil {
		return "", retry.Local{Err: err}
	}
	for {
		free := freeIn(s.cache.directory)
		if free-spare >= size {
			return s.cache.directory, nil
		}
		if !s.cache.evictOne() {
			return "", retry.Local{Err: problem.New(problem.Exhausted, "it has %d MB, and the disk of %s has %d MB free: make room there, or name another with --scratch", size>>20, s.cache.directory, free>>20)}
		}
	}
}
