// Package proc reads what the kernel tells of the machine, of processes and of
// control groups, in /proc and /sys.
package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Host reads the machine's files below a root, "/" outside of tests.
type Host struct{ Root string }

// NewHost reads below the root; "/" when that is empty.
func NewHost(root string) Host {
	if root == "" {
		root = "/"
	}
	return Host{Root: root}
}

// Path is that of a file on this machine.
func (h Host) Path(name string) string { return filepath.Join(h.Root, name) }

// Text is a file's content without the white space around it.
func (h Host) Text(name string) (string, error) {
	content, err := readText(h.Path(name))
	return strings.TrimSpace(content), err
}

// Number is the number that a file has.
func (h Host) Number(name string) (uint64, error) {
	text, err := h.Text(name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(text, 10, 64)
}

// Glob finds files.
func (h Host) Glob(pattern string) []string {
	// The only error is a bad pattern, and ours are constants.
	found, _ := filepath.Glob(h.Path(pattern))
	return found
}

// Exists reports whether there is such a file or folder.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Writable reports whether this process may write to the path.
func Writable(path string) bool { return unix.Access(path, unix.W_OK) == nil }
