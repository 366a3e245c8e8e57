package sandbox

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// TestMain is the launcher where this package starts its own program again, and
// what is held where that has become the command.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], Subcommand()) {
		os.Exit(Process())
	}
	switch os.Getenv("ROLE") {
	case "burglar":
		_ = json.NewEncoder(os.Stdout).Encode(whatSucceeds())
		os.Exit(0)
	case "victim":
		fmt.Println("here")
		time.Sleep(time.Hour)
		os.Exit(0)
	case "self":
		fmt.Println(os.Geteuid())
		os.Exit(0)
	case "network":
		if err := connects("tcp", os.Getenv("ADDRESS")); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println("connected")
		}
		os.Exit(0)
	case "worker":
		os.Exit(work())
	case "limited":
		// As a worker whose user may have forty processes.
		err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 40, Max: 40})
		if err == nil {
			err = syscall.Exec(ThisProgram, append([]string{"tandem"}, Subcommand()...), []string{"LANG=C"})
		}
		fmt.Println(err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// work is a worker that starts a command and does nothing else.
func work() int {
	runtime.LockOSThread() // the command ends with the thread that started it
	held, err := order{Layers: []string{Limits, Privileges}, Path: "/bin/sleep", Arguments: []string{"sleep", "1000"}}.launcher()
	if err == nil {
		err = held.Command.Start()
	}
	if err == nil {
		err = held.Await()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(held.Command.Process.Pid)
	time.Sleep(time.Hour)
	return 0
}

// program is this test's own binary.
func program(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run has the order carried out, and returns what the command wrote.
func run(t *testing.T, o order) (string, error) {
	t.Helper()
	held, err := o.launcher()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	var out, errors strings.Builder
	held.Command.Stdout, held.Command.Stderr = &out, &errors
	if err := held.Command.Start(); err != nil {
		return "", err
	}
	awaited := held.Await()
	ended := held.Command.Wait()
	if awaited != nil {
		return "", awaited
	}
	if ended != nil {
		return "", fmt.Errorf("%w: %s", ended, errors.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// probed are the layers of this machine, by name.
func probed(t *testing.T) map[string]Layer {
	t.Helper()
	found, err := Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Layer{}
	for _, one := range found {
		byName[one.Name] = one
	}
	return byName
}

// place is where commands are held in these tests.
type place struct{ own, study, other string }

func newPlace(t *testing.T) place {
	t.Helper()
	folder, err := resolve(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := place{own: filepath.Join(folder, "scratch", "1"), study: filepath.Join(folder, "study"), other: filepath.Join(folder, "scratch", "2")}
	for _, one := range []string{filepath.Join(p.own, Temporary), p.study, p.other} {
		if err := os.MkdirAll(one, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// order is one for the role of this test's own binary, with what a worker grants.
func (p place) order(t *testing.T, role string, names []string) order {
	t.Helper()
	granted := everybodys()
	granted.addTree(p.study, nil)
	granted.addProgram(program(t), "")
	granted.write = append(granted.write, p.own, filepath.Join(p.own, Temporary))
	return order{
		Layers: names, Reach: granted.shared(), Temporary: filepath.Join(p.own, Temporary), Directory: p.study,
		Path: program(t), Arguments: []string{"script"}, Environment: []string{"ROLE=" + role, "GORACE=atexit_sleep_ms=0"},
	}
}

// start starts a process that ends with the test, and returns its first line.
func start(t *testing.T, environment ...string) (command *exec.Cmd, said string) {
	t.Helper()
	command = exec.Command(program(t))
	command.Env = environment
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill() // it may have ended
		_ = command.Wait()
	})
	if said, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return command, strings.TrimSpace(said)
}
