package agent_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/workers/agent"
)

// serial serves one run after the other. It can use much CPU before the first.
func serial() int {
	deadline := time.Now().Add(time.Minute)
	for usage := (syscall.Rusage{}); os.Getenv("BURN") != "" && usage.Utime.Nano() < startCPU.Nanoseconds() && time.Now().Before(deadline); {
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			panic(err)
		}
	}
	for {
		note("pids", "%d", os.Getpid())
		fmt.Printf("this is %s from epoch %s\n", os.Getenv("TANDEM_TRIAL"), os.Getenv("TANDEM_FIRST_EPOCH"))
		fmt.Fprint(os.Stderr, "without an end of line")
		if os.Getenv("TANDEM_TRIAL") == os.Getenv("MISCHIEF_IN") {
			mischief()
		}
		call("POST", "/v1/begin", fmt.Sprintf(`{"epoch": %s}`, os.Getenv("TANDEM_FIRST_EPOCH")))
		if code := train(); code != 0 {
			return code
		}
		status, answer := call("POST", "/v1/next", "{}")
		note("told", "%d %v", status, answer["next"])
		if answer["next"] != true {
			if os.Getenv("MISCHIEF") == "stay" {
				return forever()
			}
			return 0
		}
		if status, answer := call("POST", "/v1/report", `{"epoch": 1, "metrics": {"accuracy": 1}}`); status != http.StatusConflict || answer["code"] != "lease_lost" {
			note("faults", "the socket of a run that is over: %d %v", status, answer)
		}
		for name, value := range answer["environment"].(map[string]any) {
			if err := os.Setenv(name, value.(string)); err != nil {
				panic(err)
			}
		}
	}
}

func mischief() {
	switch os.Getenv("MISCHIEF") {
	case "crash":
		os.Exit(7)
	case "wait":
		reportAndWait()
	case "child":
		child := exec.Command("sleep", "1000")
		if err := child.Start(); err != nil {
			panic(err)
		}
		note("children", "%d", child.Process.Pid)
	}
}

func serving(place string, variables ...string) map[string]string {
	environment := as("serial", place)
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		environment[name] = value
	}
	return environment
}

// processes are how many different ones served the runs.
func processes(t *testing.T, place string) (runs, different int) {
	t.Helper()
	pids := file(t, place, "pids")
	runs = len(pids)
	slices.Sort(pids)
	return runs, len(slices.Compact(pids))
}

func TestOneProcessServesOneTrialAfterTheOther(t *testing.T) {
	s, place := newServer(), t.TempDir()
	first := s.add(script(t), serving(place), 1, 3)
	second := s.add(script(t), serving(place), 2)
	work(t, s, agent.Options{WattsPerCore: 1000})
	s.await(t, "both are finished", func() bool { return len(first.finishes) == 2 && len(second.finishes) == 1 })
	if runs, different := processes(t, place); runs != 3 || different != 1 {
		t.Errorf("%d runs in %d processes", runs, different)
	}
	if first.outcomes() != "budget_reached budget_reached" || second.outcomes() != "budget_reached" {
		t.Errorf("ended %q and %q: %s", first.outcomes(), second.outcomes(), second.reason())
	}
	if fmt.Sprint(first.epochs(), first.resumed, second.epochs()) != "[1 2 3] [1 2] [1 2]" || first.reports[2].Metrics["sum"] != 6 {
		t.Errorf("reported %v from %v, and %v; the sum is %v", first.epochs(), first.resumed, second.epochs(), first.reports[2].Metrics["sum"])
	}
	for _, one := range []struct{ got, want string }{
		{first.log[1], "s1-0 from epoch 1"}, {first.log[2], "s1-0 from epoch 2"}, {second.log[1], "s1-1 from epoch 1"},
	} {
		if want := "this is " + one.want + "\n"; one.got != want+"without an end of line" && one.got != "without an end of line"+want {
			t.Errorf("got the log %q, want that of %s", one.got, one.want)
		}
	}
	if _, err := os.Stat(filepath.Join(place, "faults")); err == nil {
		t.Error(file(t, place, "faults"))
	}
}

// The second run's measurements are its own: the first one's start, with much
// CPU time, is not in them.
func TestMeasurementsOfALaterRun(t *testing.T) {
	s, place := newServer(), t.TempDir()
	first := s.add(script(t), serving(place, "BURN=1"), 1)
	second := s.add(script(t), serving(place, "BURN=1"), 1)
	work(t, s, agent.Options{WattsPerCore: 100_000})
	s.await(t, "both are finished", func() bool { return len(first.finishes) == 1 && len(second.finishes) == 1 })
	before, after := first.reports[0], second.reports[0]
	if before.SetupSeconds <= 0 || after.SetupSeconds <= 0 || after.SetupSeconds > after.Seconds || before.SetupSeconds > before.Seconds {
		t.Errorf("starts of %v of %v s, then %v of %v s", before.SetupSeconds, before.Seconds, after.SetupSeconds, after.Seconds)
	}
	if strings.HasPrefix(after.Energy.Method, "estimate:") && after.Energy.Joules > before.Energy.Joules/2 {
		t.Errorf("%v J, and %v J of the run before", after.Energy.Joules, before.Energy.Joules)
	}
	if before.Profile == nil || after.Profile == nil || after.Neighbours != 0 {
		t.Errorf("profiles %v and %v, neighbours %v", before.Profile, after.Profile, after.Neighbours)
	}
}

func TestWhatNeedsANewProcess(t *testing.T) {
	child, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	tests := map[string]struct {
		change    func(*task)
		variables []string
		processes int
	}{
		"nothing": {func(*task) {}, nil, 1},
		"another number of threads, which the script sets": {func(second *task) {
			second.lease.System[system.CPUThreads] = space.Int(7)
		}, nil, 1},
		"another study":          {func(second *task) { second.lease.StudyID = "s2" }, nil, 2},
		"another command":        {func(second *task) { second.lease.Command = append(second.lease.Command, "-x") }, nil, 2},
		"another environment":    {func(second *task) { second.lease.Environment = serving(second.lease.Environment["PLACE"], "A=1") }, nil, 2},
		"another number of GPUs": {func(second *task) { second.lease.System[system.GPUs] = space.Int(2) }, nil, 2},
		"what the script left":   {func(*task) {}, []string{"MISCHIEF=child", "MISCHIEF_IN=s1-0", "PATH=" + filepath.Dir(child)}, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, place := newServer(), t.TempDir()
			var first, second *task
			first = s.add(script(t), serving(place, test.variables...), 1)
			s.change(func() {
				first.lease.System = map[string]space.Value{system.CPUThreads: space.Int(1), system.GPUs: space.Int(1)}
			})
			second = s.add(script(t), serving(place, test.variables...), 1)
			s.change(func() {
				second.lease.System = map[string]space.Value{system.CPUThreads: space.Int(1), system.GPUs: space.Int(1)}
				test.change(second)
			})
			work(t, s, agent.Options{})
			s.await(t, "both are finished", func() bool { return len(first.finishes) == 1 && len(second.finishes) == 1 })
			if runs, different := processes(t, place); runs != 2 || different != test.processes {
				t.Errorf("%d runs in %d processes, want %d", runs, different, test.processes)
			}
			if first.outcomes() != "budget_reached" || second.outcomes() != "budget_reached" {
				t.Errorf("ended %q (%s) and %q (%s)", first.outcomes(), first.reason(), second.outcomes(), second.reason())
			}
			if strings.Contains(name, "left") {
				awaitGone(t, file(t, place, "children"))
			}
		})
	}
}

// TestWhoWaitsWithMemoryOfAGPUMakesRoom: the server has given the GPU of processes that
// wait for their next trials to another one, and knows of none of them: they end, and do
// not wait for as long as they might.
func TestWhoWaitsWithMemoryOfAGPUMakesRoom(t *testing.T) {
	s, place := newServer(), t.TempDir()
	s.each = func(lease *protocol.Lease) { lease.GPUs, lease.GPUShared = []int{0}, true } // a worker may take it at once
	add := func(kind string) *task { return s.add(script(t), serving(place, "KIND="+kind), 1) }
	trials := []*task{add("a"), add("b"), add("c")}
	work(t, s, agent.Options{Slots: 3, NextWait: time.Hour})
	s.await(t, "three are finished", func() bool {
		return !slices.ContainsFunc(trials, func(one *task) bool { return len(one.finishes) == 0 })
	})
	before := file(t, place, "pids")
	last := add("d")
	s.await(t, "the fourth is finished", func() bool { return len(last.finishes) == 1 })
	awaitGone(t, before)
	if last.outcomes() != "budget_reached" || len(before) != 3 {
		t.Errorf("%d before it, and it ended %q: %s", len(before), last.outcomes(), last.reason())
	}
}

func TestACrashIsTheRunsOwn(t *testing.T) {
	s, place := newServer(), t.TempDir()
	var trials []*task
	for range 3 {
		trials = append(trials, s.add(script(t), serving(place, "MISCHIEF=crash", "MISCHIEF_IN=s1-1"), 1))
	}
	work(t, s, agent.Options{})
	s.await(t, "all are finished", func() bool { return len(trials[2].finishes) == 1 })
	if got := trials[0].outcomes() + " " + trials[1].outcomes() + " " + trials[2].outcomes(); got != "budget_reached failed budget_reached" {
		t.Errorf("ended %s", got)
	}
	if !strings.HasPrefix(trials[1].reason(), "exit code 7") {
		t.Errorf("the reason is %q", trials[1].reason())
	}
	if runs, different := processes(t, place); runs != 3 || different != 2 {
		t.Errorf("%d runs in %d processes", runs, different)
	}
}

func TestALostLeaseEndsTheProcessOfEarlierRuns(t *testing.T) {
	s, place := newServer(), t.TempDir()
	first := s.add(script(t), serving(place, "MISCHIEF=wait", "MISCHIEF_IN=s1-1"), 1)
	second := s.add(script(t), serving(place, "MISCHIEF=wait", "MISCHIEF_IN=s1-1"), 1)
	work(t, s, agent.Options{})
	s.await(t, "the second has reported", func() bool { return len(second.reports) == 1 })
	s.change(func() { second.lease.LeaseEpoch++; second.holder = "another worker" })
	awaitGone(t, file(t, place, "pids"))
	s.change(func() {
		if runs, different := processes(t, place); runs != 2 || different != 1 || first.outcomes() != "budget_reached" || len(second.finishes) != 0 {
			t.Errorf("%d runs in %d processes, ended %q and %q", runs, different, first.outcomes(), second.outcomes())
		}
		if late := s.afterLoss(second.lease.Trial, 1); len(late) > 0 {
			t.Errorf("wrote after the lease was lost: %+v", late)
		}
	})
}

func TestAProcessDoesNotWaitForEver(t *testing.T) {
	for name, test := range map[string]struct {
		options agent.Options
		drain   bool
		mood    string
	}{
		"it is told after a while":    {agent.Options{NextWait: 50 * time.Millisecond}, false, "leave"},
		"it is killed if it stays":    {agent.Options{NextWait: 50 * time.Millisecond, StopGrace: 2 * time.Second}, false, "stay"}, // it writes down first what it was told
		"the worker leaves":           {agent.Options{NextWait: time.Hour}, true, "leave"},
		"it stays, the worker leaves": {agent.Options{NextWait: time.Hour, StopGrace: 50 * time.Millisecond}, true, "stay"},
	} {
		t.Run(name, func(t *testing.T) {
			s, place := newServer(), t.TempDir()
			trial := s.add(script(t), serving(place, "MISCHIEF="+test.mood), 1)
			stop := work(t, s, test.options)
			s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
			if test.drain {
				stop()
			}
			awaitGone(t, file(t, place, "pids"))
			if trial.outcomes() != "budget_reached" {
				t.Errorf("ended %q: %s", trial.outcomes(), trial.reason())
			}
			if test.drain { // it may be on its way to where it waits
				return
			}
			if told := file(t, place, "told"); !slices.Equal(told[len(told)-1:], []string{"200 false"}) {
				t.Errorf("it was told %q", told)
			}
		})
	}
}
