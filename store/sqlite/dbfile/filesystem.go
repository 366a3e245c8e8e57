package dbfile

import (
	"path/filepath"
	"syscall"

	"github.com/tandem-tune/tandem/internal/problem"
)

// networkFilesystems are those where a lock or a shared memory map may not reach the
// other machines, by the number statfs gives them.
var networkFilesystems = map[uint32]string{
	0x6969: "NFS", 0x517B: "SMB", 0xFE534D42: "SMB", 0xFF534D42: "CIFS", 0x564C: "NCP", 0x73757245: "Coda", 0x5346414F: "AFS",
	0x00C36400: "Ceph", 0x0BD00BD0: "Lustre", 0x01021997: "9P", 0x65735546: "FUSE (which may be a network)",
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
	name, network := networkFilesystems[number]
	if !network {
		return nil
	}
	return problem.New(problem.Invalid,
		"%s is on %s, where SQLite's locks may not hold and the database can be damaged: put it on a local disk, or allow network file systems explicitly if you are sure that only this machine uses it",
		folder, name)
}
