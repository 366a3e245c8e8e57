package knob

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/profiler/proc"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/workers/agent/agenttest"
	"github.com/tandem-tune/tandem/workers/agent/cgroup"
	"github.com/tandem-tune/tandem/workers/agent/gpu"
)

// testControls are the knobs of a machine below the root, with these GPUs.
func testControls(t *testing.T, root string, gpus gpu.Control) *Controls {
	t.Helper()
	c := New(Options{Root: root, OpenGPUs: func() (gpu.Control, error) {
		if gpus == nil {
			return nil, errors.New("there is no GPU here")
		}
		return gpus, nil
	}})
	c.devices.journal.path = filepath.Join(t.TempDir(), "settings")
	return c
}

func TestFrequencyAndGovernor(t *testing.T) {
	root, policies := agenttest.FrequencyTree(t)
	c := testControls(t, root, nil)
	run := &Subject{}
	for name, value := range map[string]space.Value{system.CPUFrequencyMHz: space.Int(1200), system.CPUGovernor: space.String("powersave")} {
		if _, err := c.knobs[name].available(); err != nil {
			t.Errorf("%s cannot be set: %v", name, err)
		}
		if _, err := c.knobs[name].set(run, value); err != nil {
			t.Fatal(err)
		}
	}
	for _, policy := range policies {
		if got := agenttest.Content(t, policy, "scaling_max_freq") + " " + agenttest.Content(t, policy, "scaling_governor"); got != "1200000 powersave" {
			t.Errorf("%s has %s", policy, got)
		}
	}
	if entries, err := readJournal(c.devices.journal.path); err != nil || len(entries) != 2*len(policies) {
		t.Errorf("the journal has %v, %v", entries, err)
	}
	if _, err := c.knobs[system.CPUFrequencyMHz].set(run, space.Int(1600)); err != nil || agenttest.Content(t, policies[0], "scaling_max_freq") != "1600000" {
		t.Errorf("changed to %s, %v", agenttest.Content(t, policies[0], "scaling_max_freq"), err)
	}
	for _, name := range []string{system.CPUFrequencyMHz, system.CPUGovernor} {
		if !c.knobs[name].held(run) {
			t.Errorf("%s is said to have been changed", name)
		}
		c.knobs[name].unset(run)
	}
	if got := agenttest.Content(t, policies[0], "scaling_max_freq") + " " + agenttest.Content(t, policies[0], "scaling_governor"); got != "3000000 schedutil" {
		t.Errorf("at the end there is %s", got)
	}
	if entries, err := readJournal(c.devices.journal.path); err != nil || len(entries) != 0 {
		t.Errorf("at the end the journal has %v, %v", entries, err)
	}
}

func TestValuesTheMachineDoesNotHave(t *testing.T) {
	root, policies := agenttest.FrequencyTree(t)
	c := testControls(t, root, nil)
	tests := []struct {
		name, knob string
		value      space.Value
		say        string
	}{
		{"too fast", system.CPUFrequencyMHz, space.Int(9000), "800 to 3600 MHz"},
		{"no number", system.CPUFrequencyMHz, space.String("fast"), "no number"},
		{"no such governor", system.CPUGovernor, space.String("lazy"), "performance, powersave, schedutil"},
		{"no word", system.CPUGovernor, space.Int(1), "no governor"},
		{"too many cores", system.Cores, space.Int(100_000), "cores, not 100000"},
		{"no cores", system.Cores, space.Int(0), "cores, not 0"},
		{"no memory", system.MemoryGiB, space.Int(0), "no number of GiB"},
		{"no GPU", system.GPUs, space.Int(1), "gave the trial 0 GPUs"},
		{"no GPU's power", system.GPUPowerWatts, space.Int(100), "there is no GPU here"},
		{"no GPU's clock", system.GPUClockMHz, space.Int(100), "there is no GPU here"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run := &Subject{}
			if _, err := c.knobs[test.knob].set(run, test.value); err == nil || !strings.Contains(err.Error(), test.say) {
				t.Errorf("got %v, want %q", err, test.say)
			}
			c.knobs[test.knob].unset(run)
		})
	}
	if got := agenttest.Content(t, policies[0], "scaling_max_freq"); got != "3000000" {
		t.Errorf("the frequency is %s", got)
	}
	bare := testControls(t, t.TempDir(), nil)
	for _, name := range []string{system.CPUFrequencyMHz, system.CPUGovernor} {
		if _, err := bare.knobs[name].available(); err == nil || !strings.Contains(err.Error(), "no control over the CPU's frequency") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Where a knob's second place cannot be set, its first is as before.
func TestHalfASettingIsTakenBack(t *testing.T) {
	d := newDevices(map[string]access{"k": memoryAccess{values: map[string]string{"a": "1", "b": "1"}, stuck: "b"}})
	d.journal.path = filepath.Join(t.TempDir(), "settings")
	run := &Subject{}
	if err := d.set(run, "k", map[string]string{"a": "2", "b": "2"}); err == nil {
		t.Error("a place that cannot be set was taken")
	}
	if got := d.accesses["k"].(memoryAccess).values; got["a"] != "1" || len(d.owned(run, "k")) != 0 {
		t.Errorf("left are %v and the claims %v", got, d.claims)
	}
}

// memoryAccess sets values in memory; one of them stays as it is.
type memoryAccess struct {
	values map[string]string
	stuck  string
}

func (m memoryAccess) read(where string) (string, error) { return m.values[where], nil }
func (m memoryAccess) write(where, value string) error {
	if where != m.stuck {
		m.values[where] = value
	}
	return nil
}
func (m memoryAccess) same(wanted, present string) bool { return wanted == present }

func TestTwoRunsWantTheSamePlace(t *testing.T) {
	d := newDevices(map[string]access{"k": memoryAccess{values: map[string]string{"a": "0"}}})
	d.journal.path = filepath.Join(t.TempDir(), "settings")
	values := d.accesses["k"].(memoryAccess).values
	first, second := &Subject{}, &Subject{}
	set := func(who *Subject, value string) {
		if err := d.set(who, "k", map[string]string{"a": value}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when, value string, firstHeld, secondHeld bool) {
		t.Helper()
		if got := values["a"]; got != value {
			t.Errorf("%s: it is %s, want %s", when, got, value)
		}
		if a, b := d.held(first, "k"), d.held(second, "k"); a != firstHeld || b != secondHeld {
			t.Errorf("%s: held %v and %v, want %v and %v", when, a, b, firstHeld, secondHeld)
		}
	}
	set(first, "1")
	check("alone", "1", true, true)
	set(second, "1")
	check("of one mind", "1", true, true)
	set(second, "2")
	check("the last one wins", "2", false, true)
	set(first, "1")
	check("and goes on to win", "2", false, true)
	d.release(second, "k")
	check("in the epoch in which the other ended", "1", false, true)
	check("after it", "1", true, true)
	d.release(first, "k")
	check("after both", "0", true, true)
}

// What a dead agent has changed is put back from its journal.
func TestJournalIsPutBack(t *testing.T) {
	root, policies := agenttest.FrequencyTree(t)
	dead := testControls(t, root, nil)
	if _, err := dead.knobs[system.CPUGovernor].set(&Subject{}, space.String("performance")); err != nil {
		t.Fatal(err)
	}
	path := dead.devices.journal.path
	if err := testControls(t, root, nil).devices.restore(path); err != nil || agenttest.Content(t, policies[0], "scaling_governor") != "schedutil" {
		t.Errorf("there is %s, %v", agenttest.Content(t, policies[0], "scaling_governor"), err)
	}
	if err := os.WriteFile(path, []byte(`[{"Knob": "cpu_governor", "Where": "/nowhere", "Before": "x"}, {"Knob": "fan"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dead.devices.restore(path); err == nil || !strings.Contains(err.Error(), "/nowhere") || !strings.Contains(err.Error(), "fan") {
		t.Errorf("what cannot be put back must be said: %v", err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dead.devices.restore(path); err == nil {
		t.Error("a journal that cannot be read was passed over")
	}
	if err := dead.devices.restore(path + "-none"); err != nil {
		t.Errorf("no journal is no fault: %v", err)
	}
}

// A setting that cannot be noted is not changed.
func TestNothingChangesWithoutAJournal(t *testing.T) {
	root, policies := agenttest.FrequencyTree(t)
	c := testControls(t, root, nil)
	c.devices.journal.path = filepath.Join(t.TempDir(), "missing", "settings")
	if _, err := c.knobs[system.CPUGovernor].set(&Subject{}, space.String("performance")); err == nil || !strings.Contains(err.Error(), "note") {
		t.Errorf("got %v", err)
	}
	if got := agenttest.Content(t, policies[0], "scaling_governor"); got != "schedutil" {
		t.Errorf("it was changed to %s", got)
	}
}

func TestCoresAreSharedOut(t *testing.T) {
	k := &coresKnob{allowed: []int{0, 1, 2, 3, 6, 7, 8, 9}, taken: map[*Subject][]int{}}
	a, b, c := &Subject{}, &Subject{}, &Subject{}
	steps := []struct {
		who    *Subject
		number int
		want   []int
	}{
		{a, 2, []int{0, 1}},
		{b, 4, []int{2, 3, 6, 7}},
		{c, 4, []int{0, 1, 8, 9}}, // two are free, two are a's
		{a, 2, []int{0, 1}},       // all are taken: it stays
		{b, 2, []int{2, 3}},
		{a, 2, []int{6, 7}}, // there are free ones again
		{c, 4, []int{0, 1, 8, 9}},
		{a, 3, []int{0, 6, 7}},
		{a, 8, []int{0, 1, 2, 3, 6, 7, 8, 9}},
	}
	for i, step := range steps {
		if got := k.take(step.who, step.number); !slices.Equal(got, step.want) {
			t.Errorf("step %d: got %v, want %v", i, got, step.want)
		}
	}
	k.unset(a)
	k.unset(c)
	if got := k.take(c, 6); !slices.Equal(got, []int{0, 1, 6, 7, 8, 9}) {
		t.Errorf("beside b alone: %v", got)
	}
}

// family is a shell with children, in no control group.
type family struct {
	leader int
	mark   string
}

func (f family) Members() []int { return cgroup.Members(f.leader, f.mark) }

func (family) Grouped() bool { return false }

func startFamily(t *testing.T) *Subject {
	t.Helper()
	shell := exec.Command("sh", "-c", "sleep 1000 & setsid sleep 1000 & wait")
	shell.Env = []string{"PATH=" + os.Getenv("PATH"), "MARK=" + t.Name()}
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := shell.Start(); err != nil {
		t.Skipf("no shell: %v", err)
	}
	f := family{shell.Process.Pid, "MARK=" + t.Name()}
	t.Cleanup(func() {
		cgroup.KillMarked(f.mark)
		_, _ = unix.Kill(-f.leader, unix.SIGKILL), shell.Wait() // they may have ended
	})
	run := &Subject{Command: f}
	for deadline := time.Now().Add(5 * time.Minute); len(run.processes()) < 3; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the family has %v", run.processes())
		}
	}
	return run
}

func TestMemoryOfEachProcess(t *testing.T) {
	run := startFamily(t)
	soft := func() (list []uint64) {
		for _, pid := range run.processes() {
			var limit unix.Rlimit
			if err := unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &limit); err != nil {
				t.Fatal(err)
			}
			list = append(list, limit.Cur)
		}
		return list
	}
	before := soft()
	k := &memoryKnob{}
	how, err := k.set(run, space.Float(0.5))
	if err != nil || !strings.Contains(how, "RLIMIT_DATA") {
		t.Fatalf("got %q, %v", how, err)
	}
	if got := soft(); !slices.Equal(got, []uint64{1 << 29, 1 << 29, 1 << 29}) {
		t.Errorf("the limits are %v", got)
	}
	if _, err := k.set(run, space.Float(1.0/(1<<20))); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("1 KiB: got %v", err)
	}
	k.unset(run)
	if got := soft(); !slices.Equal(got, before) {
		t.Errorf("afterwards the limits are %v, before %v", got, before)
	}
}

func TestMemoryGroupOfVersion1(t *testing.T) {
	k := &memoryKnob{folder: proc.OldControlGroup("memory")}
	run := &Subject{}
	_, err := k.set(run, space.Int(1))
	if err != nil || run.memory == nil {
		t.Skipf("this user may not make memory groups (v1) here: %v", err)
	}
	group := run.memory.(*oldGroupLimit).folder
	started := startFamily(t)
	run.Command = started.Command
	how, err := k.set(run, space.Int(1))
	if err != nil || !strings.Contains(how, "v1") {
		t.Fatalf("got %q, %v", how, err)
	}
	inside, all := cgroup.Processes(group), run.processes()
	slices.Sort(inside)
	slices.Sort(all)
	if !slices.Equal(inside, all) || agenttest.Content(t, group, "memory.limit_in_bytes") != strconv.Itoa(1<<30) {
		t.Errorf("%v of %v are in the group, the limit is %s", inside, all, agenttest.Content(t, group, "memory.limit_in_bytes"))
	}
	k.unset(run)
	if _, err := os.Stat(group); err == nil {
		t.Error("the group is still there")
	}
}

func TestMemoryGroupOfVersion2(t *testing.T) {
	outer := t.TempDir()
	run := &Subject{Group: &cgroup.Group{Directory: filepath.Join(outer, "worker", "1")}}
	if err := os.MkdirAll(run.Group.Directory, 0o755); err != nil {
		t.Fatal(err)
	}
	k := &memoryKnob{}
	if how, err := k.set(run, space.Int(2)); err != nil || how != "" || run.memory != nil {
		t.Errorf("without the controller: got %q, %v", how, err)
	}
	for _, folder := range []string{outer, filepath.Join(outer, "worker")} { // the kernel made files of these
		if got := agenttest.Content(t, folder, "cgroup.subtree_control"); got != "+memory" {
			t.Errorf("%s passes on %q", folder, got)
		}
	}
	for name, text := range map[string]string{"memory.max": "max", "memory.stat": "anon 1073741824\nfile 99\n"} {
		if err := os.WriteFile(run.Group.File(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if how, err := k.set(run, space.Int(2)); err != nil || !strings.Contains(how, "v2") || agenttest.Content(t, run.Group.File("memory.max")) != "2147483648" {
		t.Errorf("got %q, %v, the limit is %s", how, err, agenttest.Content(t, run.Group.File("memory.max")))
	}
	if _, err := k.set(run, space.Float(0.5)); err == nil || !strings.Contains(err.Error(), "1.00 GiB already") {
		t.Errorf("below what is used: got %v", err)
	}
	k.unset(run)
	if got := agenttest.Content(t, run.Group.File("memory.max")); got != "max" {
		t.Errorf("afterwards the limit is %s", got)
	}
	// The kernel refused to start it in the group: then its processes are bounded.
	if _, err := k.set(run, space.Int(2)); err != nil {
		t.Fatal(err)
	}
	started := startFamily(t)
	run.Command = started.Command
	if how, err := k.set(run, space.Int(2)); err != nil || !strings.Contains(how, "RLIMIT_DATA") {
		t.Errorf("outside of its group: got %q, %v", how, err)
	}
	k.unset(run)
}

func TestKnobsSayWhetherTheyCanBeSet(t *testing.T) {
	root, _ := agenttest.FrequencyTree(t)
	for name, test := range map[string]struct {
		root string
		can  bool
	}{"with control of the frequency": {root, true}, "without": {t.TempDir(), false}} {
		t.Run(name, func(t *testing.T) {
			list := Capabilities(test.root)
			if len(list) != len(system.Catalogue()) {
				t.Fatalf("%d of %d knobs are told", len(list), len(system.Catalogue()))
			}
			for i, about := range system.Catalogue() {
				one := list[i]
				if one.Name != "knob "+about.Name || one.Available == (one.Reason != "") || one.Available != strings.HasPrefix(one.Detail, "can be set") {
					t.Errorf("got %+v", one)
				}
				if dial := about.Name == system.CPUFrequencyMHz || about.Name == system.CPUGovernor; dial && one.Available != test.can {
					t.Errorf("got %+v", one)
				}
			}
		})
	}
}
