package artifact_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/store/artifact/artifacttest"
)

// The test that kills a store runs this test binary again as its process.
const (
	childFolder = "TANDEM_ARTIFACT_CHILD_FOLDER"
	childSeed   = "TANDEM_ARTIFACT_CHILD_SEED"
)

func TestMain(m *testing.M) {
	folder := os.Getenv(childFolder)
	if folder == "" {
		os.Exit(m.Run())
	}
	fmt.Println("failed:", putForEver(folder))
	os.Exit(1)
}

// putForEver puts artifacts and says which of them were accepted.
func putForEver(folder string) error {
	var seed uint64
	if _, err := fmt.Sscan(os.Getenv(childSeed), &seed); err != nil {
		return err
	}
	store, err := artifact.Open(folder)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	failed := make(chan error, 4)
	for writer := range uint64(cap(failed)) {
		group.Go(func() {
			var err error
			for number := uint64(0); err == nil; number++ {
				content := random(seed<<32|writer<<16|number, 20_000)
				name := artifacttest.Name(content)
				if _, err = store.Put(context.Background(), name, bytes.NewReader(content), room); err == nil {
					fmt.Println("ack", name) // one write, which the pipe keeps whole
				}
			}
			failed <- err
		})
	}
	group.Wait()
	return <-failed
}

func random(seed uint64, size int) []byte {
	source := rand.New(rand.NewPCG(seed, 1))
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(source.Uint32())
	}
	return content
}

// A process is killed in the middle of its work, again and again on the same
// folder: whatever it accepted is there, and whatever is there is whole.
func TestKilledStoreLosesNothingItAccepted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "artifacts")
	source := rand.New(rand.NewPCG(2026, 2))
	var accepted []string
	for round := range 6 {
		command := exec.CommandContext(t.Context(), os.Args[0])
		command.Env = append(os.Environ(), childFolder+"="+dir, fmt.Sprintf("%s=%d", childSeed, round))
		command.Stderr = os.Stderr
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(output)
		for count := 1 + source.IntN(200); lines.Scan(); count-- {
			if count == 0 { // what it says before it dies counts as well
				if err := command.Process.Signal(syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			var name string
			if _, err := fmt.Sscanf(lines.Text(), "ack %s", &name); err != nil {
				t.Fatalf("the process said %q", lines.Text())
			}
			accepted = append(accepted, name)
		}
		if err := command.Wait(); err == nil {
			t.Fatal("the process was not killed")
		}
		wantComplete(t, dir, accepted)
	}
}

func wantComplete(t *testing.T, dir string, accepted []string) {
	t.Helper()
	store, err := artifact.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range accepted {
		if !store.Exists(name) {
			t.Errorf("artifact %s was accepted and is gone", name)
		}
	}
	entries := artifacttest.List(t, store)
	for _, entry := range entries {
		if artifacttest.Name(read(t, store, entry.SHA256)) != entry.SHA256 {
			t.Errorf("artifact %s has other bytes", entry.SHA256)
		}
	}
	if files := regular(t, dir); len(files) != len(entries) {
		t.Errorf("%d files with %d artifacts: something was left behind", len(files), len(entries))
	}
}
