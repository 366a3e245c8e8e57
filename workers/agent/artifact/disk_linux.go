package artifact

import (
	"io/fs"
	"syscall"
)

// freeIn is how many bytes there is room for in the folder.
func freeIn(folder string) int64 {
	var about syscall.Statfs_t
	if err := syscall.Statfs(folder, &about); err != nil {
		return 0
	}
	return int64(about.Bavail) * int64(about.Bsize) //nolint:unconvert // it has other types on other processors
}

// inodeOf tells a file from another one that took its name.
func inodeOf(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}
