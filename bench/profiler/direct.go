package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/bench/launched"
	"github.com/tandem-tune/tandem/profiler/perf"
)

// direct are the workloads that run under the profiler alone. They print a line
// with "epoch" when one has ended.
func direct(python string) []workload {
	return []workload{
		ofCommand("arithmetic", "hashing in two threads, 5 epochs", 5, func() (*exec.Cmd, error) {
			self, err := os.Executable()
			return exec.Command(self, "-work", "5"), err
		}),
		ofCommand("processes", "a shell that starts 300 programs in each of 5 epochs: the worst case, as each inherits all events", 5, func() (*exec.Cmd, error) {
			return exec.Command("/bin/sh", "-c", `for e in 1 2 3 4 5; do i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done; echo "{\"epoch\": $e, \"x\": 1}"; done`), nil
		}),
		ofCommand("digits", "examples/digits-sklearn by hand, 9 short epochs", 9, func() (*exec.Cmd, error) {
			client, err := filepath.Abs("clients/python")
			if err != nil {
				return nil, err
			}
			command := exec.Command(python, "examples/digits-sklearn/train.py")
			command.Env = append(os.Environ(), "PYTHONPATH="+client, "PYTHONUNBUFFERED=1", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
			check := exec.Command(python, "-c", "import sklearn")
			if text, err := check.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("%w: %s needs scikit-learn: %s", errSkip, python, lastLine(text))
			}
			return command, nil
		}),
	}
}

// ofCommand is the workload of a command with so many epochs.
func ofCommand(name, what string, epochs int, make func() (*exec.Cmd, error)) workload {
	return workload{name, what, func(_ context.Context, profiled bool) (run, error) {
		command, err := make()
		if err != nil {
			return run{}, err
		}
		if !profiled {
			return plain(command)
		}
		got, seen, err := watched(command)
		if err == nil && seen != epochs {
			err = fmt.Errorf("%d epochs were seen, not %d", seen, epochs)
		}
		return got, err
	}}
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// arithmetic keeps two threads busy and says when an epoch has ended.
func arithmetic(epochs int) {
	for epoch := 1; epoch <= epochs; epoch++ {
		var threads sync.WaitGroup
		for range 2 {
			threads.Go(func() {
				sum := sha256.Sum256([]byte{byte(epoch)})
				for range 4_000_000 {
					sum = sha256.Sum256(sum[:])
				}
			})
		}
		threads.Wait()
		fmt.Printf("{\"epoch\": %d, \"x\": 1}\n", epoch)
	}
}

// follow reads the command's lines and calls back for those with an epoch.
func follow(out io.Reader, epoch func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if line := lines.Text(); strings.HasPrefix(line, "epoch ") || strings.HasPrefix(line, `{"epoch"`) {
				epoch()
			}
		}
	}()
	return done
}

func plain(command *exec.Cmd) (run, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return run{}, err
	}
	defer out.Close()
	command.Stdout = in
	started := time.Now()
	if err := command.Start(); err != nil {
		return run{}, err
	}
	in.Close() //nolint:errcheck // the command has its own
	done := follow(out, func() {})
	err = command.Wait()
	got := run{Seconds: time.Since(started).Seconds()}
	<-done
	return got, err
}

// watched runs the command under the profiler, with a lap at each epoch.
func watched(command *exec.Cmd) (got run, epochs int, err error) {
	out, in, err := os.Pipe()
	if err != nil {
		return run{}, 0, err
	}
	defer out.Close()
	command.Stdout = in
	events, before := perf.Events(), own()
	started := time.Now()
	running, err := launched.Command(command, events, 0)
	if err != nil {
		return run{}, 0, err
	}
	in.Close() //nolint:errcheck // the command has its own
	done := follow(out, func() {
		running.Recorder.Lap()
		epochs++
	})
	err = running.Wait()
	got = run{Seconds: time.Since(started).Seconds(), Watching: own() - before}
	<-done
	p := running.Recorder.Lap()
	got.Events, got.Level = len(p.Events), string(p.Level)
	return got, epochs, err
}

// own is the CPU time of this process, in seconds.
func own() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}
