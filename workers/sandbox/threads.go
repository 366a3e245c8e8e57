package sandbox

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// nvidiaControl is there where NVIDIA's driver is loaded.
const nvidiaControl = "/dev/nvidiactl"

// namesThreads reports whether commands may write to the files of processes in /proc.
// CUDA names a thread of its own there when it starts, and gives up (error 304) where
// it cannot. Landlock cannot tell these files from the kernel's own settings, which
// belong to root: for root these are mounted for reading only, here, which takes
// namespaces, or by a container.
func namesThreads(driver string, found []Layer) bool {
	return exists(driver) && (os.Getuid() != 0 || holds(found, Namespaces) || settingsReadOnly())
}

// noGPUs says why commands cannot use the GPUs; empty where they can, or there are none.
func noGPUs(driver string, found []Layer) string {
	if !exists(driver) || namesThreads(driver, found) {
		return ""
	}
	return "; CUDA does not start: root needs the layer " + Namespaces + " for it, or run the worker as another user"
}

// settingsReadOnly reports whether a container shows the kernel's settings for reading
// only, as most do.
func settingsReadOnly() bool {
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"} {
		var about unix.Statfs_t
		if err := unix.Statfs(path, &about); err == nil && about.Flags&unix.ST_RDONLY == 0 {
			return false
		}
	}
	return true
}

// readOnlySettings mounts all of /proc but the processes for reading only.
func readOnlySettings() error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := "/proc/" + entry.Name()
		if strings.Trim(entry.Name(), "0123456789") == "" || entry.Type()&os.ModeSymlink != 0 {
			continue
		}
		var about unix.Statfs_t
		if err := unix.Statfs(path, &about); err != nil {
			return fmt.Errorf("look at %s: %w", path, err)
		}
		if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", path, err)
		}
		// What the mount is not for already may be locked.
		kept := uintptr(about.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC) //nolint:gosec // flags
		if err := unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|kept, ""); err != nil {
			return fmt.Errorf("mount %s for reading only: %w", path, err)
		}
	}
	return nil
}
