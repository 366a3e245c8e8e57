package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownMounts are the folders that a command has for itself in its namespace: in
// them are the sockets of services that would do things on its behalf, and what
// other commands keep in memory.
var ownMounts = []string{"/tmp", "/var/tmp", "/run"}

const sharedMemory = "/dev/shm"

// attributes are how the launcher is started: the leader of a session of its own,
// without a terminal, ended with the worker, and in namespaces of its own if
// these are wanted. A user who may not mount is made one of the same number in a
// namespace of users, where the launcher may.
func attributes(namespaces bool) *syscall.SysProcAttr {
	made := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if !namespaces {
		return made
	}
	made.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	if !mayMount() {
		made.Cloneflags |= unix.CLONE_NEWUSER
		made.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		made.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		made.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
	}
	return made
}

// separate makes the own mounts. The namespace is there already: this process
// was started in it.
func (o order) separate() (string, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "", fmt.Errorf("keep mounts apart: %w", err)
	}
	if err := o.coverMemory(); err != nil {
		return "", fmt.Errorf("mount %s: %w", sharedMemory, err)
	}
	own := []string{sharedMemory}
	for _, folder := range ownMounts {
		made, err := o.cover(folder)
		if err != nil {
			return "", fmt.Errorf("mount %s: %w", folder, err)
		}
		if made {
			own = append(own, folder)
		}
	}
	if o.Threads && os.Getuid() == 0 {
		if err := readOnlySettings(); err != nil {
			return "", err
		}
	}
	return "of its own: " + strings.Join(own, ", ") + ", System V IPC", nil
}

// cover puts an empty folder over the folder, with only those parts of it that
// were granted. It is left as it is where all of it was granted, or there is none.
// Temporary files can be written where it has no such parts.
func (o order) cover(folder string) (bool, error) {
	about, err := os.Lstat(folder)
	if err != nil || !about.IsDir() {
		return false, nil
	}
	var parts []string
	for _, path := range slices.Concat(o.Reach.Read, o.Reach.Write, o.Reach.List) {
		if within(folder, path) {
			return false, nil
		}
		if within(path, folder) {
			parts = append(parts, path)
		}
	}
	put := open(parts)
	// Landlock asks for the rights of all folders above, also of those above a
	// mount: below a folder that may be written to, nothing can be for reading only.
	if o.Temporary != "" && folder != "/run" && len(parts) == 0 {
		err = unix.Mount(o.Temporary, folder, "", unix.MS_BIND, "")
	} else {
		err = unix.Mount("tmpfs", folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=16m")
	}
	if err != nil {
		return false, err
	}
	return true, put()
}

// open opens the paths that are there. The returned function shows them again where they
// were, in what was mounted meanwhile.
func open(paths []string) (put func() error) {
	slices.Sort(paths) // what contains others comes first
	opened := map[string]int{}
	for _, path := range paths {
		if descriptor, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0); err == nil {
			opened[path] = descriptor
		}
	}
	return func() error {
		defer func() {
			for _, descriptor := range opened {
				_ = unix.Close(descriptor)
			}
		}()
		for _, path := range paths {
			if descriptor, has := opened[path]; has {
				if err := bind(descriptor, path); err != nil {
					return fmt.Errorf("keep %s: %w", path, err)
				}
			}
		}
		return nil
	}
}

// coverMemory gives the command a shared memory of its own, with those parts of the
// machine's that were granted, such as data that is kept there. Landlock lets it write
// in all of the shared memory, so parts for reading are mounted for reading.
func (o order) coverMemory() error {
	var read, write []string
	for _, path := range o.Reach.Write {
		if path != sharedMemory && within(path, sharedMemory) {
			write = append(write, path)
		}
	}
	for _, path := range o.Reach.Read {
		writable := slices.ContainsFunc(write, func(above string) bool { return within(path, above) })
		if path != sharedMemory && within(path, sharedMemory) && !writable {
			read = append(read, path)
		}
	}
	put := open(slices.Concat(read, write))
	if err := unix.Mount("tmpfs", sharedMemory, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
		return err
	}
	if err := put(); err != nil {
		return err
	}
	for _, path := range read {
		if err := readOnly(path); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("keep %s from being written: %w", path, err)
		}
	}
	return nil
}

// readOnly has what is mounted at the path read only. Where users are in a namespace of
// their own, what else holds for the mount cannot be dropped, so it is said again.
func readOnly(path string) error {
	var about unix.Statfs_t
	if err := unix.Statfs(path, &about); err != nil {
		return err
	}
	kept := uintptr(about.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC) // statfs has the same bits
	return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|kept, "")
}

// bind shows an open file or folder at the path, in place of what is there now.
func bind(descriptor int, path string) error {
	var about unix.Stat_t
	if err := unix.Fstat(descriptor, &about); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if about.Mode&unix.S_IFMT == unix.S_IFDIR {
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	} else if _, err := os.Lstat(path); err != nil {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
	}
	return unix.Mount(fmt.Sprintf("/proc/self/fd/%d", descriptor), path, "", unix.MS_BIND|unix.MS_REC, "")
}
