package lossydisk

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// Small mounts a real file system of 8 MiB for the test and returns its folder.
// Where that is not allowed, the test is skipped.
func Small(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// Free removes what took the room of a small disk, which is free when it returns: a
// process that is being forked may still hold a removed file open, and its room with it.
func Free(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		err := os.Truncate(path, 0)
		if errors.Is(err, syscall.EISDIR) {
			err = nil
		}
		if err = errors.Join(err, os.Remove(path)); err != nil {
			t.Fatal(err)
		}
	}
}
