// Package ranks runs the processes that train one trial together, as torchrun starts those
// of one machine: each has its rank in variables. This program runs it, as the trial's
// command, in the trial's sandbox and process group.
//
// Its one invariant: when Process returns, none of them runs. It must not know what they
// train.
package ranks

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/study/system"
)

// Subcommand is what this program is started with to run them.
const Subcommand = "ranks"

// patience is how long the others may take to end when one has failed.
const patience = 5 * time.Second

// Command is the argv of count processes of one with the program.
func Command(count int, program string, args []string) []string {
	return append([]string{"tandem", Subcommand, strconv.Itoa(count), program}, args...)
}

// Process runs them, by the arguments behind [Subcommand], and returns the exit code: that of
// the first which failed. What the others than rank 0 print goes to standard error, so that
// only rank 0 reports by lines.
func Process(args []string) int {
	if len(args) < 2 {
		return fail(errors.New("a worker starts this, for studies with processes"))
	}
	count, err := strconv.Atoi(args[0])
	if err != nil {
		return fail(err)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM) // the whole process group gets it
	runtime.LockOSThread()                                  // the processes end with this thread
	address, port, err := free()
	if err != nil {
		return fail(err)
	}
	started := make([]*exec.Cmd, 0, count)
	ends := make(chan error, count)
	for rank := range count {
		one := exec.Command(args[1], args[2:]...) //nolint:gosec // the study's own command
		one.Stdin, one.Stdout, one.Stderr = nil, os.Stderr, os.Stderr
		if rank == 0 {
			one.Stdout = os.Stdout
		}
		one.Env = append(shared(count), "WORLD_SIZE="+args[0], "LOCAL_WORLD_SIZE="+args[0], "GROUP_RANK=0", "GROUP_WORLD_SIZE=1",
			fmt.Sprint("RANK=", rank), fmt.Sprint("LOCAL_RANK=", rank), "MASTER_ADDR="+address, "MASTER_PORT="+port)
		one.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err = one.Start(); err != nil {
			err = fmt.Errorf("rank %d cannot be started: %w", rank, err)
			break
		}
		started = append(started, one)
		go func() { ends <- one.Wait() }()
	}
	ended := 0
	for ; err == nil && ended < len(started); ended++ {
		err = <-ends
	}
	if err != nil { // what failed first counts
		end(started, syscall.SIGTERM)
		late := time.AfterFunc(patience, func() { end(started, syscall.SIGKILL) })
		defer late.Stop()
	}
	for ; ended < len(started); ended++ {
		<-ends
	}
	return code(err)
}

// shared are the variables of each: a share of the threads.
func shared(count int) []string {
	own := os.Environ()
	for _, name := range system.ThreadVariables() {
		if threads, err := strconv.Atoi(os.Getenv(name)); err == nil {
			own = append(own, fmt.Sprint(name, "=", max(1, threads/count)))
		}
	}
	return own
}

func end(started []*exec.Cmd, by os.Signal) {
	for _, one := range started {
		_ = one.Process.Signal(by) // it may have ended
	}
}

// free is an address of this machine at which rank 0 can listen.
func free() (host, port string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", fmt.Errorf("find a free port for the ranks: %w", err)
	}
	defer listener.Close()
	return net.SplitHostPort(listener.Addr().String())
}

// code is the exit code for how the first ended that failed. Of one that was killed, for want
// of memory, say, the worker is to know that.
func code(err error) int {
	var ended *exec.ExitError
	if err == nil {
		return 0
	}
	if !errors.As(err, &ended) {
		return fail(err)
	}
	status, _ := ended.Sys().(syscall.WaitStatus)
	if status.Signaled() && status.Signal() == syscall.SIGKILL {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return ended.ExitCode()
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "ranks:", err)
	return 1
}
