package lossydisk

import (
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
