package perf

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestChurn is no test but the process that the next one counts: it starts and ends
// threads until its input ends.
func TestChurn(t *testing.T) {
	if os.Getenv("TANDEM_TEST_CHURN") == "" {
		t.Skip("it is started by TestThreadsThatStartMeanwhileAreCounted")
	}
	for range 4 {
		go func() {
			for {
				ended := make(chan struct{})
				go func() {
					runtime.LockOSThread() // and never unlocked: the thread ends with it
					for begun := time.Now(); time.Since(begun) < time.Millisecond; {
					}
					close(ended)
				}()
				<-ended
			}
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is closed
}

func TestThreadsThatStartMeanwhileAreCounted(t *testing.T) {
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChurn$")
	command.Env = append(os.Environ(), "TANDEM_TEST_CHURN=1")
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer command.Wait() //nolint:errcheck // killed or ended, it is over
	defer input.Close()
	software := []Event{
		{Name: "task-clock", source: unix.PERF_TYPE_SOFTWARE, config: unix.PERF_COUNT_SW_TASK_CLOCK, together: "software"},
		{Name: "cpu-clock", source: unix.PERF_TYPE_SOFTWARE, config: unix.PERF_COUNT_SW_CPU_CLOCK, together: "software"},
		{Name: "page-faults", source: unix.PERF_TYPE_SOFTWARE, config: unix.PERF_COUNT_SW_PAGE_FAULTS, together: "software"},
		{Name: "context-switches", source: unix.PERF_TYPE_SOFTWARE, config: unix.PERF_COUNT_SW_CONTEXT_SWITCHES, together: "software"},
		{Name: "cpu-migrations", source: unix.PERF_TYPE_SOFTWARE, config: unix.PERF_COUNT_SW_CPU_MIGRATIONS, together: "software"},
	}
	for attempt := range 20 {
		counters := Attach(command.Process.Pid, software)
		if counters.Level() == HostLevel {
			t.Skipf("nothing may be counted here: %v", counters.Missing())
		}
		counted := func() bool {
			read := counters.Read()
			return len(read) == len(software) && read[0].Value > 0 && read[1].Value > 0
		}
		for begun := time.Now(); !counted(); time.Sleep(time.Millisecond) {
			if time.Since(begun) > 20*time.Second { // on a busy machine they wait for a core
				t.Fatalf("attempt %d: of four busy threads it counted %v", attempt, counters.Read())
			}
		}
		counters.Close()
	}
}
