package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/store/storetest"
)

// requireStrace skips where system calls cannot be made to fail.
func requireStrace(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("there is no strace (Debian: apt-get install strace), which makes system calls fail")
	}
	if output, err := exec.CommandContext(t.Context(), "strace", "-f", "-qq", "-e", "trace=fsync", "true").CombinedOutput(); err != nil {
		t.Skipf("strace does not work here: %v: %s", err, output)
	}
}

// childFails makes changes while its system calls fail now and then. What passes
// is tried again; what does not must stop the store for good.
func childFails() error {
	const changes = 100
	ctx := context.Background()
	store, err := sqlite.Open(ctx, os.Getenv(childPath), sqlite.Options{})
	if err != nil {
		fmt.Println("refused to start:", strings.ReplaceAll(err.Error(), "\n", " "))
		return nil
	}
	attempts := 0
	try := func(apply func() error) (goes bool, err error) {
		for ; ; attempts++ {
			err := apply()
			switch {
			case err == nil:
				return true, nil
			case storetest.Broken(store):
				return false, nil
			case !errors.Is(err, problem.ErrDiskFull) || attempts > 1000:
				return false, fmt.Errorf("a change was refused, and the store goes on: %w", err)
			}
		}
	}
	goes, err := try(func() error { return store.Apply(ctx, storetest.NewStudy("s1")) })
	for number := 0; goes && number < changes; number++ {
		goes, err = try(func() error { return store.Apply(ctx, storetest.Step("s1", number)) })
		if goes {
			fmt.Println("ack s1", number)
		}
	}
	if err != nil {
		return err
	}
	if storetest.Broken(store) {
		if store.Apply(ctx, storetest.NewStudy("late")) == nil {
			return errors.New("a change was acknowledged after the failure")
		}
		if _, err := store.Studies(ctx); err == nil {
			return errors.New("the store still answers after the failure")
		}
		fmt.Println("stopped:", strings.ReplaceAll(store.Err().Error(), "\n", " "))
		return nil
	}
	if attempts > 0 {
		fmt.Println("tried again:", attempts)
	}
	if err := store.Close(); err != nil {
		fmt.Println("closed with:", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return nil
}

// A system call of the server fails, at each of its first calls in turn, once or
// from then on. Nothing acknowledged is lost, no half of a change is there, the
// next server starts, and nothing is acknowledged behind a failure of the disk.
func TestFailingSystemCalls(t *testing.T) {
	t.Parallel()
	requireStrace(t)
	for _, one := range []struct {
		name, calls, fault string
		when               []string
		there              bool   // the database, before the server starts
		met                string // what some of the servers must have said
	}{
		{"fsync fails at the first start", "fsync,fdatasync", "EIO", []string{"1", "2", "3", "4", "6", "8", "11", "15"}, false, "refused to start:"},
		{"fsync fails once", "fsync,fdatasync", "EIO", []string{"2", "4", "5", "6", "7", "8", "10", "13", "17", "22", "30"}, true, "stopped:"},
		{"fsync fails from then on", "fsync,fdatasync", "EIO", []string{"4+", "9+", "25+"}, true, "stopped:"},
		{"a write fails", "pwrite64", "EIO", []string{"3", "5", "7", "9", "12", "16", "21", "30", "60"}, true, "stopped:"},
		{"the disk is full once", "pwrite64", "ENOSPC", []string{"3", "5", "7", "9", "12", "16", "21", "30", "60"}, true, "tried again:"},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			met := 0
			for _, when := range one.when {
				path := fresh(t)
				if one.there {
					if err := open(t, path).Close(); err != nil {
						t.Fatal(err)
					}
				}
				acknowledged := map[string][]int{}
				command := exec.CommandContext(t.Context(), "strace", "-f", "-qq", "-o", "/dev/null",
					"-e", "trace="+one.calls, "-e", fmt.Sprintf("inject=%s:error=%s:when=%s", one.calls, one.fault, when), os.Args[0])
				command.Env = append(os.Environ(), childRole+"=failing", childPath+"="+path, "GOMAXPROCS=1") // strace counts by thread
				command.Stderr = os.Stderr
				output, err := command.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := command.Start(); err != nil {
					t.Fatal(err)
				}
				server := process{command, bufio.NewScanner(output)}
				said := strings.Join(server.acknowledged(t, acknowledged, math.MaxInt), "\n")
				if err := command.Wait(); err != nil {
					t.Fatalf("at call %s: %v: %s", when, err, said)
				}
				t.Logf("at call %s: %d acknowledged, and the server said %q", when, len(acknowledged["s1"]), said)
				if strings.Contains(said, one.met) {
					met++
				}
				store := open(t, path)
				if len(acknowledged["s1"]) > 0 {
					wantWhole(t, store, "s1", acknowledged["s1"])
				}
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
				if _, err := sqlite.Verify(t.Context(), path); err != nil {
					t.Errorf("at call %s: %v", when, err)
				}
			}
			t.Logf("%d of %d servers said %q", met, len(one.when), one.met)
			if met == 0 {
				t.Errorf("no server said %q: the faults did not reach the store", one.met)
			}
		})
	}
}
