package backup_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/store/backup"
	"github.com/tandem-tune/tandem/store/lossydisk"
)

// TestAFullDiskIsNoVerdictOnTheData backs up, restores, verifies and opens artifacts on
// a disk with ever more room: what fails says that the disk is full and where, and never
// that the data or the backup is damaged; with all the room, it works.
func TestAFullDiskIsNoVerdictOnTheData(t *testing.T) {
	t.Parallel()
	data := filled(t)
	file, _ := taken(t, data)
	database, err := os.ReadFile(filepath.Join(data, backup.Database))
	if err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]struct {
		prepare, do func(t *testing.T, disk string) error
	}{
		"backup": {nil, func(t *testing.T, disk string) error {
			_, err := source(data).Write(t.Context(), filepath.Join(disk, "backup"))
			return err
		}},
		"restore": {nil, func(t *testing.T, disk string) error {
			_, err := backup.Restore(t.Context(), file, filepath.Join(disk, "data"))
			return err
		}},
		"verify": {func(_ *testing.T, disk string) error {
			return os.WriteFile(filepath.Join(disk, backup.Database), database, 0o600)
		}, func(t *testing.T, disk string) error {
			_, err := backup.Verify(t.Context(), disk)
			if err != nil && strings.Contains(err.Error(), "artifacts of checkpoints are damaged") {
				return nil // they were not put there
			}
			return err
		}},
		"artifacts": {nil, func(_ *testing.T, disk string) error {
			_, err := artifact.Open(filepath.Join(disk, "artifacts"))
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused, passed := 0, 0
			for left := 0; passed < 2 && left < 4<<20; left += 4096 {
				disk := t.TempDir()
				if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=8m,nr_inodes=40"); err != nil {
					t.Skipf("a small file system cannot be mounted here: %v", err)
				}
				if one.prepare != nil {
					if err := one.prepare(t, disk); err != nil {
						t.Fatal(err)
					}
				}
				var room syscall.Statfs_t
				err := syscall.Statfs(disk, &room)
				ballast := filepath.Join(disk, "ballast")
				if err == nil {
					err = os.WriteFile(ballast, make([]byte, int(room.Bavail)*int(room.Bsize)-left), 0o600)
				}
				for i := 0; err == nil && left == 0 && name == "artifacts"; i++ { // folders take no room on it, but are files
					if err = os.Mkdir(filepath.Join(disk, "ballast"+strings.Repeat("x", i)+"-"), 0o700); errors.Is(err, syscall.ENOSPC) {
						err = nil
						break
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := one.do(t, disk); err == nil {
					passed++
				} else {
					refused++
					said := err.Error()
					if !errors.Is(err, problem.ErrDiskFull) || !strings.Contains(said, "the file system at "+disk) || !strings.Contains(said, "free") ||
						strings.Contains(said, "is damaged") || strings.Contains(said, "take another backup") || strings.Contains(said, "tandem restore") {
						t.Errorf("with %d bytes of room: %s", left, said)
					}
				}
				left, err := filepath.Glob(filepath.Join(disk, "ballast*"))
				if err != nil {
					t.Fatal(err)
				}
				lossydisk.Free(t, left...)
				if _, err := os.Stat(filepath.Join(disk, "data", backup.Database)); err != nil { // it was not restored
					_ = os.Remove(filepath.Join(disk, "backup"))
					if err := one.do(t, disk); err != nil {
						t.Errorf("with all the room: %v", err)
					}
				}
				if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
					t.Error(err)
				}
			}
			if refused == 0 && name != "verify" || passed == 0 { // verifying may need no room at all
				t.Errorf("%d were refused, and %d not: this shows nothing", refused, passed)
			}
		})
	}
}
