package dbfile

import "syscall"

// filesystemNumber returns the magic number of the folder's file system.
func filesystemNumber(folder string) (number uint32, known bool, err error) {
	var info syscall.Statfs_t
	if err := syscall.Statfs(folder, &info); err != nil {
		return 0, false, err
	}
	return uint32(info.Type), true, nil //nolint:gosec // magic numbers have 32 bits
}
