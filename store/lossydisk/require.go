package lossydisk

import (
	"os"
	"os/exec"
	"testing"
)

// Require mounts a disk for the test, and takes it away at its end. Where FUSE
// is not to be had, the test is skipped and says why.
func Require(t *testing.T) *Disk {
	t.Helper()
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("file systems cannot be mounted by FUSE here: %v", err)
	}
	if err := device.Close(); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		if _, err := exec.LookPath("fusermount3"); err != nil {
			t.Skip("there is no fusermount3 (Debian: apt-get install fuse3), which users need to mount by FUSE")
		}
	}
	disk, err := Mount(t.TempDir())
	if err != nil {
		t.Skipf("FUSE does not work here: %v", err)
	}
	t.Cleanup(func() {
		if err := disk.Unmount(); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return disk
}
