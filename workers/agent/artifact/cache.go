package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/tandem-tune/tandem/internal/files"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/workers/agent/retry"
)

// Cache keeps the newest artifacts on the worker's disk, by their hash: what was
// just uploaded is often what the next run on this worker continues from.
type Cache struct {
	directory string
	count     int
	bytes     int64
	mutex     sync.Mutex
	entries   []*File // the oldest first
}

// File is an artifact, a file of the cache.
type File struct {
	SHA256 string
	Bytes  int64
	path   string
	users  int
}

// NewCache keeps so many artifacts, and so many bytes of them, in the directory. It
// is safe for concurrent use.
func NewCache(directory string, count int, bytes int64) *Cache {
	return &Cache{directory: directory, count: count, bytes: bytes}
}

// add stores what fill writes, up to limit bytes, and returns it in use.
func (c *Cache) add(fill func(io.Writer) error, limit int64) (*File, error) {
	if err := os.MkdirAll(c.directory, 0o700); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(c.directory, "new-")
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	counted := &boundedWriter{out: io.MultiWriter(file, hash), left: limit}
	err = errors.Join(fill(counted), file.Close())
	if errors.Is(err, syscall.ENOSPC) {
		err = problem.New(problem.Exhausted, "the worker's disk is full: %w", err)
	}
	if err != nil && counted.failed {
		err = retry.Local{Err: err}
	}
	if err != nil {
		_ = os.Remove(file.Name()) // what stays is removed with the folder
		return nil, err
	}
	added := &File{SHA256: hex.EncodeToString(hash.Sum(nil)), Bytes: limit - counted.left, users: 1}
	added.path = filepath.Join(c.directory, added.SHA256)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if known := c.find(added.SHA256); known != nil {
		known.users++
		return known, os.Remove(file.Name())
	}
	if err := os.Rename(file.Name(), added.path); err != nil {
		return nil, err
	}
	c.entries = append(c.entries, added)
	c.evict()
	return added, nil
}

// keep adds a file or folder that is in its place.
func (c *Cache) keep(made *File) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.entries = append(c.entries, made)
	c.evict()
}

// use returns what is here by that hash, in use; nil if it is not.
func (c *Cache) use(hash string) *File {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	found := c.find(hash)
	if found != nil {
		found.users++
	}
	return found
}

// take is use of an artifact whose content is verified: a disk that lost it must not be
// trained from.
func (c *Cache) take(hash string) *File {
	found := c.use(hash)
	if found == nil {
		return nil
	}
	if actual, err := files.Sum(found.path); err != nil || actual != hash {
		c.forget(found)
		return nil
	}
	return found
}

// release ends a use.
func (c *Cache) release(a *File) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	a.users--
	c.evict()
}

func (c *Cache) find(hash string) *File {
	for _, entry := range c.entries {
		if entry.SHA256 == hash {
			return entry
		}
	}
	return nil
}

func (c *Cache) forget(a *File) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	a.users--
	for i, entry := range c.entries {
		if entry == a {
			c.entries = append(c.entries[:i:i], c.entries[i+1:]...)
			_ = os.Remove(a.path) // it is of no use, there or not
			return
		}
	}
}

// evict removes the oldest artifacts that nobody uses until the rest is small
// enough.
func (c *Cache) evict() {
	var bytes int64
	for _, entry := range c.entries {
		bytes += entry.Bytes
	}
	kept := c.entries[:0:0]
	surplus := len(c.entries) - c.count
	for _, entry := range c.entries {
		if entry.users > 0 || surplus <= 0 && bytes <= c.bytes {
			kept = append(kept, entry)
			continue
		}
		surplus--
		bytes -= entry.Bytes
		_ = os.RemoveAll(entry.path) // what stays is removed with the folder
	}
	c.entries = kept
}

// evictOne removes the oldest one that nobody uses, if there is one.
func (c *Cache) evictOne() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	at := slices.IndexFunc(c.entries, func(one *File) bool { return one.users == 0 })
	if at < 0 {
		return false
	}
	_ = os.RemoveAll(c.entries[at].path) // what stays is removed with the folder
	c.entries = slices.Delete(c.entries, at, at+1)
	return true
}

// within is how many bytes there are in the folder.
func (c *Cache) within(folder string) (bytes int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, one := range c.entries {
		if filepath.Dir(one.path) == folder {
			bytes += one.Bytes
		}
	}
	return bytes
}

// boundedWriter refuses to write more than is left.
type boundedWriter struct {
	out    io.Writer
	left   int64
	failed bool
}

func (w *boundedWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > w.left {
		w.failed = true
		return 0, problem.New(problem.Exhausted, "%w", errTooLarge)
	}
	n, err := w.out.Write(p)
	w.left -= int64(n)
	w.failed = w.failed || err != nil
	return n, err
}
