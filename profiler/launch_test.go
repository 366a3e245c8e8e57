package profiler

import (
	"github.com/tandem-tune/tandem/profiler/perf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// launchShell runs a shell script to its end, with a sample only at its laps.
func launchShell(t *testing.T, script string) (*Launched, *exec.Cmd) {
	t.Helper()
	command := exec.Command("/bin/sh", "-c", script)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	launched, err := Launch(command, perf.Events(), time.Hour)
	if err != nil {
		t.Skipf("no sh: %v", err)
	}
	return launched, command
}

// event skips the test where the kernel does not count the event.
func event(t *testing.T, p Profile, name string) EventProfile {
	t.Helper()
	found, has := p.Event(name)
	if !has {
		for _, missing := range p.Missing {
			if missing.Name == name {
				t.Skipf("%s is not counted here: %s", name, missing.Reason)
			}
		}
		t.Fatalf("%s is neither counted nor missing: %+v", name, p)
	}
	return found
}

const busyLoop = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"

// countsAllOf compares what was counted with what the kernel's accounts say of
// the command, its threads, and the children that were waited for.
func countsAllOf(t *testing.T, launched *Launched, command *exec.Cmd) {
	t.Helper()
	p := launched.Recorder.Whole()
	spent := (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds()
	if clock := event(t, p, "task-clock").Total / 1e9; clock < 0.75*spent || clock > 1.25*spent+0.02 {
		t.Errorf("task-clock counted %g s, the processes used %g s", clock, spent)
	}
	user, _ := p.HostValue("tree.cpu_user")
	system, _ := p.HostValue("tree.cpu_system")
	if seen := (user + system) * p.Seconds; seen < 0.5*spent-0.05 || seen > 1.5*spent+0.05 {
		t.Errorf("/proc saw %g s of CPU time, the processes used %g s", seen, spent)
	}
	usage := command.ProcessState.SysUsage().(*syscall.Rusage)
	faults := float64(usage.Minflt + usage.Majflt)
	if counted := event(t, p, "page-faults").Total; p.Level == perf.KernelLevel && (counted < 0.75*faults || counted > 1.25*faults) {
		t.Errorf("%g page faults were counted, %g happened", counted, faults)
	}
}

func TestChildrenAndGrandchildrenAreCounted(t *testing.T) {
	launched, command := launchShell(t, busyLoop+"; sh -c '"+busyLoop+"; (exec sh -c \""+busyLoop+"\")'")
	if err := launched.Wait(); err != nil {
		t.Fatal(err)
	}
	countsAllOf(t, launched, command)
}

// TestThreadsOfACommand is the command of the test below.
func TestThreadsOfACommand(t *testing.T) {
	if os.Getenv("PROFILER_TEST_THREADS") == "" {
		t.Skip("started by TestThreadsAreCounted")
	}
	var threads sync.WaitGroup
	for range 4 {
		threads.Go(func() {
			runtime.LockOSThread() // and so a thread each, which ends with it
			for sum, i := 0, 0; i < 50_000_000; i++ {
				if sum += i ^ sum; sum == -1 {
					t.Log(sum)
				}
			}
		})
	}
	threads.Wait()
}

func TestThreadsAreCounted(t *testing.T) {
	command := exec.Command(os.Args[0], "-test.run=^TestThreadsOfACommand$")
	command.Env = append(os.Environ(), "PROFILER_TEST_THREADS=1")
	launched, err := Launch(command, perf.Events(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := launched.Wait(); err != nil {
		t.Fatal(err)
	}
	countsAllOf(t, launched, command)
}

func TestContextSwitchesOfATreeAreCounted(t *testing.T) {
	launched, _ := launchShell(t, "for i in 1 2 3 4 5 6 7 8; do sleep 0.002; done")
	if err := launched.Wait(); err != nil {
		t.Fatal(err)
	}
	// Each sleep puts a child off the processor, and the shell that waits for it.
	if switches := event(t, launched.Recorder.Whole(), "context-switches"); switches.Total < 16 {
		t.Errorf("%g context switches, at least 16 happened", switches.Total)
	}
}

func TestNothingOfThisProcessIsCounted(t *testing.T) {
	launched, _ := launchShell(t, "exec sleep 0.05")
	for until := time.Now().Add(40 * time.Millisecond); time.Now().Before(until); {
	}
	if err := launched.Wait(); err != nil {
		t.Fatal(err)
	}
	p := launched.Recorder.Whole()
	if clock := event(t, p, "task-clock"); clock.Total > 0.5*p.Seconds*1e9 {
		t.Errorf("sleep used %g ns of CPU: that was the test's own loop", clock.Total)
	}
}

func TestEarlyEndAndFailureAreRecorded(t *testing.T) {
	launched, _ := launchShell(t, "exit 7")
	err := launched.Wait()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 7 {
		t.Fatalf("got %v, want exit code 7", err)
	}
	p := launched.Recorder.Whole()
	if clock := event(t, p, "task-clock"); clock.Total <= 0 {
		t.Error("a command that ended at once used no time")
	}
	if again := launched.Recorder.Whole(); again.Seconds != p.Seconds {
		t.Errorf("the recorder went on after the end: %g s, then %g s", p.Seconds, again.Seconds)
	}
	if _, err := Launch(&exec.Cmd{Path: filepath.Join(t.TempDir(), "absent")}, nil, 0); err == nil {
		t.Error("a command that does not exist was started")
	}
}

// TestTreeThatOutlivesItsParent: a lap after the parent's end still counts.
func TestTreeThatOutlivesItsParent(t *testing.T) {
	folder := t.TempDir()
	gate, done := filepath.Join(folder, "gate"), filepath.Join(folder, "done")
	// The middle shell ends at once; the leader waits for the orphan by a file.
	launched, _ := launchShell(t, "sh -c '(while [ ! -e "+gate+" ]; do sleep 0.01; done; "+busyLoop+"; touch "+done+") & exit 0'; "+
		"while [ ! -e "+done+" ]; do sleep 0.01; done")
	before := launched.Recorder.Lap()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := launched.Wait(); err != nil {
		t.Fatal(err)
	}
	after := launched.Recorder.Lap()
	if early, late := event(t, before, "task-clock"), event(t, after, "task-clock"); late.Total < 1e6 || late.Total <= early.Total {
		t.Errorf("the orphan's work was not counted: %g ns before it, %g after", early.Total, late.Total)
	}
}

// TestLapsAddUpToTheWhole: each lap has only what happened since the last one.
func TestLapsAddUpToTheWhole(t *testing.T) {
	launched, _ := launchShell(t, busyLoop+"; sleep 0.2")
	first := launched.Recorder.Lap()
	if err := launched.Wait(); err != nil {
		t.Fatal(err)
	}
	second, whole := launched.Recorder.Lap(), launched.Recorder.Whole()
	for name, of := range map[string]func(Profile) float64{
		"seconds":     func(p Profile) float64 { return p.Seconds },
		"page faults": func(p Profile) float64 { return event(t, p, "page-faults").Total },
		"CPU time": func(p Profile) float64 {
			user, _ := p.HostValue("tree.cpu_user")
			return user * p.Seconds
		},
	} {
		if sum := of(first) + of(second); sum > of(whole)*1.0001+1e-9 || sum < of(whole)*0.9999-1e-9 {
			t.Errorf("%s: the laps have %g and %g, the whole %g", name, of(first), of(second), of(whole))
		}
	}
}

func sleeping() *exec.Cmd { return exec.Command("/bin/sh", "-c", "sleep 0.5") }
