package proc

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// readText is [os.ReadFile] with half of its system calls and nothing to throw
// away, for the small files of /proc: hundreds are read in each sample of a
// large tree.
func readText(path string) (string, error) {
	descriptor, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for errors.Is(err, unix.EINTR) {
		descriptor, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(descriptor)
	var room [4096]byte // on the stack; larger files move to the heap
	content := room[:0]
	for {
		n, err := unix.Read(descriptor, content[len(content):cap(content)])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return "", &fs.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return string(content), nil
		}
		if content = content[:len(content)+n]; len(content) == cap(content) {
			content = append(content, 0)[:len(content)]
		}
	}
}

// numbered are the entries of a folder that are numbers: processes, or threads.
func (h Host) numbered(folder string) []int {
	directory, err := os.Open(h.Path(folder))
	if err != nil {
		return nil // it ended meanwhile
	}
	defer directory.Close()
	names, _ := directory.Readdirnames(-1) // those before the fault are there
	list := make([]int, 0, len(names))
	for _, name := range names {
		if number, err := strconv.Atoi(name); err == nil && number > 0 {
			list = append(list, number)
		}
	}
	return list
}

// members are the processes of a process group.
func (h Host) members(group int) []int {
	var list []int
	for _, pid := range h.numbered("proc") {
		if h.group(pid) == group {
			list = append(list, pid)
		}
	}
	return list
}

// group is the process group of a process; 0 when it has ended.
func (h Host) group(pid int) int {
	if h.Root == "/" {
		group, err := unix.Getpgid(pid)
		if err != nil {
			return 0
		}
		return group
	}
	line, err := h.Text(processFile(pid, "stat"))
	if err != nil {
		return 0
	}
	u, err := parseUsage(line)
	if err != nil {
		return 0
	}
	return u.group
}
