// Package workspace keeps the files of a worker: a folder for each command, and
// outboxes of reports that the server has not answered. A lock shows whether the
// worker lives; the next one cleans up after a killed one.
package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/workers/agent/cgroup"
	"github.com/tandem-tune/tandem/workers/agent/knob"
)

// StateDirectory is where the user's programs keep state that can be lost.
func StateDirectory() (string, error) {
	if base := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "tandem", "tmp"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no place for the worker's files: %w (set HOME, or choose a scratch directory)", err)
	}
	return filepath.Join(home, ".local", "state", "tandem", "tmp"), nil
}

// longestSocket is how long the path of a unix socket may be on Linux, without
// its final zero byte.
const longestSocket = 107

// Workspace is this agent's folder below the scratch directory. A lock on it
// lives as long as the process, however that ends; the next agent finds folders
// without a holder, ends what still runs in their name and removes them.
type Workspace struct {
	directory string
	lock      *os.File
	// sockets is where sockets are: the folder itself unless its path is too
	// long for one.
	sockets string
	// memory is a folder in memory, once somebody has asked for it, with a lock of its own:
	// whoever starts next on this machine finds it, whatever its scratch directory.
	memory     func() string
	memoryLock *os.File
	group      *cgroup.Group
	number     atomic.Int64
	// Inherited is what agents that were killed had not told the server yet, and Dead
	// are their ids.
	Inherited []Letter
	Dead      []string
}

// What lies outside of the folder is named in these files, for the next agent
// to find if this one is killed.
const (
	socketsRecord = "sockets"
	memoryRecord  = "memory"
	groupRecord   = "cgroup"
	// workerRecord has the agent's id.
	workerRecord = "worker"
	// soleRecord has the number of the process of an agent that shares the scratch
	// directory with no other of its name, and the name.
	soleRecord = "name"
	// journalRecord has the settings of the machine as they were before.
	journalRecord = "settings"
)

// Open makes the folder of the agent with the id in the scratch directory and cleans up
// after agents that were killed. restore puts back the settings in the journal of one.
// sole, if not empty, is a name: the error then names the process of another agent of this
// name that uses the directory.
func Open(scratch, id, sole string, restore func(journal string) error, logger *slog.Logger) (*Workspace, error) {
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, fmt.Errorf("make the scratch directory: %w", err)
	}
	if turn, err := os.Open(scratch); err == nil { // two that start at once see each other
		defer turn.Close()
		_ = unix.Flock(int(turn.Fd()), unix.LOCK_EX) // where there are no locks, that is all that is lost
	}
	removeMemory()
	letters, dead, living := removeAbandoned(scratch, restore, logger)
	if process := processOf(living, sole); process != "" {
		return nil, fmt.Errorf("process %s runs as worker %s with the scratch folder %s already: end it, or start this worker with another --name or another --scratch", process, sole, scratch)
	}
	directory, err := os.MkdirTemp(scratch, "w")
	if err != nil {
		return nil, fmt.Errorf("make the worker's folder: %w", err)
	}
	w := &Workspace{directory: directory, sockets: directory, Dead: dead}
	w.memory = sync.OnceValue(w.makeMemory)
	if err := w.prepare(id, sole); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the worker's folder: %w", err), os.RemoveAll(directory))
	}
	if w.Inherited, err = w.adopt(letters); err != nil {
		logger.Warn("cannot keep what a killed worker had not told the server", "error", err)
	}
	return w, nil
}

// processOf is the number of the process that has one of the folders for an agent of the
// name; empty: none has.
func processOf(folders []string, name string) string {
	for _, folder := range folders {
		content, _ := os.ReadFile(filepath.Join(folder, soleRecord)) // most have none
		if process, other, _ := strings.Cut(string(content), " "); name != "" && other == name {
			return process
		}
	}
	return ""
}

func (w *Workspace) prepare(id, sole string) (err error) {
	if err := os.Mkdir(w.outboxes(), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.directory, workerRecord), []byte(id), 0o600); err != nil {
		return err
	}
	if sole != "" {
		if err := os.WriteFile(filepath.Join(w.directory, soleRecord), fmt.Appendf(nil, "%d %s", os.Getpid(), sole), 0o600); err != nil {
			return err
		}
	}
	if w.lock, err = newLock(w.directory); err != nil {
		return err
	}
	if len(filepath.Join(w.directory, "999999", "s999999")) > longestSocket {
		if w.sockets = w.outside("", socketsRecord); w.sockets == "" {
			return errors.New("its folder for sockets cannot be made: choose a shorter --scratch")
		}
	}
	if w.group = cgroup.New(filepath.Base(w.directory)); w.group == nil {
		return nil
	}
	if err := os.WriteFile(filepath.Join(w.directory, groupRecord), []byte(w.group.Directory), 0o600); err != nil {
		w.group.Remove()
		return err
	}
	return nil
}

// outside makes a folder elsewhere, which the record names; empty where it cannot.
func (w *Workspace) outside(parent, record string) string {
	made, err := os.MkdirTemp(parent, "tandem-"+record+"-")
	if err != nil {
		return ""
	}
	if err := os.WriteFile(filepath.Join(w.directory, record), []byte(made), 0o600); err != nil {
		_ = os.RemoveAll(made) // it is empty
		return ""
	}
	return made
}

// inMemory is where Linux keeps files in memory.
const inMemory = "/dev/shm"

func (w *Workspace) makeMemory() string {
	made := w.outside(inMemory, memoryRecord)
	if made == "" {
		return ""
	}
	var err error
	if w.memoryLock, err = newLock(made); err != nil {
		_ = os.RemoveAll(made) // it is empty
		return ""
	}
	return made
}

// removeMemory removes what agents that were killed have left in memory.
func removeMemory() {
	locks, _ := filepath.Glob(filepath.Join(inMemory, "tandem-"+memoryRecord+"-*", "lock")) // the pattern is well formed
	for _, path := range locks {
		if lock, err := takeLock(path); err == nil {
			_, _ = os.RemoveAll(filepath.Dir(path)), lock.Close()
		}
	}
}

// Memory is a folder in memory; empty: there is none. It takes data sets that are not to
// be on a disk in the clear.
func (w *Workspace) Memory() string { return w.memory() }

// DataDirectory is where data sets are that do not fit there.
func (w *Workspace) DataDirectory() string { return filepath.Join(w.directory, "data") }

// CacheDirectory is where artifacts are kept.
func (w *Workspace) CacheDirectory() string { return filepath.Join(w.directory, "cache") }

// Journal is the file with the settings of the machine as they were before.
func (w *Workspace) Journal() string { return filepath.Join(w.directory, journalRecord) }

// Close removes the folder, unless there is something in its journal that could
// not be put back: then the next agent tries again.
func (w *Workspace) Close() error {
	w.group.Remove()
	if pending, err := knob.Pending(w.Journal()); err != nil || pending {
		return errors.Join(errors.New("not everything that was set of the machine could be put back; the next worker with the same scratch folder tries again"), err, w.lock.Close())
	}
	err := errors.Join(removeRecorded(w.directory), os.RemoveAll(w.directory), w.lock.Close())
	if w.memoryLock != nil {
		err = errors.Join(err, w.memoryLock.Close())
	}
	return err
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

// dying is how long an agent that was killed just now may take to let go of its lock.
const dying = time.Second

// removeAbandoned cleans up after agents that were killed. Their commands died
// with them; what these had started may still run. It returns what they had not
// told the server, their ids, and the folders of those that live.
func removeAbandoned(scratch string, restore func(journal string) error, logger *slog.Logger) (left []Letter, dead, living []string) {
	folders, _ := fs.Glob(os.DirFS(scratch), "w*") // the pattern is well formed
	patient := time.Now().Add(dying)
	for _, name := range folders {
		folder := filepath.Join(scratch, name)
		lock, err := takeLock(filepath.Join(folder, "lock"))
		for errors.Is(err, unix.EWOULDBLOCK) && time.Now().Before(patient) {
			time.Sleep(dying / 20)
			lock, err = takeLock(filepath.Join(folder, "lock"))
		}
		if err != nil {
			living = append(living, folder) // or it is just being made
			continue
		}
		if killed := cgroup.KillMarked(cgroup.MarkVariable + folder + "/"); killed > 0 {
			logger.Warn("ended processes that a killed worker had left behind", "processes", killed)
		}
		left = append(left, lettersIn(folder)...)
		if id, err := os.ReadFile(filepath.Join(folder, workerRecord)); err == nil && len(id) > 0 {
			dead = append(dead, string(id))
		}
		if err := restore(filepath.Join(folder, journalRecord)); err != nil {
			logger.Error("cannot put back what a killed worker had set of the machine; the next start tries again", "folder", folder, "error", err)
			_ = lock.Close() // the folder stays, with the journal in it
			continue
		}
		if err := errors.Join(removeOutside(folder), os.RemoveAll(folder), lock.Close()); err != nil {
			logger.Warn("cannot remove a killed worker's folder", "folder", folder, "error", err)
		}
	}
	return left, dead, living
}

// removeOutside removes what a killed agent had outside of its folder.
func removeOutside(folder string) error {
	if group := recorded(folder, groupRecord); group != "" {
		c := &cgroup.Group{Directory: group}
		c.Kill()
		c.Remove()
	}
	return removeRecorded(folder)
}

// removeRecorded removes the folders that an agent has elsewhere.
func removeRecorded(folder string) (err error) {
	for _, record := range [...]string{socketsRecord, memoryRecord} {
		if path := recorded(folder, record); path != "" {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return err
}

// recorded is the path in one of the records; empty if it is not one of ours.
func recorded(folder, record string) string {
	content, err := os.ReadFile(filepath.Join(folder, record))
	if path := string(content); err == nil && filepath.IsAbs(path) && strings.HasPrefix(filepath.Base(path), "tandem-") {
		return path
	}
	return ""
}
