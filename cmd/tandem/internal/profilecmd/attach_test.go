package profilecmd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/profiler/perf"
	"github.com/tandem-tune/tandem/profiler/proc"
)

// TestSpin is no test but the process that the next one profiles: two threads of it
// are busy until its input ends.
func TestSpin(t *testing.T) {
	if os.Getenv("TANDEM_TEST_SPIN") == "" {
		t.Skip("it is started by TestARunningProcessIsProfiled")
	}
	var ended atomic.Bool
	for range 2 {
		go func() {
			runtime.LockOSThread()
			for !ended.Load() {
			}
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is closed
	ended.Store(true)
}

func TestARunningProcessIsProfiled(t *testing.T) {
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSpin$")
	command.Env = append(os.Environ(), "TANDEM_TEST_SPIN=1")
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer command.Wait() //nolint:errcheck // killed or ended, it is over
	for begun := time.Now(); len(proc.Threads(command.Process.Pid)) < 3; time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("the process did not start two threads within a minute")
		}
	}
	commands, lap := io.Pipe()
	answers, out := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		profile := Command()
		profile.SetArgs([]string{"--attach", fmt.Sprint(command.Process.Pid)})
		profile.SetIn(commands)
		profile.SetOut(out)
		profile.SetErr(out)
		failed <- profile.ExecuteContext(t.Context())
		out.Close()
	}()
	lines := bufio.NewScanner(answers)
	next := func() (one attached) {
		t.Helper()
		if !lines.Scan() {
			t.Fatal("it says no more")
		}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		return one
	}
	first := next()
	if first.Level == "" || (first.Level == perf.HostLevel) != (first.Missing != "") {
		t.Errorf("it begins with %+v", first)
	}
	begun := time.Now()
	for epoch := 0; epoch < 2; {
		fmt.Fprintln(lap, "lap")
		profile := next().Profile
		if profile == nil || len(profile.Host) == 0 {
			t.Fatalf("epoch %d: %+v", epoch, profile)
		}
		if clock, counted := profile.Events["task-clock"]; !counted || clock > 0 { // else it had no core yet
			epoch++
		} else if time.Since(begun) > 5*time.Minute {
			t.Fatalf("epoch %d: two busy threads took no time: %v", epoch, profile.Events)
		}
	}
	input.Close()
	lap.Close()
	if err := <-failed; err != nil {
		t.Error(err)
	}
}

func TestAttachNamesWhatIsWrong(t *testing.T) {
	for _, args := range [][]string{{"--attach", "999999999"}, {"--attach", fmt.Sprint(os.Getppid()), "--", "true"}} {
		profile := Command()
		profile.SetArgs(args)
		profile.SetOut(io.Discard)
		profile.SetErr(io.Discard)
		if err := profile.ExecuteContext(t.Context()); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}
