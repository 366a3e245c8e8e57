package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/store/storetest"
	"github.com/tandem-tune/tandem/study/journal"
)

// The tests that kill a server, or take its disk away, run this test binary
// again as that server.
const (
	childRole  = "TANDEM_STORE_CHILD"
	childPath  = "TANDEM_STORE_CHILD_PATH"
	childRound = "TANDEM_STORE_CHILD_ROUND"
	childLimit = "TANDEM_STORE_CHILD_LIMIT"
	childPower = "TANDEM_STORE_CHILD_POWER" // set on a disk whose power is cut
)

func TestMain(m *testing.M) {
	role := os.Getenv(childRole)
	if role == "" {
		os.Exit(m.Run())
	}
	roles := map[string]func() error{
		"writer":    func() error { return child(childWrites) },
		"limited":   func() error { return child(childMeetsLimit) },
		"migrating": childMigrates,
		"failing":   childFails,
		"careless": func() error {
			return child(func(store *sqlite.Store) error {
				if err := store.Careless(); err != nil {
					return err
				}
				return childWrites(store)
			})
		},
	}
	if err := roles[role](); err != nil {
		fmt.Println("failed:", strings.ReplaceAll(err.Error(), "\n", " "))
		os.Exit(1)
	}
	os.Exit(0)
}

func child(role func(*sqlite.Store) error) error {
	store, err := sqlite.Open(context.Background(), os.Getenv(childPath), sqlite.Options{AllowNetworkFilesystem: os.Getenv(childPower) != ""})
	if err != nil {
		return err
	}
	if err := role(store); err != nil {
		return err
	}
	return store.Close()
}

// childWriters is how many write at a time in a child.
const childWriters = 8

// childWrites makes changes for ever and says which were acknowledged.
func childWrites(store *sqlite.Store) error {
	round := os.Getenv(childRound)
	var group sync.WaitGroup
	failed := make(chan error, childWriters)
	for writer := range childWriters {
		group.Go(func() {
			id := fmt.Sprintf("r%s-w%d", round, writer)
			err := store.Apply(context.Background(), storetest.NewStudy(id))
			for number := 0; err == nil; number++ {
				if err = store.Apply(context.Background(), storetest.Step(id, number)); err == nil {
					fmt.Printf("ack %s %d\n", id, number) // one write, which the pipe keeps whole
				}
			}
			failed <- err
		})
	}
	group.Wait()
	return <-failed
}

// childMeetsLimit writes until files may not grow any more, as if the disk had
// failed there, and checks that nothing is acknowledged from then on.
func childMeetsLimit(store *sqlite.Store) error {
	var limit uint64
	if _, err := fmt.Sscan(os.Getenv(childLimit), &limit); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ) // else the kernel ends the process at the limit
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		return err
	}
	if err := store.Apply(context.Background(), storetest.NewStudy("s1")); err != nil {
		return err
	}
	var err error
	for number := 0; err == nil; number++ {
		if number == 10_000 {
			return errors.New("the limit was never met")
		}
		if err = store.Apply(context.Background(), large("s1", number)); err == nil {
			fmt.Printf("ack s1 %d\n", number)
		}
	}
	if !storetest.Broken(store) {
		return fmt.Errorf("a change was refused, but the store goes on: %w", err)
	}
	fmt.Println("broken:", store.Err())
	for number := range 10 {
		if err := store.Apply(context.Background(), storetest.NewStudy(fmt.Sprintf("late %d", number))); err == nil {
			return errors.New("a change was acknowledged after the failure")
		}
		if _, err := store.Studies(context.Background()); err == nil {
			return errors.New("the store still answers after the failure")
		}
	}
	if err := store.Close(); err != nil {
		fmt.Println("closed with", err)
	}
	return nil
}

// large is a step of 64 KiB.
func large(id string, number int) journal.Change {
	change := storetest.Step(id, number)
	change.Events[0].Data = []byte(`"` + strings.Repeat("x", 64<<10) + `"`)
	return change
}

// process is a running child.
type process struct {
	command *exec.Cmd
	lines   *bufio.Scanner
}

func start(t *testing.T, role, path string, settings ...string) process {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), append([]string{childRole + "=" + role, childPath + "=" + path}, settings...)...)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return process{command, bufio.NewScanner(output)}
}

// acknowledged reads up to count further lines and adds their numbers to the
// list of each study. It returns what else was said.
func (p process) acknowledged(t *testing.T, into map[string][]int, count int) (said []string) {
	t.Helper()
	for ; count > 0 && p.lines.Scan(); count-- {
		var id string
		var number int
		if _, err := fmt.Sscanf(p.lines.Text(), "ack %s %d", &id, &number); err != nil {
			said = append(said, p.lines.Text())
			continue
		}
		into[id] = append(into[id], number)
	}
	if err := p.lines.Err(); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	return said
}
