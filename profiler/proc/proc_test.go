package proc

import (
	"math"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/profiler/proctest"
)

// statLine is a line of /proc/PID/stat with the given fields in it.
func statLine(pid, parent, group string, minor, userTicks, childTicks string) string {
	return pid + " (a) (b) S " + parent + " " + group + " 0 0 -1 0 " + minor + " 1 2 3 " + userTicks + " 50 " + childTicks + " 0 20 0 2 0 77 1000 25 0"
}

func TestMachineMetrics(t *testing.T) {
	root := proctest.Write(t, map[string]string{
		"proc/stat":      "cpu  100 100 300 9000 700 10 20 30 0 0\ncpu0 1 2 3 4\nctxt 12345\nprocs_running 3\nprocs_blocked 1\n",
		"proc/vmstat":    "nr_free_pages 1\npgfault 500\npgmajfault 5\npswpin 2\npswpout 4\n",
		"proc/diskstats": "8 0 sda 10 0 200 0 20 0 400 0 0 0 0\n8 1 sda1 10 0 200 0 20 0 400 0 0 0 0\n259 0 nvme0n1 1 0 8 0 1 0 16 0\n259 1 nvme0n1p2 1 0 8 0 1 0 16 0\n253 0 dm-0 9 0 999 0 9 0 999 0\n7 0 loop0 9 0 999 0 9 0 999 0\n",
		"proc/net/dev":   "Inter-|   Receive  | Transmit\n face |bytes packets\n    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0\n  eth0: 1000 1 0 0 0 0 0 0 250 1 0 0 0 0 0 0\n",
		"proc/meminfo":   "MemTotal:       1000 kB\nMemFree: 100 kB\nMemAvailable:    400 kB\n",
	})
	o, missing := ObserveMachine(NewHost(root))
	if len(missing) > 0 {
		t.Errorf("missing %v", missing)
	}
	for name, want := range map[string]float64{
		"machine.cpu_user": 2, "machine.cpu_system": 3.3, "machine.cpu_iowait": 7, "machine.cpu_steal": 0.3, "machine.context_switches": 12345,
		"machine.page_faults": 500, "machine.page_faults_major": 5, "machine.disk_read_bytes": 208 * 512, "machine.disk_write_bytes": 416 * 512,
		"machine.network_receive_bytes": 1000, "machine.network_send_bytes": 250,
	} {
		if got := o.Sums[name]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	if o.Sums["machine.swap_out_bytes"] != 2*o.Sums["machine.swap_in_bytes"] || o.Sums["machine.swap_in_bytes"] == 0 {
		t.Errorf("swaps are %g and %g bytes", o.Sums["machine.swap_in_bytes"], o.Sums["machine.swap_out_bytes"])
	}
	if o.States["machine.run_queue"] != 3 || o.States["machine.blocked"] != 1 || o.States["machine.memory_used_bytes"] != 600*1024 {
		t.Errorf("states %v", o.States)
	}
	if _, missing := ObserveMachine(NewHost(t.TempDir())); len(missing) != 5 {
		t.Errorf("without /proc %d sources are missing, want 5", len(missing))
	}
}

// TestTreeIsFollowed: a child is found through its parent, counts once when its
// parent waited for it, and stays counted when nobody did.
func TestTreeIsFollowed(t *testing.T) {
	root := proctest.Write(t, map[string]string{
		"proc/10/stat": statLine("10", "1", "10", "5", "100", "0"), "proc/10/io": "read_bytes: 4096\nwrite_bytes: 1024\n",
		"proc/10/task/10/status":    "Name: a\nRssFile:\t     25 kB\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n",
		"proc/10/task/11/status":    "voluntary_ctxt_switches: 10\nnonvoluntary_ctxt_switches: 0\n",
		"proc/10/task/10/schedstat": "1500000000 250000000 9\n",
		"proc/10/task/11/schedstat": "4000000000 500000000 9\n",
		"proc/10/task/11/children":  "12 ",
		"proc/12/stat":              statLine("12", "10", "12", "5", "200", "0"),
		"proc/13/stat":              statLine("13", "1", "10", "5", "400", "0"), // lost its parent before it was seen
		"proc/99/stat":              statLine("99", "1", "99", "5", "900", "0"),
	})
	tree := NewTree(NewHost(root), 10, "")
	user := func(thorough bool) float64 { return tree.Observe(thorough).Sums["tree.cpu_user"] }
	if got := user(false); got != 3 {
		t.Errorf("the tree used %g s of user time, want 3", got)
	}
	o := tree.Observe(true)
	if got := o.Sums["tree.cpu_user"]; got != 7 {
		t.Errorf("looking thoroughly, the tree used %g s of user time, want 7", got)
	}
	if o.States["tree.processes"] != 3 || o.States["tree.threads"] != 6 || o.Sums["tree.context_switches"] != 17 || o.Sums["tree.disk_read_bytes"] != 4096 ||
		o.Sums["tree.context_switches_forced"] != 4 || o.Sums["tree.cpu_waiting"] != 0.75 || o.Sums["tree.cpu_first_threads"] != 1.5 || o.States["tree.resident_file_bytes"] != 25*1024 ||
		o.States["tree.largest_resident_bytes"]*3 != o.States["tree.resident_bytes"] {
		t.Errorf("got %v and %v", o.Sums, o.States)
	}
	proctest.Remove(t, root, "proc/12")
	proctest.Put(t, root, "proc/10/stat", statLine("10", "1", "10", "5", "100", "200")) // waited for 12
	proctest.Remove(t, root, "proc/13")
	proctest.Remove(t, root, "proc/10/task/11")
	o = tree.Observe(true)
	if o.Sums["tree.cpu_user"] != 7 || o.Sums["tree.context_switches"] != 17 || o.Sums["tree.cpu_waiting"] != 0.75 {
		t.Errorf("after two ended: %v", o.Sums)
	}
}

// TestProcessesOfOneThread: their threads need not be looked for, nor children
// where a control group knows them.
func TestProcessesOfOneThread(t *testing.T) {
	alone := func(pid, parent string) string {
		return strings.Replace(statLine(pid, parent, pid, "5", "100", "0"), "20 0 2 0 77", "20 0 1 0 77", 1)
	}
	files := map[string]string{
		"proc/10/stat": alone("10", "1"), "proc/10/task/10/status": "voluntary_ctxt_switches: 3\nnonvoluntary_ctxt_switches: 4\n",
		"proc/10/task/10/children": "12 14", "proc/12/stat": alone("12", "10"), "proc/14/stat": alone("14", "10"), "cgroup.procs": "10\n12\n",
	}
	root := proctest.Write(t, files)
	for cgroup, processes := range map[string]float64{"": 3, root: 2} {
		o := NewTree(NewHost(root), 10, cgroup).Observe(false)
		if o.States["tree.processes"] != processes || o.States["tree.threads"] != processes || o.Sums["tree.context_switches"] != 7 {
			t.Errorf("control group %q: got %v and %v", cgroup, o.Sums, o.States)
		}
	}
}

func FuzzHostFiles(f *testing.F) {
	f.Add("cpu  100 100 300 9000 700 10 20 30 0 0\nctxt 12345\n")
	f.Add("8 0 sda 10 0 200 0 20 0 400 0 0 0 0\n")
	f.Add("  eth0: 1000 1 0 0 0 0 0 0 250 1\n")
	f.Add("MemTotal:       1000 kB\nMemAvailable:    400 kB\n")
	f.Add("pgfault 500\npswpin 18446744073709551615\n")
	f.Add(statLine("10", "1", "10", "5", "100", "0"))
	f.Fuzz(func(t *testing.T, text string) {
		o := NewObservation()
		for _, one := range machineSources() {
			_ = one.parse(text, o) // it must only not panic, and give numbers
		}
		for name, value := range o.Sums {
			if !(value >= 0) || math.IsInf(value, 0) {
				t.Errorf("%s is %g", name, value)
			}
		}
		if u, err := parseUsage(text); err == nil && !strings.Contains(text, ")") {
			t.Errorf("%q is a process %+v", text, u)
		}
		parseColumn(text, "read_bytes")
	})
}

func TestGroupCPUSeconds(t *testing.T) {
	command := exec.Command("sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; read line")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Skipf("no shell: %v", err)
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	if used := GroupCPUSeconds(command.Process.Pid); used <= 0 {
		t.Errorf("a group that computed has used %g s", used)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // read fails at the end of input: that is how it ends
	if used := GroupCPUSeconds(command.Process.Pid); used != 0 {
		t.Errorf("a group that is gone has used %g s", used)
	}
	if BusySeconds(NewHost("")) <= 0 {
		t.Error("this machine was never busy")
	}
}

func TestParseCPUList(t *testing.T) {
	tests := []struct {
		text string
		want int
		bad  bool
	}{{text: "0", want: 1}, {text: "0,28", want: 2}, {text: "0-3,8", want: 5}, {text: "", bad: true}, {text: "3-1", bad: true}, {text: "0-99999999", bad: true}}
	for _, test := range tests {
		cpus, err := ParseCPUList(test.text)
		if (err != nil) != test.bad || len(cpus) != test.want && !test.bad {
			t.Errorf("%q: got %v, %v", test.text, cpus, err)
		}
	}
}

func TestParseUsage(t *testing.T) {
	tests := []struct {
		name, line string
		want       usage
		bad        bool
	}{
		{"plain", "7 (train) S 1 42 42 0 -1 4194560 1 2 0 0 150 50 200 100 20 0 1 0 99 0 0", usage{parent: 1, group: 42, started: 99, minorFaults: 3, threads: 1, userSeconds: 3.5, systemSeconds: 1.5}, false},
		{"brackets in the name", "7 (a) b (c) R 1 9 42 0 -1 4194560 1 2 0 0 1 0 0 0 20 0 1 0 99 0 0", usage{parent: 1, group: 9, started: 99, minorFaults: 3, threads: 1, userSeconds: 0.01}, false},
		{"cut off", "7 (train) S 1 42", usage{}, true},
		{"empty", "", usage{}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseUsage(test.line)
			if (err != nil) != test.bad || got != test.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
