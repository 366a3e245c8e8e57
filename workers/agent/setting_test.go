package agent_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/workers/agent"
	"github.com/tandem-tune/tandem/workers/agent/agenttest"
	"github.com/tandem-tune/tandem/workers/agent/knob"
)

const startCPU = 700 * time.Millisecond

// begins works hard to start and idles when it trains.
func begins() int {
	for busy := time.Duration(0); busy < startCPU; {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			panic(err)
		}
		busy = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	for _, epoch := range []int{0, 4, 1, 1} {
		status, answer := call("POST", "/v1/begin", fmt.Sprintf(`{"epoch": %d}`, epoch))
		said, _ := json.Marshal(answer)
		note("said", "%d %s", status, said)
	}
	for epoch := 1; epoch <= 3; epoch++ {
		call("POST", "/v1/begin", fmt.Sprintf(`{"epoch": %d}`, epoch))
		time.Sleep(300 * time.Millisecond)
		call("POST", "/v1/report", fmt.Sprintf(`{"epoch": %d, "metrics": {"accuracy": 1}}`, epoch))
	}
	return 0
}

// The first epoch's time and energy have the start in them, its profile has not.
func TestStartOfTraining(t *testing.T) {
	s, place := newServer(), t.TempDir()
	trial := s.add(script(t), as("begins", place), 3)
	work(t, s, agent.Options{})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	for i, pattern := range []string{`422 .*epochs 1 to 3`, `422 .*epochs 1 to 3`, `200 {}`, `200 {}`} {
		if said := file(t, place, "said"); !matches(pattern, said[i]) {
			t.Errorf("call %d: got %s, want %s", i, said[i], pattern)
		}
	}
	first := trial.reports[0]
	if setup := float64(first.SetupSeconds); setup < startCPU.Seconds()/2 || setup > float64(first.Seconds) {
		t.Errorf("the start took %g s of the epoch's %g", setup, float64(first.Seconds))
	}
	if work := first.Profile.Host["tree.cpu_user"] + first.Profile.Host["tree.cpu_system"]; work > 0.3 {
		t.Errorf("the start is in the first epoch's profile: it kept %g cores busy", float64(work))
	}
	if strings.HasPrefix(first.Energy.Method, "estimate: 10 W") && first.Energy.Joules < 10*4/10 {
		t.Errorf("the start is not in the first epoch's energy: %g J", float64(first.Energy.Joules))
	}
	for _, later := range trial.reports[1:] {
		if later.SetupSeconds != 0 {
			t.Errorf("epoch %d has a start of %g s", later.Epoch, float64(later.SetupSeconds))
		}
	}
}

// A start that the script does not mark is not known.
func TestUnmarkedStart(t *testing.T) {
	s := newServer()
	trial := s.add(script(t), as("lines", t.TempDir()), 2)
	work(t, s, agent.Options{})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	if got := trial.reports[0]; got.SetupSeconds != 0 || got.Profile == nil {
		t.Errorf("got a start of %g s", float64(got.SetupSeconds))
	}
}

// configured follows loader_workers, says so, and asks what is wanted.
func configured() int {
	said := []string{
		`{"loader_workers": 2, "gpus": 8}`, // it has no say in what the agent applies
		`{"loader_workers": 4}`,
		``,
	}
	for epoch := 1; epoch <= 3; epoch++ {
		_, trial := call("GET", "/v1/trial", "")
		wanted, _ := json.Marshal(trial["system"])
		note("wanted", "%s", wanted)
		body := fmt.Sprintf(`{"epoch": %d, "metrics": {"accuracy": 1}`, epoch)
		if said[epoch-1] != "" {
			body += `, "system": ` + said[epoch-1]
		}
		if status, answer := call("POST", "/v1/report", body+"}"); status != http.StatusOK {
			note("faults", "%v", answer)
		}
	}
	return 0
}

func TestSystemInForce(t *testing.T) {
	tests := []struct {
		role string
		want []string // in force in each epoch
	}{
		{"configured", []string{`{"cpu_threads":1,"loader_workers":2}`, `{"cpu_threads":1,"loader_workers":4}`, `{"cpu_threads":1,"loader_workers":2}`}},
		{"lines", []string{`{"cpu_threads":1,"loader_workers":2}`, `{"cpu_threads":1,"loader_workers":2}`, `{"cpu_threads":1,"loader_workers":2}`}},
	}
	for _, test := range tests {
		t.Run(test.role, func(t *testing.T) {
			s, place := newServer(), t.TempDir()
			s.away = true // until it is complete
			trial := s.add(script(t), as(test.role, place), 3)
			trial.lease.System = map[string]space.Value{"cpu_threads": space.Int(1), "loader_workers": space.Int(2)}
			trial.systems = map[int]map[string]space.Value{1: {"cpu_threads": space.Int(1), "loader_workers": space.Int(4)}}
			s.change(func() { s.away = false })
			work(t, s, agent.Options{})
			s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
			for i, report := range trial.reports {
				if got, _ := json.Marshal(report.System); string(got) != test.want[i] {
					t.Errorf("in epoch %d was in force %s, want %s", report.Epoch, got, test.want[i])
				}
			}
			if test.role == "configured" {
				want := []string{`{"cpu_threads":1,"loader_workers":2}`, `{"cpu_threads":1,"loader_workers":4}`, `{"cpu_threads":1,"loader_workers":4}`}
				if got := file(t, place, "wanted"); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("it was told %s, want %s", got, want)
				}
			}
		})
	}
}

// Neighbours are the other commands of the worker, weighted by time.
func TestNeighbours(t *testing.T) {
	s, long, short := newServer(), t.TempDir(), t.TempDir()
	first := s.add(script(t), as("gated", long), 2)
	work(t, s, agent.Options{Slots: 2})
	s.await(t, "the first has reported alone", func() bool { return len(first.reports) == 1 })
	second := s.add(script(t), as("gated", short), 2)
	s.await(t, "the second has reported beside it", func() bool { return len(second.reports) == 1 })
	// The second goes first: as long as it trains it has a neighbour.
	for _, one := range []struct {
		place string
		task  *task
	}{{short, second}, {long, first}} {
		if err := os.WriteFile(filepath.Join(one.place, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s.await(t, "it has reported again", func() bool { return len(one.task.reports) == 2 })
	}
	if got := first.reports[0].Neighbours; got != 0 {
		t.Errorf("alone it had %g neighbours", float64(got))
	}
	if got := first.reports[1].Neighbours; got <= 0 || got >= 1 {
		t.Errorf("with one that came later it had %g neighbours on average", float64(got))
	}
	for _, report := range second.reports {
		if got := report.Neighbours; got < 0.999 || got > 1.001 {
			t.Errorf("beside another it had %g neighbours", float64(got))
		}
	}
}

func policySettings(t *testing.T, policy string) string {
	t.Helper()
	return file(t, policy, "scaling_governor")[0] + " " + file(t, policy, "scaling_max_freq")[0]
}

// pinned notes where it and its child may run in each epoch.
func pinned() int {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), "ROLE=sleep")
	if err := child.Start(); err != nil {
		panic(err)
	}
	for epoch := 1; epoch <= 3; epoch++ {
		note("cores", "%s", allowed("self"))
		note("cores", "%s", allowed(strconv.Itoa(child.Process.Pid)))
		note("threads", "%s and %d", os.Getenv("OMP_NUM_THREADS"), runtime.NumCPU()) // as it was at the start
		call("POST", "/v1/report", fmt.Sprintf(`{"epoch": %d, "metrics": {"accuracy": 1}}`, epoch))
	}
	return 0
}

// allowed are the cores of each thread of a process, told once if they agree.
func allowed(pid string) string {
	threads, err := filepath.Glob("/proc/" + pid + "/task/*/status")
	if err != nil {
		panic(err)
	}
	found := map[string]bool{}
	for _, thread := range threads {
		content, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(content)) {
			if list, is := strings.CutPrefix(line, "Cpus_allowed_list:"); is {
				found[strings.TrimSpace(list)] = true
			}
		}
	}
	return strings.Join(slices.Collect(maps.Keys(found)), " and ")
}

// What the agent applies is in force in the whole command, is reported as far as
// it is, and is taken back.
func TestKnobsOfARun(t *testing.T) {
	root, policies := agenttest.FrequencyTree(t)
	all := allowed("self")
	s, place := newServer(), t.TempDir()
	s.away = true // until it is complete
	trial := s.add(script(t), as("pinned", place), 3)
	trial.lease.System = map[string]space.Value{"cores": space.Int(1), "cpu_governor": space.String("powersave"), "gpus": space.Int(99)}
	trial.systems = map[int]map[string]space.Value{
		1: {"cores": space.Int(1), "cpu_governor": space.String("lazy"), "gpus": space.Int(1)},
		2: {"cpu_threads": space.Int(1), "cpu_frequency_mhz": space.Int(1200)},
	}
	s.change(func() { s.away = false })
	work(t, s, agent.Options{Root: root})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	want := []string{`{"cores":1,"cpu_governor":"powersave"}`, `{"cores":1}`, `{"cpu_frequency_mhz":1200}`}
	for i, report := range trial.reports {
		if got, _ := json.Marshal(report.System); string(got) != want[i] {
			t.Errorf("in epoch %d was in force %s, want %s", report.Epoch, got, want[i])
		}
	}
	cores := file(t, place, "cores")
	if _, err := strconv.Atoi(cores[0]); err != nil || cores[1] != cores[0] || cores[2] != cores[0] || cores[3] != cores[0] {
		t.Errorf("with one core the command and its child ran on %q", cores[:4])
	}
	if cores[4] != all || cores[5] != all {
		t.Errorf("without a bound they ran on %q, this process may on %s", cores[4:], all)
	}
	if threads := file(t, place, "threads"); threads[0] != "1 and 1" {
		t.Errorf("on one core it has %s threads and cores", threads[0])
	}
	for _, say := range []string{"cpu_governor is not applied: the kernel has no governor \"lazy\"", "gpus is not applied: "} {
		if got := strings.Count(trial.log[1], say); got != 1 {
			t.Errorf("the log says %d times %q: %q", got, say, trial.log[1])
		}
	}
	if got := policySettings(t, policies[0]); got != "schedutil 3000000" {
		t.Errorf("it left %s", got)
	}
}

// A trial whose study wants it sprints until it ends, if its worker's owner
// allows that, and leaves everything as it was.
func TestATrialSprints(t *testing.T) {
	for name, test := range map[string]struct {
		budget    knob.Budget
		say, sets string
	}{
		"allowed":   {knob.Budget{Joules: 1e9, Watts: 1, ExtraWatts: 1}, "sprint: after 0s: cpu_frequency_mhz, cpu_governor at the highest", "performance 3600000"},
		"forbidden": {knob.Budget{}, "sprint: none: this worker's owner allows none", "schedutil 3000000"},
	} {
		t.Run(name, func(t *testing.T) {
			root, policies := agenttest.FrequencyTree(t)
			s, place := newServer(), t.TempDir()
			s.away = true // until it is complete
			trial := s.add(script(t), as("waits", place), 1)
			trial.lease.Sprint = &definition.Sprint{}
			s.change(func() { s.away = false })
			work(t, s, agent.Options{Root: root, Sprint: test.budget})
			s.await(t, "the log speaks of the sprint", func() bool { return strings.Contains(trial.log[1], test.say) })
			if got := policySettings(t, policies[0]); got != test.sets {
				t.Errorf("while it trains there is %s, want %s", got, test.sets)
			}
			if err := os.WriteFile(filepath.Join(place, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
			if got := policySettings(t, policies[0]); got != "schedutil 3000000" {
				t.Errorf("it left %s", got)
			}
		})
	}
}

// A trial sprints as long as one of a higher priority waits for its machine, though
// its own study asks for none, and again when the next one waits.
func TestATrialSprintsForOneThatWaits(t *testing.T) {
	root, policies := agenttest.FrequencyTree(t)
	s, place := newServer(), t.TempDir()
	trial := s.add(script(t), as("waits", place), 1)
	work(t, s, agent.Options{Root: root, Sprint: knob.Budget{Joules: 1e9, Watts: 1, ExtraWatts: 1}})
	s.await(t, "it runs", func() bool { return s.beats > 1 })
	if got := policySettings(t, policies[0]); got != "schedutil 3000000" {
		t.Errorf("before anything waits there is %s", got)
	}
	for round := 1; round <= 2; round++ {
		s.change(func() { trial.hurried = true })
		s.await(t, "it sprints", func() bool {
			return strings.Count(trial.log[1], "sprint: as a trial of a higher priority waits for this machine: cpu_frequency_mhz, cpu_governor at the highest") == round
		})
		if got := policySettings(t, policies[0]); got != "performance 3600000" {
			t.Errorf("while one waits there is %s", got)
		}
		s.change(func() { trial.hurried = false })
		s.await(t, "the sprint is over", func() bool {
			return strings.Count(trial.log[1], "nothing of a higher priority waits any more") == round
		})
	}
	if err := os.WriteFile(filepath.Join(place, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	if got := policySettings(t, policies[0]); got != "schedutil 3000000" {
		t.Errorf("it left %s", got)
	}
	if took := trial.reports[0]; !(took.SprintSeconds > 0 && took.SprintSeconds <= took.Seconds) {
		t.Errorf("it sprinted for %g of %g s", took.SprintSeconds, took.Seconds)
	}
}

// waits trains an epoch when it is told to.
func waits() int {
	for {
		if _, err := os.Stat(filepath.Join(os.Getenv("PLACE"), "go")); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	call("POST", "/v1/report", `{"epoch": 1, "metrics": {"accuracy": 1}}`)
	return 0
}
