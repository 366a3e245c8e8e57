package trace_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/bench/pool/replay/policies"
	"github.com/tandem-tune/tandem/bench/pool/replay/trace"
)

const machines = `
types:
  v100: {gpus: 8, cores: 64, memory_gib: 256, gpu_memory_gib: 16, idle_watts: 400, asleep_watts: 20, wake_seconds: 120, busy_watts_per_gpu: 200}
  old: {as: k80, gpus: 4, cores: 16, memory_gib: 64, idle_watts: 200, busy_watts_per_gpu: 100, speed: 0.5}
machines:
  - {type: v100, count: 2}
  - {type: old, count: 1}
`

func described(t *testing.T) trace.Machines {
	t.Helper()
	m, err := trace.ReadMachines("machines.yaml", []byte(machines))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

// says holds that an error names all of these.
func says(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error %q does not say %q", err, word)
		}
	}
}

func TestMachinesOfAFile(t *testing.T) {
	m := described(t)
	if len(m.Cluster.Machines) != 3 || m.Cluster.Machines[2].Name != "old-2" {
		t.Fatalf("machines %v", m.Cluster.Machines)
	}
	if of := m.Cluster.Types[1]; of.Capacity.GPUs != 8 || of.GPUMemoryBytes != 16<<30 || of.IdleWatts != 400 || of.WakeSeconds != 120 {
		t.Errorf("type %+v", of)
	}
	for _, one := range []struct {
		text string
		says []string
	}{
		{"types: {a: {gpu: 1}}\nmachines: [{type: a, count: 1}]", []string{"m.yaml", "gpu"}},
		{"types: {a: {gpus: 1}}\nmachines: [{type: b, count: 1}]", []string{"machines[0].type", `"b"`}},
		{"types: {a: {gpus: 1}}\nmachines: [{type: a}]", []string{"machines[0].count", "0"}},
		{"machines: [{type: a, count: 1}]", []string{"m.yaml", "no types"}},
		{"types: {a: {idle_watts: 3}}\nmachines: [{type: a, count: 1}]", []string{"types.a", "gpus", "cores"}},
		{"types: {a: {gpus: 1, idle_watts: -3}}\nmachines: [{type: a, count: 1}]", []string{"types.a.idle_watts", "-3"}},
		{"", []string{"m.yaml", "types"}},
	} {
		_, err := trace.ReadMachines("m.yaml", []byte(one.text))
		says(t, err, one.says...)
	}
}

const throughputs = `{"v100": {"('A', 1)": {"null": 10, "('A', 1)": [6, 6], "('B', 1)": [5, 2]}, "('B', 1)": {"null": 4, "('A', 1)": [2, 5]}, "('B', 4)": {"null": 12}},
	"k80": {"('A', 1)": {"null": 1}, "('B', 1)": {"null": 0.0}}}`

func gavel(t *testing.T, lines string) (trace.Trace, error) {
	t.Helper()
	known, err := trace.ReadThroughputs("t.json", strings.NewReader(throughputs))
	if err != nil {
		t.Fatal(err)
	}
	return trace.Gavel("g.trace", strings.NewReader(lines), known, described(t))
}

func TestGavel(t *testing.T) {
	read, err := gavel(t, "A\tpython a.py\t-n\t1\t1000\t5.000000\t1\nB\tpython b.py\t-n\t1\t600\t7\t4\nA\tpython a.py\tdir\t-n\t1\t50\t2\t1\t-1.0\t9\n")
	if err != nil {
		t.Fatal(err)
	}
	alone, _ := read.Jobs[0].Alone("v100")
	near(t, "1000 steps of A, seconds", alone.Seconds, 100)
	near(t, "1000 steps of A, joules", alone.Joules, 100*200)
	alone, _ = read.Jobs[0].Alone("old")
	near(t, "1000 steps of A on k80", alone.Seconds, 1000)
	alone, _ = read.Jobs[1].Alone("v100")
	near(t, "600 steps of B on 4 GPUs", alone.Seconds, 50)
	if _, runs := read.Jobs[1].Alone("old"); runs {
		t.Error("B does not run on k80, where its throughput is 0")
	}
	if last := read.Jobs[2]; last.Work != 50 || last.Arrives != 9 || last.Needs.GPUs != 2 {
		t.Errorf("a line of ten fields is read as %+v", last)
	}
	alone, _ = read.Jobs[2].Alone("v100")
	near(t, "A on two GPUs, by one", alone.Seconds, 2.5)
	if !strings.Contains(strings.Join(read.Notes, " "), "1 of 3 jobs") {
		t.Errorf("the notes %v do not say that one speed is an estimate", read.Notes)
	}
	a, b := &read.Jobs[0], &read.Jobs[1]
	speeds := read.Slowdown("v100", []*replay.Job{a, b})
	near(t, "A beside B", speeds[0], 0.5)
	near(t, "B beside A", speeds[1], 0.5)
	speeds = read.Slowdown("v100", []*replay.Job{a, a, b})
	near(t, "A beside A and B", speeds[0], 0.6*0.5)
}

func TestBadLinesOfGavelAreNamed(t *testing.T) {
	for _, one := range []struct{ line, says string }{
		{"A\tpython\t-n\t1\tmany\t5\t1", `line 1, column 5 (steps): "many"`},
		{"A\tpython\t-n\t1\t10\t-5\t1", `column 6 (arrival): "-5"`},
		{"A\tpython\t-n\t1\t10\t5\t1.5", `column 7 (GPUs): "1.5"`},
		{"A\tpython", "2 fields"},
		{"C\tpython\t-n\t1\t10\t5\t1", `column 1 (type): "C"`},
	} {
		_, err := gavel(t, one.line)
		says(t, err, "g.trace", one.says)
	}
	_, err := trace.ReadThroughputs("t.json", strings.NewReader(`{"v100": {"('A', 1)": {"null": -2}}}`))
	says(t, err, "t.json", "v100", "('A', 1)", "-2")
}

const muriHeading = "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,resource_time_0,resource_time_1,resource_time_2,priority\n"

func TestMuri(t *testing.T) {
	read, err := trace.Muri("m.csv", strings.NewReader(muriHeading+"0,4,1456000,1000,bert,4,190000,1,190,0.5,163,18,1\n1,1,2000000,10,dqn,128,4900,1,490,446,8,0,0\n"), described(t))
	if err != nil {
		t.Fatal(err)
	}
	bert := read.Jobs[0]
	alone, _ := bert.Alone("v100")
	near(t, "seconds", alone.Seconds, 190)
	near(t, "joules", alone.Joules, 190*4*200*163/190)
	near(t, "utilization", bert.Utilization, 163.0/190)
	near(t, "arrival", bert.Arrives, 1456)
	alone, _ = bert.Alone("old")
	near(t, "seconds at half the speed", alone.Seconds, 380)
	if bert.Needs.GPUs != 4 || bert.Priority != 1 {
		t.Errorf("bert is read as %+v", bert)
	}
	speeds := read.Slowdown("v100", []*replay.Job{&read.Jobs[1], &read.Jobs[1]})
	near(t, "two that want the processor 91% of the time", speeds[0], 490.0/(2*446))
	_, err = trace.Muri("m.csv", strings.NewReader(muriHeading+"0,4,soon,1000,bert,4,190000,1,190,0.5,163,18,1\n"), described(t))
	says(t, err, "m.csv", "line 2", "column submit_time", `"soon"`)
	_, err = trace.Muri("m.csv", strings.NewReader("a,b\n1,2\n"), described(t))
	says(t, err, "m.csv", "job_id")
}

func TestAlibaba(t *testing.T) {
	power, err := trace.ReadMachines("p.yaml", []byte("types: {T4: {busy_watts_per_gpu: 60, idle_watts: 90}}"))
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := trace.AlibabaNodes("n.csv", strings.NewReader("sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,96000,786432,2,T4\nn2,96000,786432,2,T4\n"), power)
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Cluster.Types) != 2 || len(nodes.Cluster.Machines) != 3 || nodes.Cluster.Types[1].IdleWatts != 90 || nodes.Cluster.Types[1].Capacity.GPUs != 2 {
		t.Fatalf("the nodes are read as %+v", nodes.Cluster)
	}
	heading := "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
	read, err := trace.AlibabaPods("p.csv", strings.NewReader(heading+"p0,11908,1024,1,460,,LS,Running,5,105,10\np1,1,1,1,1000,,BE,Pending,5,6,\n"), nodes)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Jobs) != 1 || read.Jobs[0].Needs.Cores != 12 || read.Jobs[0].Utilization != 0.46 || read.Jobs[0].Arrives != 5 {
		t.Fatalf("the pods are read as %+v", read.Jobs)
	}
	alone, _ := read.Jobs[0].Alone("T4 x2, 96 cores, 768 GiB")
	near(t, "seconds", alone.Seconds, 95)
	near(t, "joules", alone.Joules, 95*0.46*60)
	_, err = trace.AlibabaPods("p.csv", strings.NewReader(heading+"p0,1,1024,one,460,,LS,Running,5,105,10\n"), nodes)
	says(t, err, "p.csv", "line 2", "column num_gpu", `"one"`)
}

func TestHeliosWantsWhatItsCurveSays(t *testing.T) {
	curve := "time,running_gpu_num,pending_gpu_num\n2020-05-01 00:00:00,2,0\n2020-05-01 00:01:00,2,1\n2020-05-01 00:02:00,1,0\n2020-05-01 00:03:00,1,0\n"
	m := described(t)
	read, err := trace.Helios("h.csv", strings.NewReader(curve), m)
	if err != nil {
		t.Fatal(err)
	}
	for minute, want := range []int{2, 3, 1, 1} {
		at, wanted := float64(60*minute), 0
		for _, one := range read.Jobs {
			if one.Arrives <= at && at < one.Arrives+one.Work {
				wanted++
			}
		}
		if wanted != want {
			t.Errorf("%d GPUs are wanted in minute %d, want %d", wanted, minute, want)
		}
	}
	_, err = trace.Helios("h.csv", strings.NewReader("time,running_gpu_num,pending_gpu_num\nnow,1,1\n"), m)
	says(t, err, "h.csv", "line 2", "column time", `"now"`)
}

const export = `{"study": {"id": "s1", "name": "lenet", "owner": "ann", "definition": {"priority": 2}}, "trials": [], "events": [
	{"at": "2026-01-01T00:00:00Z", "kind": "trial_state", "number": 0, "state": "leased", "data": {"host": "big"}},
	{"at": "2026-01-01T00:00:10Z", "kind": "report", "number": 0, "state": "running", "data": {"epoch": 1, "seconds": 10, "energy": {"joules": 500, "method": "rapl"}}},
	{"at": "2026-01-01T00:00:20Z", "kind": "report", "number": 0, "state": "running", "data": {"epoch": 2, "seconds": 10, "energy": {"joules": 700, "method": "rapl"}}},
	{"at": "2026-01-01T00:00:21Z", "kind": "trial_state", "number": 0, "state": "paused", "data": {}},
	{"at": "2026-01-01T00:01:00Z", "kind": "trial_state", "number": 1, "state": "leased", "data": {"host": "small"}},
	{"at": "2026-01-01T00:01:30Z", "kind": "report", "number": 1, "state": "running", "data": {"epoch": 1, "seconds": 30, "energy": {"joules": 300, "method": "rapl"}}},
	{"at": "2026-01-01T00:01:31Z", "kind": "trial_state", "number": 1, "state": "completed", "data": {}},
	{"at": "2026-01-01T00:02:00Z", "kind": "trial_state", "number": 2, "state": "leased", "data": {"host": "small"}},
	{"at": "2026-01-01T00:02:01Z", "kind": "trial_state", "number": 2, "state": "failed", "data": {}}]}`

func TestStudiesOfOnesOwn(t *testing.T) {
	m, err := trace.ReadMachines("m.yaml", []byte("types: {server: {cores: 8, hosts: [big]}, board: {cores: 4, hosts: [small]}, new: {cores: 4, speed: 2, busy_watts_per_core: 7}}\nmachines: [{type: server, count: 1}, {type: board, count: 1}, {type: new, count: 1}]"))
	if err != nil {
		t.Fatal(err)
	}
	read, err := trace.Tandem([]trace.Export{{File: "s.json", In: strings.NewReader(export)}}, m)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Jobs) != 2 {
		t.Fatalf("%d jobs, want the two times in which epochs were reported: %+v", len(read.Jobs), read.Jobs)
	}
	first, second := read.Jobs[0], read.Jobs[1]
	near(t, "arrival of the second", second.Arrives, 60)
	for _, one := range []struct {
		what    string
		job     replay.Job
		on      string
		seconds float64
		joules  float64
	}{
		{"where it ran", first, "server", 20, 1200}, {"on a board", first, "board", 60, 600}, {"at double speed", first, "new", 10, 70}, {"a board's", second, "board", 30, 300},
	} {
		took, _ := one.job.Alone(one.on)
		near(t, one.what+", seconds", took.Seconds, one.seconds)
		near(t, one.what+", joules", took.Joules, one.joules)
	}
	if first.User != "ann" || first.Priority != 2 {
		t.Errorf("the job is read as %+v", first)
	}
	_, err = trace.Tandem([]trace.Export{{File: "s.json", In: strings.NewReader(strings.ReplaceAll(export, `"small"`, `"gone"`))}}, m)
	says(t, err, "s.json", "trial 1", `"gone"`, "hosts")
	_, err = trace.Tandem([]trace.Export{{File: "s.json", In: strings.NewReader(`{"trials": []}`)}}, m)
	says(t, err, "s.json", "export")
}

// The recorded traces, where they are, are read whole and played.
func TestRecordedTracesArePlayed(t *testing.T) {
	data := os.Getenv("TANDEM_DATA")
	if data == "" {
		data = "../../../../shared/data"
	}
	open := func(t *testing.T, name string) *os.File {
		t.Helper()
		file, err := os.Open(filepath.Join(data, name))
		if err != nil {
			t.Skipf("the recorded traces are not here (TANDEM_DATA): %v", err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return file
	}
	m, err := trace.ReadMachines("m.yaml", []byte("types: {v100: {gpus: 16, busy_watts_per_gpu: 200}, p100: {gpus: 8, busy_watts_per_gpu: 200}, k80: {gpus: 8, busy_watts_per_gpu: 120}}\nmachines: [{type: v100, count: 8}, {type: p100, count: 8}, {type: k80, count: 8}]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		name string
		read func(t *testing.T) (trace.Trace, trace.Machines, error)
	}{
		{"gavel", func(t *testing.T) (trace.Trace, trace.Machines, error) {
			known, err := trace.ReadThroughputs("t", open(t, "gavel/simulation_throughputs.json"))
			if err != nil {
				return trace.Trace{}, m, err
			}
			read, err := trace.Gavel("g", open(t, "gavel/traces/msr_seed0_2869ce.trace"), known, m)
			return read, m, err
		}},
		{"muri", func(t *testing.T) (trace.Trace, trace.Machines, error) {
			read, err := trace.Muri("m", open(t, "muri_traces/trace1.csv"), m)
			return read, m, err
		}},
		{"alibaba", func(t *testing.T) (trace.Trace, trace.Machines, error) {
			nodes, err := trace.AlibabaNodes("n", open(t, "alibaba_gpu/openb_node_list_all_node.csv"), m)
			if err != nil {
				return trace.Trace{}, m, err
			}
			read, err := trace.AlibabaPods("p", open(t, "alibaba_gpu/openb_pod_list_default.csv"), nodes)
			return read, nodes, err
		}},
	} {
		t.Run(one.name, func(t *testing.T) {
			read, cluster, err := one.read(t)
			if err != nil {
				t.Fatal(err)
			}
			outcome, err := replay.Play(cluster.Cluster, read.Jobs, policies.FirstFit(), replay.Settings{Slowdown: read.Slowdown})
			if err != nil {
				t.Fatal(err)
			}
			if outcome.Jobs != len(read.Jobs) || len(read.Jobs) < 400 {
				t.Errorf("%d of %d jobs ended", outcome.Jobs, len(read.Jobs))
			}
			t.Logf("%d jobs, makespan %.0f s, allocated %.2f", outcome.Jobs, outcome.Makespan, outcome.Allocated)
		})
	}
}

func TestJobsThatFitNowhereAreLeftOutAndCounted(t *testing.T) {
	read, err := gavel(t, "A\tpython\t-n\t1\t10\t0\t1\nA\tpython\t-n\t1\t10\t0\t32\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Jobs) != 1 || !strings.Contains(strings.Join(read.Notes, " "), "1 of 2 jobs need more than any machine has") {
		t.Errorf("%d jobs are left, and the notes are %v", len(read.Jobs), read.Notes)
	}
}
