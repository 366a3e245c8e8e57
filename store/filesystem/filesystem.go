// Package filesystem tells what a machine refuses apart from what is wrong with the
// data: no room, no right to write, no descriptors left. Who reads that a sound
// database is damaged, and does as told, loses data.
package filesystem

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/internal/problem"
)

// explained is an error that says what the machine refused.
type explained struct{ error }

func (e explained) Unwrap() error { return e.error }

// Explained reports whether the error says what the machine refused.
func Explained(err error) bool { return errors.As(err, new(explained)) }

// unharmed ends what is told of all that passes.
const unharmed = "the data is not damaged by this, and nothing that was acknowledged is lost (%w)"

// Explain says what the machine refused, and what to do about it, if the error came of
// that; path is where the data is. Other errors, and those that say it already, are
// returned as they are. A cause that a library keeps to itself is given with [Cause].
func Explain(path string, err error) error {
	var named *fs.PathError
	if err == nil || Explained(err) {
		return err
	}
	at := path
	if errors.As(err, &named) && filepath.IsAbs(named.Path) {
		at = named.Path
	}
	for _, one := range []struct {
		errno    []error
		what, do string
	}{
		{[]error{unix.EROFS}, place(at) + " can only be read", "Mount it for writing, and look into the kernel's log (dmesg) for why it was not"},
		{[]error{unix.EACCES, unix.EPERM}, fmt.Sprintf("this user (number %d) may not use %s", unix.Getuid(), at), "Give the files to the user that the server runs as, or run it as the user that has them"},
		{[]error{unix.EMFILE, unix.ENFILE}, "no more files can be opened by this process, or on this machine", "Raise the limit (ulimit -n, or LimitNOFILE= of systemd), or end what holds them open"},
		{[]error{unix.ENOMEM}, "this machine has no memory left for it", "End what needs it, or raise the limit"},
	} {
		for _, errno := range one.errno {
			if errors.Is(err, errno) {
				return explained{problem.New(problem.Unavailable, "%s. %s, then try again: "+unharmed, one.what, one.do, err)}
			}
		}
	}
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, problem.ErrDiskFull):
		return explained{problem.New(problem.Unavailable, "%w: %s has %s. Make room there, or raise this user's quota, then try again: "+unharmed,
			problem.ErrDiskFull, place(at), room(at), err)}
	case errors.Is(err, unix.EIO):
		return explained{problem.New(problem.Unavailable,
			"the disk of %s failed (%w). This says nothing of the data yet: look into the kernel's log (dmesg) and repair or replace the disk, then try again", place(at), err)}
	}
	return err
}

// Cause is an error with what a library says of its cause beside it.
func Cause(err error, cause error) error { return caused{err, cause} }

type caused struct {
	error
	cause error
}

func (c caused) Unwrap() []error { return []error{c.error, c.cause} }

// Full reports whether next to nothing can be written where the path is, for errors
// that do not say so.
func Full(path string) bool {
	free, _, files := free(path)
	const little = 64 << 10
	return free >= 0 && free < little || files == 0
}

// Free is the room in bytes that this user may fill where the path is; negative where
// that cannot be told.
func Free(path string) int64 {
	bytes, _, _ := free(path)
	return bytes
}

// free is the room that this user may fill and all there is, in bytes, and how many
// more files there may be; negative where that cannot be told, or has no bound.
func free(path string) (free, all, files int64) {
	var disk unix.Statfs_t
	if unix.Statfs(existing(path), &disk) != nil {
		return -1, -1, -1
	}
	files = -1
	if disk.Files > 0 {
		files = int64(disk.Ffree) //nolint:gosec,unconvert // of another type on other systems
	}
	blocks := disk.Bavail
	if unix.Geteuid() == 0 { // some are kept for it
		blocks = disk.Bfree
	}
	return int64(blocks) * int64(disk.Bsize), int64(disk.Blocks) * int64(disk.Bsize), files //nolint:gosec,unconvert // as above
}

// room says how much is free where the path is.
func room(path string) string {
	free, all, files := free(path)
	switch {
	case free < 0:
		return "no room left"
	case files == 0:
		return fmt.Sprintf("room for no more files (of %s, %s are free)", size(all), size(free))
	}
	return fmt.Sprintf("%s of %s free", size(free), size(all))
}

func size(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%.4g MiB", float64(bytes)/(1<<20))
}

// place names the file system of the path by where it is mounted.
func place(path string) string {
	at, err := filepath.Abs(existing(path))
	if err != nil {
		return "the file system of " + path
	}
	for {
		above := filepath.Dir(at)
		if device(above) != device(at) || above == at {
			return "the file system at " + at
		}
		at = above
	}
}

// device is the number of the path's file system; 0 where it has none.
func device(path string) uint64 {
	var info unix.Stat_t
	if unix.Stat(path, &info) != nil {
		return 0
	}
	return uint64(info.Dev) //nolint:gosec,unconvert // of another type on other systems
}

// existing is the path, or the folder above it that is there.
func existing(path string) string {
	for device(path) == 0 && filepath.Dir(path) != path {
		path = filepath.Dir(path)
	}
	return path
}
