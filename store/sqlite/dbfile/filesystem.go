package dbfile

import (
	"path/filepath"
	"syscall"

	"github.com/tandem-tune/tandem/internal/problem"
)

// networkFilesystem names a file system where a lock or a shared memory map may
// not reach the other machines, by the number statfs gives it.
func networkFilesystem(number uint32) (name string, network bool) {
	switch number {
	case 0x6969:
		return "NFS", true
	case 0x517B, 0xFE534D42:
		return "SMB", true
	case 0xFF534D42:
		return "CIFS", true
	case 0x564C:
		return "NCP", true
	case 0x73757245:
		return "Coda", true
	case 0x5346414F:
		return "AFS", true
	case 0x00C36400:
		return "Ceph", true
	case 0x0BD00BD0:
		return "Lustre", true
	case 0x01021997:
		return "9P", true
	case 0x65735546:
		return "FUSE (which may be a network)", true
	}
	return "", false
}

// CheckFilesystem refuses a database on a network file system.
func CheckFilesystem(path string) error {
	folder := filepath.Dir(path)
	var info syscall.Statfs_t
	if err := syscall.Statfs(folder, &info); err != nil {
		return problem.New(problem.Unavailable, "find out what file system %s is on: %w", folder, err)
	}
	return RefuseNetwork(folder, uint32(info.Type)) //nolint:gosec // magic numbers have 32 bits
}

func RefuseNetwork(folder string, number uint32) error {
	name, network := networkFilesystem(number)
	if !network {
		return nil
	}
	return problem.New(problem.Invalid,
		"%s is on %s, where SQLite's locks may not hold and the database can be damaged: put it on a local disk, or allow network file systems explicitly if you are sure that only this machine uses it",
		folder, name)
}
