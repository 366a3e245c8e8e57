// Command profiler measures what profiling costs a training.
//
//	go run ./bench/profiler                          # all workloads, 9 pairs each
//	go run ./bench/profiler -workload arithmetic -pairs 21
//	go run ./bench/profiler -python .venv/bin/python # with scikit-learn, for the example
//
// Each pair is the same command once plain and once under the profiler, with
// all events the machine counts, a sample a second and a lap at each epoch, as
// a worker runs it; which comes first alternates. What counts is the ratio of
// the medians; beside it stand the smallest and the largest ratio of a pair, so
// that one sees what the machine's own unrest is worth.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/profiler"
)

// goal is how much of an epoch's time profiling may cost.
const goal = 0.01

// workload is a command that prints a line with "epoch" when one has ended.
type workload struct {
	name, what string
	epochs     int
	command    func() (*exec.Cmd, error)
}

// measurement is one pair.
type measurement struct {
	Workload string `json:"workload"`
	Events   int    `json:"events"`
	Level    string `json:"level"`
	Epochs   int    `json:"epochs"`
	// Plain and Profiled are seconds of wall-clock time, the CPU ones of CPU
	// time in the command and its children, Watching the CPU seconds that the
	// profiler itself used.
	Plain       float64 `json:"plain_seconds"`
	Profiled    float64 `json:"profiled_seconds"`
	PlainCPU    float64 `json:"plain_cpu_seconds"`
	ProfiledCPU float64 `json:"profiled_cpu_seconds"`
	Watching    float64 `json:"watching_cpu_seconds"`
}

func main() {
	pairs := flag.Int("pairs", 9, "runs with and runs without the profiler, at least 5")
	only := flag.String("workload", "", "measure this one only: arithmetic, processes, digits")
	python := flag.String("python", "python3", "an interpreter with scikit-learn, for the digits example")
	work := flag.Int("work", 0, "do the arithmetic of so many epochs; the benchmark starts itself with it")
	flag.Parse()
	if *work > 0 {
		arithmetic(*work)
		return
	}
	if err := measure(*pairs, *only, *python); err != nil {
		fmt.Fprintln(os.Stderr, "bench/profiler:", err)
		os.Exit(1)
	}
}

func measure(pairs int, only, python string) error {
	if pairs < 5 {
		return fmt.Errorf("%d pairs tell nothing: at least 5", pairs)
	}
	for _, one := range workloads(python) {
		if only != "" && one.name != only {
			continue
		}
		if err := one.measure(pairs); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}
	return nil
}

func workloads(python string) []workload {
	return []workload{
		{"arithmetic", "hashing in two threads", 5, func() (*exec.Cmd, error) {
			self, err := os.Executable()
			return exec.Command(self, "-work", "5"), err
		}},
		{"processes", "a shell that starts 300 programs in each epoch: the worst case, as each inherits all events", 5, func() (*exec.Cmd, error) {
			return exec.Command("/bin/sh", "-c", `for e in 1 2 3 4 5; do i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done; echo "{\"epoch\": $e, \"x\": 1}"; done`), nil
		}},
		{"digits", "examples/digits-sklearn by hand", 9, func() (*exec.Cmd, error) {
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
		}},
	}
}

var errSkip = fmt.Errorf("not measured")

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

func (w workload) measure(pairs int) error {
	var list []measurement
	for pair := range pairs {
		m := measurement{Workload: w.name}
		for half := range 2 {
			command, err := w.command()
			if err != nil {
				fmt.Printf("%s: %v\n", w.name, err)
				return nil
			}
			if half == pair%2 {
				err = m.plain(command)
			} else {
				err = m.profiled(command)
			}
			if err != nil {
				return err
			}
		}
		if m.Epochs != w.epochs {
			return fmt.Errorf("%d epochs were seen, not %d", m.Epochs, w.epochs)
		}
		line, err := json.Marshal(m)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
		list = append(list, m)
	}
	w.report(list)
	return nil
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

func (m *measurement) plain(command *exec.Cmd) error {
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	command.Stdout = in
	started := time.Now()
	if err := command.Start(); err != nil {
		return err
	}
	in.Close() //nolint:errcheck // the command has its own
	done := follow(out, func() {})
	err = command.Wait()
	m.Plain = time.Since(started).Seconds()
	m.PlainCPU = spent(command)
	<-done
	return err
}

func (m *measurement) profiled(command *exec.Cmd) error {
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	command.Stdout = in
	events := profiler.Events()
	before := own()
	started := time.Now()
	launched, err := profiler.Launch(command, events, profiler.DefaultInterval)
	if err != nil {
		return err
	}
	in.Close() //nolint:errcheck // the command has its own
	done := follow(out, func() {
		launched.Recorder.Lap()
		m.Epochs++
	})
	err = launched.Wait()
	m.Profiled = time.Since(started).Seconds()
	m.ProfiledCPU, m.Watching = spent(command), own()-before
	<-done
	p := launched.Recorder.Whole()
	m.Events, m.Level = len(p.Events), string(p.Level)
	return err
}

func spent(command *exec.Cmd) float64 {
	return (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds()
}

// own is the CPU time of this process, in seconds.
func own() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

func (w workload) report(list []measurement) {
	column := func(of func(measurement) float64) []float64 {
		var values []float64
		for _, m := range list {
			values = append(values, of(m))
		}
		slices.Sort(values)
		return values
	}
	compare := func(name string, plain, profiled func(measurement) float64) float64 {
		before, after := column(plain), column(profiled)
		ratios := column(func(m measurement) float64 { return profiled(m) / plain(m) })
		ratio := median(after) / median(before)
		fmt.Printf("%-11s %-4s plain %.3f s (%.3f to %.3f), profiled %.3f s (%.3f to %.3f): ratio of the medians %.4f, of pairs %.4f to %.4f\n", w.name, name,
			median(before), before[0], before[len(before)-1], median(after), after[0], after[len(after)-1], ratio, ratios[0], ratios[len(ratios)-1])
		return ratio
	}
	fmt.Printf("\n%s: %s; %d pairs of %d epochs, %d events in %s\n", w.name, w.what, len(list), w.epochs, list[0].Events, list[0].Level)
	ratio := compare("time", func(m measurement) float64 { return m.Plain }, func(m measurement) float64 { return m.Profiled })
	compare("cpu", func(m measurement) float64 { return m.PlainCPU }, func(m measurement) float64 { return m.ProfiledCPU })
	watching := column(func(m measurement) float64 { return m.Watching })
	ratios := column(func(m measurement) float64 { return m.Profiled / m.Plain })
	verdict := "met"
	switch {
	case ratios[3*len(ratios)/4]-ratios[len(ratios)/4] > 2*goal:
		verdict = "undecided, the machine's own unrest is larger"
	case ratio > 1+goal:
		verdict = "missed"
	}
	fmt.Printf("%-11s the profiler itself used %.3f s of CPU (%.3f to %.3f). Goal of at most %.0f%% of an epoch's time: %s\n\n", w.name,
		median(watching), watching[0], watching[len(watching)-1], 100*goal, verdict)
}

func median(sorted []float64) float64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
