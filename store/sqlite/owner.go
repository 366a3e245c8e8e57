package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/problem"
)

// owner is the right to use a database file, held through a lock on a file
// beside it. The kernel drops the lock when the process dies, however it dies.
type owner struct{ file *os.File }

// acquire takes the right, or says who has it.
func acquire(path string, networkAllowed bool) (*owner, error) {
	if kind := networkFilesystem(filepath.Dir(path)); kind != "" && !networkAllowed {
		return nil, problem.New(problem.Unavailable,
			"%s is on a network file system (%s), where SQLite's locks may not hold: use a local disk, or allow it explicitly", path, kind)
	}
	file, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(file.Name())
		file.Close()
		return nil, problem.New(problem.Conflict, "another server has %s: %s", path, strings.TrimSpace(string(holder)))
	}
	host, _ := os.Hostname()
	text := fmt.Sprintf("process %d on %s, since %s\n", os.Getpid(), host, time.Now().Format(time.RFC3339))
	if err := file.Truncate(0); err != nil {
		file.Close()
		return nil, fmt.Errorf("write the lock file: %w", err)
	}
	if _, err := file.WriteAt([]byte(text), 0); err != nil {
		file.Close()
		return nil, fmt.Errorf("write the lock file: %w", err)
	}
	return &owner{file}, nil
}

func (o *owner) release() error { return o.file.Close() }

// networkFilesystem names the network file system a folder is on; empty if it
// is on none that we know of.
func networkFilesystem(folder string) string {
	var status unix.Statfs_t
	if err := unix.Statfs(folder, &status); err != nil {
		return ""
	}
	switch uint32(status.Type) {
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return "SMB"
	}
	return ""
}
