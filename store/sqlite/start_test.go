package sqlite_test

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/lossydisk"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
	"github.com/tandem-tune/tandem/store/storetest"
)

// fill leaves so many bytes of room on the disk.
func fill(t *testing.T, disk string, left int) {
	t.Helper()
	var room syscall.Statfs_t
	if err := syscall.Statfs(disk, &room); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(disk, "ballast"), make([]byte, int(room.Bavail)*int(room.Bsize)-left), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wrong are verdicts that make people who obey them lose data.
func wrong(said string) bool {
	return strings.Contains(said, "is damaged") || strings.Contains(said, "another server") || strings.Contains(said, "tandem restore")
}

// TestAStartOnAFullDiskIsNoVerdict starts a server on a disk with ever more room, from
// none at all, on each kind of folder: it says that the disk is full, where, and how
// much is free, and nothing else; and once there is room all is there.
func TestAStartOnAFullDiskIsNoVerdict(t *testing.T) {
	t.Parallel()
	const changes = 8
	older := of(t, 6)
	for name, prepare := range map[string]func(t *testing.T, path string){
		"nothing": func(*testing.T, string) {},
		"closed":  func(t *testing.T, path string) { served(t, path, changes) },
		"ended unclean": func(t *testing.T, path string) {
			elsewhere := fresh(t)
			store := open(t, elsewhere)
			fillStudy(t, store, changes)
			for _, end := range []string{"", "-wal", ".unclean", ".acknowledged"} { // as after kill -9
				copyFile(t, elsewhere+end, path+end)
			}
		},
		"of an earlier version": func(t *testing.T, path string) { copyFile(t, older, path) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := lossydisk.Small(t)
			refused, opened := 0, 0
			for left := 0; opened < 3 && left < 4<<20; left += max(4096, left/4>>12<<12) {
				path := filepath.Join(disk, "tandem.db")
				prepare(t, path)
				fill(t, disk, left)
				for range 2 { // whoever is refused tries again
					store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
					if err == nil {
						opened++
						err = store.Apply(t.Context(), storetest.NewStudy("late"))
						if err != nil && !errors.Is(err, problem.ErrDiskFull) || storetest.Broken(store) {
							t.Errorf("with %d bytes of room it starts, and a change is refused with %v", left, err)
						}
						_ = store.Close()
						break
					}
					said := err.Error()
					if wrong(said) || !errors.Is(err, problem.ErrDiskFull) || !strings.Contains(said, "the file system at "+disk) || !strings.Contains(said, "free") {
						t.Errorf("with %d bytes of room: %s", left, said)
					}
					refused++
				}
				lossydisk.Free(t, filepath.Join(disk, "ballast"))
				store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
				if err != nil {
					t.Fatalf("after %d bytes of room, with all of it: %v", left, err)
				}
				if name == "closed" || name == "ended unclean" {
					wantWhole(t, store, "s1", []int{0, 1, 2, 3, 4, 5, 6, 7}[:changes])
				}
				if err := store.Close(); err != nil {
					t.Error(err)
				}
				if _, err := sqlite.Verify(t.Context(), path); err != nil {
					t.Error(err)
				}
				emptied(t, disk)
			}
			if refused == 0 || opened < 3 {
				t.Errorf("%d starts were refused, and %d were not: this shows nothing", refused, opened)
			}
		})
	}
}

func fillStudy(t *testing.T, store *sqlite.Store, changes int) {
	t.Helper()
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	for number := range changes {
		storetest.Apply(t, store, large("s1", number))
	}
}

func served(t *testing.T, path string, changes int) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fillStudy(t, store, changes)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func emptied(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	for _, file := range files {
		err = errors.Join(err, os.RemoveAll(file))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestACopyWithoutRoomLeavesNothing, such as the one before a migration.
func TestACopyWithoutRoomLeavesNothing(t *testing.T) {
	t.Parallel()
	path, disk := fresh(t), lossydisk.Small(t)
	served(t, path, 200) // more than the disk has, and than SQLite writes at once
	if err := dbfile.Copy(t.Context(), path, filepath.Join(disk, "copy")); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("it is told %v", err)
	}
	if left, err := os.ReadDir(disk); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestAStartOnAFileSystemThatCanOnlyBeRead says so.
func TestAStartOnAFileSystemThatCanOnlyBeRead(t *testing.T) {
	t.Parallel()
	disk := lossydisk.Small(t)
	path := filepath.Join(disk, "tandem.db")
	served(t, path, 3)
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skip(err)
	}
	_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err == nil || wrong(err.Error()) || !strings.Contains(err.Error(), "the file system at "+disk+" can only be read") {
		t.Errorf("it is told %v", err)
	}
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	wantWhole(t, open(t, path), "s1", []int{0, 1, 2})
}

// TestAStartThatTheMachineRefusesIsNoVerdict has each kind of system call fail, at each
// of its first calls, on a sound database: what is said is what the machine said.
func TestAStartThatTheMachineRefusesIsNoVerdict(t *testing.T) {
	t.Parallel()
	requireStrace(t)
	for fault, told := range map[string]string{
		"EMFILE": "no more files can be opened", "EACCES": "may not use", "EROFS": "can only be read", "ENOSPC": "disk is full", "EDQUOT": "disk is full", "EIO": "failed",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			met := 0
			calls := []string{"openat"}
			if fault != "EMFILE" && fault != "EACCES" {
				calls = append(calls, "pwrite64", "fsync,fdatasync", "ftruncate")
			}
			for _, call := range calls {
				for when := 1; when <= 9; when += 2 {
					path := fresh(t)
					served(t, path, 1)
					arguments := []string{"-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e", fmt.Sprintf("inject=%s:error=%s:when=%d+", call, fault, when)}
					for _, end := range []string{"", "-wal", "-shm", "-journal", ".lock", ".unclean", ".acknowledged"} {
						arguments = append(arguments, "-P", path+end)
					}
					command := exec.CommandContext(t.Context(), "strace", append(arguments, os.Args[0])...)
					command.Env = append(os.Environ(), childRole+"=failing", childPath+"="+path, "GOMAXPROCS=1")
					output, err := command.StdoutPipe()
					if err == nil {
						err = command.Start()
					}
					if err != nil {
						t.Fatal(err)
					}
					server := process{command, bufio.NewScanner(output)}
					said := strings.Join(server.acknowledged(t, map[string][]int{}, math.MaxInt), "\n")
					_ = command.Wait()
					if reason, refused := strings.CutPrefix(said, "refused to start: "); refused {
						met++
						if wrong(reason) || !strings.Contains(reason, told) {
							t.Errorf("%s fails with %s from the call %d on: %s", call, fault, when, reason)
						}
					}
					store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
					if err != nil {
						t.Fatalf("afterwards: %v", err)
					}
					if err := store.Close(); err != nil {
						t.Error(err)
					}
				}
			}
			if met == 0 {
				t.Error("no start was refused: this shows nothing")
			}
		})
	}
}

// A start that the disk refuses leaves no lock to a process that is started meanwhile.
func TestARefusedStartLeavesNoLock(t *testing.T) {
	t.Parallel()
	disk := lossydisk.Small(t)
	fill(t, disk, 0)
	var over atomic.Bool
	defer over.Store(true)
	go func() {
		for !over.Load() {
			_ = exec.CommandContext(t.Context(), "true").Run()
		}
	}()
	for range 2000 {
		if _, err := sqlite.Open(t.Context(), filepath.Join(disk, "tandem.db"), sqlite.Options{}); err == nil || wrong(err.Error()) {
			t.Fatal(err)
		}
	}
}
