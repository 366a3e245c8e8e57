package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/sealed"
)

// keeper is a server with data sets, by what is asked for.
type keeper struct {
	Server
	sets   map[string][]byte
	size   int64 // that it says; 0: the right one
	breaks atomic.Int32
	asked  atomic.Int32
}

type download struct {
	io.Reader
	size int64
}

func (d download) Close() error { return nil }
func (d download) Size() int64  { return d.size }

func (k *keeper) Artifact(_ context.Context, hash string) (io.ReadCloser, error) {
	k.asked.Add(1)
	content, has := k.sets[hash]
	if !has {
		return nil, problem.New(problem.NotFound, "there is no artifact %s", hash)
	}
	size := int64(len(content))
	if k.size != 0 {
		size = k.size
	}
	if k.breaks.Add(-1) >= 0 {
		return download{io.MultiReader(bytes.NewReader(content[:len(content)-9]), brokenLine{}), size}, nil
	}
	return download{bytes.NewReader(content), size}, nil
}

type brokenLine struct{}

func (brokenLine) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// dataOf is a new data set with a file.
func (b Box) dataOf(t *testing.T, name, content string) []byte {
	t.Helper()
	folder := t.TempDir()
	fill(t, folder, map[string]string{"a/b.csv": content})
	return b.mustPack(t, folder, sealed.Label{Dataset: name})
}

// aShelf is one with the data sets on its server; memory is a folder for 1 MB, or empty.
func aShelf(t *testing.T, b Box, memory string, sets ...[]byte) (*Shelf, *keeper) {
	k := &keeper{sets: map[string][]byte{}}
	for _, one := range sets {
		k.sets[hashOf(one)] = one
	}
	s := &Shelf{Server: k, Keys: b.Keys, Memory: func() string { return memory }, MemoryBytes: 1 << 20}
	return s.Open(filepath.Join(t.TempDir(), "data")), k
}

func of(b Box, name, hash string) protocol.Lease {
	return protocol.Lease{Recipients: b.Recipients, Datasets: map[string]string{name: hash}}
}

func left(t *testing.T, s *Shelf) []string {
	t.Helper()
	var names []string
	for _, folder := range []string{s.cache.directory, s.Memory()} {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, one := range entries {
			names = append(names, one.Name())
		}
	}
	return names
}

func TestDataSetsAreFetchedOnceForAllTrials(t *testing.T) {
	b := aBox(t)
	set := b.dataOf(t, "scans", canary)
	for name, memory := range map[string]string{"on disk": "", "in memory": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			s, k := aShelf(t, b, memory, set)
			k.breaks.Store(2)
			var stalls atomic.Int32
			var trials sync.WaitGroup
			loans := make([]Loan, 4)
			for i := range loans {
				trials.Go(func() {
					var err error
					if loans[i], err = s.Lend(t.Context(), of(b, "scans", hashOf(set)), func(error) { stalls.Add(1) }); err != nil {
						t.Error(err)
					}
				})
			}
			trials.Wait()
			if k.asked.Load() != 3 || stalls.Load() != 2 {
				t.Errorf("it was asked for %d times, and stalled %d times", k.asked.Load(), stalls.Load())
			}
			path := filepath.Join(loans[0].Folders["scans"], "a", "b.csv")
			content, err := os.ReadFile(path)
			about, err2 := os.Stat(path)
			if err != nil || err2 != nil || string(content) != canary || about.Mode() != 0o400 || !strings.HasPrefix(path, memory) {
				t.Errorf("%s has %q, %v, %v, %v", path, content, about.Mode(), err, err2)
			}
			if above, err := os.Stat(loans[0].Folders["scans"]); err != nil || above.Mode().Perm() != 0o700 {
				t.Errorf("its folder has the mode %v, %v", above.Mode(), err)
			}
			for _, one := range loans {
				one.Return()
			}
			if s.cache.entries[0].users != 0 || len(left(t, s)) != 1 {
				t.Errorf("it has %d users, and there are %v", s.cache.entries[0].users, left(t, s))
			}
		})
	}
}

// Whatever a server gives in place of a data set, no script reads it, and nothing of it stays.
func TestDataSetsThatAreNotTheOnesAreRefused(t *testing.T) {
	b, thief := aBox(t), aBox(t)
	set := b.dataOf(t, "scans", "new")
	older := b.dataOf(t, "scans", "old")
	changed := bytes.Clone(set)
	changed[len(changed)-100] ^= 1
	plain, empty := t.TempDir(), Box{}
	fill(t, plain, map[string]string{"a": "b"})
	for name, test := range map[string]struct {
		given []byte
		say   string
	}{
		"an older one":   {older, "dataset_swapped"},
		"another's name": {b.dataOf(t, "labels", "x"), "dataset_swapped"},
		"a checkpoint":   {b.mustPack(t, plain, aLabel), "dataset_unlabelled"},
		"forged":         {Box{thief.Keys, slices.Concat(thief.Recipients, b.Recipients)}.dataOf(t, "scans", "x"), "dataset_forged"},
		"changed":        {changed, "damaged"},
		"cut short":      {set[:len(set)-1], "damaged"},
		"in the clear":   {empty.mustPack(t, plain, aLabel), "cannot be decrypted"},
		"for another":    {thief.dataOf(t, "scans", "x"), "cannot be decrypted"},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := aShelf(t, b, "")
			k.sets[hashOf(set)] = test.given
			_, err := s.Lend(t.Context(), of(b, "scans", hashOf(set)), func(error) {})
			if err == nil || !strings.Contains(err.Error(), test.say) || !strings.Contains(err.Error(), "the data set scans") || problem.Is(err, problem.Exhausted) {
				t.Errorf("got %v", err)
			}
			if found := left(t, s); len(found) > 0 {
				t.Errorf("there is %v", found)
			}
		})
	}
	s, k := aShelf(t, b, "", set)
	if _, err := s.Lend(t.Context(), of(b, "scans", hashOf(older)), func(error) {}); !problem.Is(err, problem.NotFound) {
		t.Errorf("one that was deleted: %v", err)
	}
	struck := of(b, "scans", hashOf(set))
	struck.Recipients = nil
	if _, err := s.Lend(t.Context(), struck, func(error) {}); err == nil || !strings.Contains(err.Error(), "nothing vouches for it") || k.asked.Load() > 1 {
		t.Errorf("without recipients: %v", err)
	}
}

func TestDataSetsWaitForRoom(t *testing.T) {
	b := aBox(t)
	set, other := b.dataOf(t, "scans", canary), b.dataOf(t, "labels", canary)
	s, k := aShelf(t, b, t.TempDir(), set, other)
	loan, err := s.Lend(t.Context(), of(b, "scans", hashOf(set)), func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	k.size = 1 << 50
	_, err = s.Lend(t.Context(), of(b, "labels", hashOf(other)), func(error) {})
	if !problem.Is(err, problem.Exhausted) || !strings.Contains(err.Error(), "1073741824 MB") || !strings.Contains(err.Error(), "--scratch") {
		t.Errorf("what no disk has room for: %v", err)
	}
	if found := left(t, s); len(found) != 1 {
		t.Errorf("what is in use went: %v", found)
	}
	loan.Return()
	if _, err := s.Lend(t.Context(), of(b, "labels", hashOf(other)), func(error) {}); !problem.Is(err, problem.Exhausted) || len(left(t, s)) > 0 {
		t.Errorf("what nobody uses stayed: %v, %v", left(t, s), err)
	}
	k.size = s.MemoryBytes + 1 // too large for the memory
	loan, err = s.Lend(t.Context(), of(b, "labels", hashOf(other)), func(error) {})
	if err != nil || !strings.HasPrefix(loan.Folders["labels"], s.cache.directory) {
		t.Errorf("it is in %v, %v", loan.Folders, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := s.Lend(ended, of(b, "scans", hashOf(set)), func(error) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("for a trial that is taken back: %v", err)
	}
}
