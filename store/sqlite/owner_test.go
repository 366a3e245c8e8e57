package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/store/storetest"
)

func TestSecondServerIsToldWhoHasTheDatabase(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	first := open(t, path)
	storetest.Fill(t, first)
	want := storetest.Picture(t, first)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // asking does not take the holder's name away
		_, err = sqlite.Open(t.Context(), path, sqlite.Options{})
		if !problem.Is(err, problem.Conflict) || !strings.Contains(err.Error(), fmt.Sprintf("process %d on %s", os.Getpid(), host)) {
			t.Errorf("the second server is told %v", err)
		}
	}
	if got := storetest.Picture(t, first); got != want {
		t.Errorf("the first server has\n%s\nwant\n%s", got, want)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if got := storetest.Picture(t, open(t, path)); got != want {
		t.Errorf("the next server has\n%s\nwant\n%s", got, want)
	}
}

// Somebody who removes the lock file lets a second server in. The first one
// must then not write any more, since it knows less than the second.
func TestServerThatWasReplacedStops(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	first := open(t, path)
	storetest.Apply(t, first, storetest.NewStudy("s1"))
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	second := open(t, path)
	storetest.Apply(t, second, storetest.Step("s1", 0))
	for range 2 {
		if err := first.Apply(t.Context(), storetest.Step("s1", 1)); !problem.Is(err, problem.Unavailable) {
			t.Errorf("the first server was told %v", err)
		}
	}
	if err := first.Err(); !storetest.Broken(first) || err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("the first server stopped because of %v", err)
	}
	storetest.Apply(t, second, storetest.Step("s1", 1))
	if err := second.Err(); err != nil {
		t.Error(err)
	}
}

func TestNetworkFilesystemsAreRefused(t *testing.T) {
	t.Parallel()
	for number, name := range map[uint32]string{
		0x6969: "NFS", 0xFE534D42: "SMB", 0xFF534D42: "CIFS", 0x65735546: "FUSE", 0x01021997: "9P",
	} {
		err := sqlite.RefuseNetwork(number)
		if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%#x: %v", number, err)
		}
	}
	for name, number := range map[string]uint32{"ext4": 0xEF53, "XFS": 0x58465342, "Btrfs": 0x9123683E, "tmpfs": 0x01021994, "overlay": 0x794C7630} {
		if err := sqlite.RefuseNetwork(number); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	store, err := sqlite.Open(t.Context(), fresh(t), sqlite.Options{AllowNetworkFilesystem: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

func TestFolderThatIsMissingOrNoFolder(t *testing.T) {
	t.Parallel()
	file := fresh(t)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"missing": filepath.Join(t.TempDir(), "none", "tandem.db"), "a file": filepath.Join(file, "tandem.db"), "the database is a folder": t.TempDir(),
	} {
		if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); !problem.Is(err, problem.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
