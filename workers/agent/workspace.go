package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// longestSocket is how long the path of a unix socket may be on Linux, without
// its final zero byte.
const longestSocket = 107

// workspace is this agent's folder below the scratch directory. A lock on it
// lives as long as the process, however that ends; the next agent finds folders
// without a holder, ends what still runs in their name and removes them.
type workspace struct {
	directory string
	lock      *os.File
	// sockets is where sockets are: the folder itself unless its path is too
	// long for one.
	sockets string
	number  atomic.Int64
}

func openWorkspace(scratch string, logger *slog.Logger) (*workspace, error) {
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, fmt.Errorf("make the scratch directory: %w", err)
	}
	removeAbandoned(scratch, logger)
	directory, err := os.MkdirTemp(scratch, "w")
	if err != nil {
		return nil, fmt.Errorf("make the worker's folder: %w", err)
	}
	w := &workspace{directory: directory, sockets: directory}
	if w.lock, err = newLock(directory); err == nil && len(filepath.Join(directory, "999999", "s")) > longestSocket {
		w.sockets, err = os.MkdirTemp("", "tandem-")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the worker's folder: %w", err), os.RemoveAll(directory))
	}
	return w, nil
}

func (w *workspace) cacheDirectory() string { return filepath.Join(w.directory, "cache") }

// room is one run's folder and socket.
type room struct{ directory, checkpoint, socket string }

// room makes a folder for a run. Its parent is 0700, and so is everything in it.
func (w *workspace) room() (room, error) {
	number := fmt.Sprint(w.number.Add(1))
	r := room{directory: filepath.Join(w.directory, number), socket: filepath.Join(w.sockets, number, "s")}
	r.checkpoint = filepath.Join(r.directory, "checkpoint")
	if err := os.MkdirAll(r.checkpoint, 0o700); err != nil {
		return room{}, err
	}
	return r, os.MkdirAll(filepath.Dir(r.socket), 0o700)
}

func (r room) remove() error {
	if r == (room{}) {
		return nil
	}
	return errors.Join(os.RemoveAll(r.directory), os.RemoveAll(filepath.Dir(r.socket)))
}

func (w *workspace) close() error {
	err := os.RemoveAll(w.directory)
	if w.sockets != w.directory {
		err = errors.Join(err, os.RemoveAll(w.sockets))
	}
	return errors.Join(err, w.lock.Close())
}

// newLock takes the lock before anybody can see it.
func newLock(directory string) (*os.File, error) {
	hidden := filepath.Join(directory, "lock.new")
	if err := os.WriteFile(hidden, nil, 0o600); err != nil {
		return nil, err
	}
	lock, err := takeLock(hidden)
	if err != nil {
		return nil, err
	}
	return lock, os.Rename(hidden, filepath.Join(directory, "lock"))
}

func takeLock(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// removeAbandoned cleans up after agents that were killed. Their commands died
// with them; what these had started may still run.
func removeAbandoned(scratch string, logger *slog.Logger) {
	folders, err := filepath.Glob(filepath.Join(escaped(scratch), "w*"))
	if err != nil {
		return
	}
	for _, folder := range folders {
		lock, err := takeLock(filepath.Join(folder, "lock"))
		if err != nil {
			continue // its agent lives, or is just making it
		}
		if killed := killMarked(variableScratch + folder + "/"); killed > 0 {
			logger.Warn("ended processes that a killed worker had left behind", "processes", killed)
		}
		if err := errors.Join(os.RemoveAll(folder), lock.Close()); err != nil {
			logger.Warn("cannot remove a killed worker's folder", "folder", folder, "error", err)
		}
	}
}

func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
