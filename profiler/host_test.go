package profiler

import (
	"math"
	"strings"
	"testing"
	"time"
)

// statLine is a line of /proc/PID/stat with the given fields in it.
func statLine(pid, parent, group string, minor, userTicks, childTicks string) string {
	return pid + " (a) (b) S " + parent + " " + group + " 0 0 -1 0 " + minor + " 1 2 3 " + userTicks + " 50 " + childTicks + " 0 20 0 2 0 77 1000 25 0"
}

func TestMachineMetrics(t *testing.T) {
	root := write(t, map[string]string{
		"proc/stat":      "cpu  100 100 300 9000 700 10 20 30 0 0\ncpu0 1 2 3 4\nctxt 12345\nprocs_running 3\nprocs_blocked 1\n",
		"proc/vmstat":    "nr_free_pages 1\npgfault 500\npgmajfault 5\npswpin 2\npswpout 4\n",
		"proc/diskstats": "8 0 sda 10 0 200 0 20 0 400 0 0 0 0\n8 1 sda1 10 0 200 0 20 0 400 0 0 0 0\n259 0 nvme0n1 1 0 8 0 1 0 16 0\n259 1 nvme0n1p2 1 0 8 0 1 0 16 0\n253 0 dm-0 9 0 999 0 9 0 999 0\n7 0 loop0 9 0 999 0 9 0 999 0\n",
		"proc/net/dev":   "Inter-|   Receive  | Transmit\n face |bytes packets\n    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0\n  eth0: 1000 1 0 0 0 0 0 0 250 1 0 0 0 0 0 0\n",
		"proc/meminfo":   "MemTotal:       1000 kB\nMemFree: 100 kB\nMemAvailable:    400 kB\n",
	})
	o, missing := observeMachine(newHost(root))
	if len(missing) > 0 {
		t.Errorf("missing %v", missing)
	}
	for name, want := range map[string]float64{
		"machine.cpu_user": 2, "machine.cpu_system": 3.3, "machine.cpu_iowait": 7, "machine.cpu_steal": 0.3, "machine.context_switches": 12345,
		"machine.page_faults": 500, "machine.page_faults_major": 5, "machine.disk_read_bytes": 208 * 512, "machine.disk_write_bytes": 416 * 512,
		"machine.network_receive_bytes": 1000, "machine.network_send_bytes": 250,
	} {
		if got := o.sums[name]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	if o.sums["machine.swap_out_bytes"] != 2*o.sums["machine.swap_in_bytes"] || o.sums["machine.swap_in_bytes"] == 0 {
		t.Errorf("swaps are %g and %g bytes", o.sums["machine.swap_in_bytes"], o.sums["machine.swap_out_bytes"])
	}
	if o.states["machine.run_queue"] != 3 || o.states["machine.blocked"] != 1 || o.states["machine.memory_used_bytes"] != 600*1024 {
		t.Errorf("states %v", o.states)
	}
	if _, missing := observeMachine(newHost(t.TempDir())); len(missing) != 5 {
		t.Errorf("without /proc %d sources are missing, want 5", len(missing))
	}
}

// TestTreeIsFollowed: a child is found through its parent, counts once when its
// parent waited for it, and stays counted when nobody did.
func TestTreeIsFollowed(t *testing.T) {
	root := write(t, map[string]string{
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
	tree := newTree(newHost(root), 10, "")
	user := func(thorough bool) float64 { return tree.observe(thorough).sums["tree.cpu_user"] }
	if got := user(false); got != 3 {
		t.Errorf("the tree used %g s of user time, want 3", got)
	}
	o := tree.observe(true)
	if got := o.sums["tree.cpu_user"]; got != 7 {
		t.Errorf("looking thoroughly, the tree used %g s of user time, want 7", got)
	}
	if o.states["tree.processes"] != 3 || o.states["tree.threads"] != 6 || o.sums["tree.context_switches"] != 17 || o.sums["tree.disk_read_bytes"] != 4096 ||
		o.sums["tree.context_switches_forced"] != 4 || o.sums["tree.cpu_waiting"] != 0.75 || o.sums["tree.cpu_first_threads"] != 1.5 || o.states["tree.resident_file_bytes"] != 25*1024 {
		t.Errorf("got %v and %v", o.sums, o.states)
	}
	remove(t, root, "proc/12")
	put(t, root, "proc/10/stat", statLine("10", "1", "10", "5", "100", "200")) // waited for 12
	remove(t, root, "proc/13")
	remove(t, root, "proc/10/task/11")
	o = tree.observe(true)
	if o.sums["tree.cpu_user"] != 7 || o.sums["tree.context_switches"] != 17 || o.sums["tree.cpu_waiting"] != 0.75 {
		t.Errorf("after two ended: %v", o.sums)
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
	root := write(t, files)
	for cgroup, processes := range map[string]float64{"": 3, root: 2} {
		o := newTree(newHost(root), 10, cgroup).observe(false)
		if o.states["tree.processes"] != processes || o.states["tree.threads"] != processes || o.sums["tree.context_switches"] != 7 {
			t.Errorf("control group %q: got %v and %v", cgroup, o.sums, o.states)
		}
	}
}

func TestNextSample(t *testing.T) {
	now := time.Unix(100, 0)
	for name, test := range map[string]struct{ due, spent, want time.Duration }{
		"in time":        {900 * time.Millisecond, 2 * time.Millisecond, 900 * time.Millisecond},
		"a large tree":   {900 * time.Millisecond, 10 * time.Millisecond, 2 * time.Second},
		"an own choice":  {10 * time.Millisecond, 0, 10 * time.Millisecond},
		"already late":   {-3 * time.Second, 0, 0},
		"late and large": {-3 * time.Second, 10 * time.Millisecond, 2 * time.Second},
	} {
		if got := nextSample(now, now.Add(test.due), test.spent).Sub(now); got != test.want {
			t.Errorf("%s: in %v, want %v", name, got, test.want)
		}
	}
}

func TestStatesAreMeansAndSumsAreRates(t *testing.T) {
	at := func(sum, level float64) observation {
		o := newObservation()
		o.sums["tree.cpu_user"], o.states["tree.threads"] = sum, level
		return o
	}
	s := newSpan(nil, at(10, 0))
	s.observe(1, nil, at(11, 2))
	s.observe(1, nil, at(14, 6))
	s.observe(1, nil, at(13, 4)) // a process ended before its parent waited for it
	p := s.profile(nil, HostLevel, nil)
	if rate, _ := p.HostValue("tree.cpu_user"); math.Abs(rate-4.0/3) > 1e-9 {
		t.Errorf("%g cores, want 4/3", rate)
	}
	for _, metric := range p.Host {
		if metric.Name == "tree.threads" && (metric.Value != 4 || *metric.Highest != 6) {
			t.Errorf("threads: mean %g, highest %g", metric.Value, *metric.Highest)
		}
	}
}

func TestEveryIntervalIsSampled(t *testing.T) {
	launched, _ := launchShell(t, "sleep 0.5")
	if err := launched.Wait(); err != nil {
		t.Fatal(err)
	}
	if p := launched.Recorder.Whole(); p.Samples != 2 { // the first and the last look
		t.Errorf("%d samples, want 2 with an interval of an hour", p.Samples)
	}
	often, err := Launch(sleeping(), Events(), 10*time.Millisecond)
	if err != nil {
		t.Skipf("no sleep: %v", err)
	}
	if err := often.Wait(); err != nil {
		t.Fatal(err)
	}
	if p := often.Recorder.Whole(); p.Samples < 4 {
		t.Errorf("%d samples in half a second, one each 10 ms was asked for", p.Samples)
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
		o := newObservation()
		for _, one := range machineSources() {
			_ = one.parse(text, o) // it must only not panic, and give numbers
		}
		for name, value := range o.sums {
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
