package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tandem-tune/tandem/internal/files"
	"github.com/tandem-tune/tandem/workers/launcher"
)

// MemoryFile is where a launcher keeps what must outlive its process, beside its logs.
type MemoryFile struct {
	path string
	lock *os.File
}

// OpenMemory opens the file of the launcher of that name for one process alone.
func OpenMemory(folder, name string) (*MemoryFile, error) {
	path := filepath.Join(folder, "launcher-"+name+".json")
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // in the launcher's own folder
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) { // some shared disks know no locks
		return nil, errors.Join(fmt.Errorf("another launcher named %s uses %s: end it, or give this one another --name or --logs", name, folder), lock.Close())
	}
	return &MemoryFile{path, lock}, nil
}

// Read returns what was kept; nil if there is nothing.
func (m *MemoryFile) Read() (*launcher.Memory, error) {
	content, err := os.ReadFile(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // as a planner takes it
	}
	if err != nil {
		return nil, err
	}
	kept := launcher.NewMemory()
	if err := json.Unmarshal(content, kept); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; move it away, and the launcher begins anew with the jobs that the engine lists", m.path, err)
	}
	return kept, nil
}

// Write keeps it, so that a crash leaves this or what was before.
func (m *MemoryFile) Write(memory *launcher.Memory) error {
	content, err := json.Marshal(memory)
	if err != nil {
		return err
	}
	return files.Write(m.path, bytes.NewReader(content), 0o600)
}

// Close lets others open it.
// Its lock goes at once, also while a command that inherited it is being started.
func (m *MemoryFile) Close() error {
	return errors.Join(syscall.Flock(int(m.lock.Fd()), syscall.LOCK_UN), m.lock.Close())
}
