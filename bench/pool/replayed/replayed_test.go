package replayed

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// replayFiles writes a trace of Gavel with two jobs, and what goes with it.
func replayFiles(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range map[string]string{
		"throughputs.json": `{"v100": {"('A', 1)": {"null": 10}}, "k80": {"('A', 1)": {"null": 5}}}`,
		"jobs.trace":       "A\tpython a.py\t-n\t1\t1000\t0\t1\nA\tpython a.py\t-n\t1\t1000\t5\t1\n",
		"machines.yaml":    "types:\n  v100: {gpus: 1, idle_watts: 10, busy_watts_per_gpu: 200}\n  k80: {gpus: 1, idle_watts: 10, busy_watts_per_gpu: 20}\nmachines:\n  - {type: v100, count: 2}\n  - {type: k80, count: 2}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func replayed(t *testing.T, folder string, more ...string) (out string, err error) {
	t.Helper()
	var printed strings.Builder
	args := append([]string{"-trace", filepath.Join(folder, "jobs.trace"), "-throughputs", filepath.Join(folder, "throughputs.json"), "-machines", filepath.Join(folder, "machines.yaml")}, more...)
	err = Run(args, &printed)
	return printed.String(), err
}

func TestReplayComparesPolicies(t *testing.T) {
	t.Parallel()
	folder := replayFiles(t)
	page := filepath.Join(folder, "page.html")
	out, err := replayed(t, folder, "-format", "gavel", "-policy", "heats", "-energy", "0,1", "-json", "-report", page)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Estimate bool `json:"estimate"`
		Outcomes []struct {
			Policy   string  `json:"policy"`
			Makespan float64 `json:"makespan_seconds"`
			Joules   struct {
				Work float64 `json:"work"`
			} `json:"joules"`
		} `json:"outcomes"`
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	if !answer.Estimate || len(answer.Outcomes) != 2 {
		t.Fatalf("the answer is %s", out)
	}
	if fast, thrifty := answer.Outcomes[0], answer.Outcomes[1]; fast.Makespan != 105 || fast.Joules.Work != 40_000 || thrifty.Makespan != 205 || thrifty.Joules.Work != 8_000 {
		t.Errorf("H=0 took %g s and %g J, H=1 %g s and %g J: want 105 s and 40000 J, 205 s and 8000 J", fast.Makespan, fast.Joules.Work, thrifty.Makespan, thrifty.Joules.Work)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "Replay of jobs.trace") {
		t.Errorf("the report is not there: %v", err)
	}
	out, err = replayed(t, folder, "-format", "gavel", "-policy", "spread,anywhere,first-fit,heats,packed,watched,priority,preemptive,restarting,deflated,standby", "-drop", "0.5")
	if err != nil || !strings.Contains(out, "heats H=0.5, moving") || !strings.Contains(out, "Joules are estimates") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestReplayTakesTheLongestFirst(t *testing.T) {
	t.Parallel()
	folder := replayFiles(t)
	out, err := replayed(t, folder, "-format", "gavel", "-policy", "first-fit,packed", "-longest-first")
	if err != nil || !strings.Contains(out, "first-fit, longest first") || !strings.Contains(out, "packed, longest first") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestReplaySaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	folder := replayFiles(t)
	for _, one := range []struct {
		args []string
		says string
	}{
		{[]string{"-format", "philly"}, `-format "philly"`},
		{[]string{"-format", "alibaba"}, "-nodes"},
		{[]string{"-format", "gavel", "-policy", "best"}, `-policy "best"`},
		{[]string{"-format", "gavel", "-energy", "2"}, "-energy 2"},
		{[]string{"-format", "gavel", "-stretch", "0"}, "-stretch 0"},
		{[]string{"-format", "gavel", "-trace", "a,b"}, "-trace is given 2 times"},
		{[]string{"-format", "muri"}, "jobs.trace, line 1"},
		{[]string{"-format", "gavel", "-drop", "1", "-policy", "deflated"}, "drops 1"},
	} {
		if _, err := replayed(t, folder, one.args...); err == nil || !strings.Contains(err.Error(), one.says) {
			t.Errorf("%v: %v, want %q", one.args, err, one.says)
		}
	}
}

func TestReplayPlaysUsersAndTheirQuotas(t *testing.T) {
	t.Parallel()
	folder := replayFiles(t)
	machines := "types:\n  v100: {gpus: 1}\nmachines:\n  - {type: v100, count: 2}\nquotas:\n  user-1: {trials: 1, gpus: 1, gpu_hours_a_day: 24, weight: 2}\n"
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("machines.yaml", machines)
	write("jobs.trace", strings.Repeat("A\tpython a.py\t-n\t1\t1000\t0\t1\n", 12))
	page := filepath.Join(folder, "page.html")
	out, err := replayed(t, folder, "-format", "gavel", "-policy", "fair,heats", "-exchange", "-users", "2", "-json", "-report", page)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Outcomes []struct {
			Policy   string  `json:"policy"`
			Makespan float64 `json:"makespan_seconds"`
			Fairness float64 `json:"fairness"`
			Users    []struct {
				User string  `json:"user"`
				Jobs int     `json:"jobs"`
				GPUs float64 `json:"gpu_seconds"`
			} `json:"users"`
		} `json:"outcomes"`
		Notes []string `json:"notes"`
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Outcomes) != 4 || !strings.Contains(strings.Join(answer.Notes, " "), "Whose job is whose is made up") {
		t.Fatalf("the answer is %s", out)
	}
	for _, one := range answer.Outcomes {
		if len(one.Users) != 2 || one.Fairness <= 0.5 || one.Fairness > 1 {
			t.Fatalf("%s: %+v", one.Policy, one)
		}
		// 100 s each, and user-1 runs one at a time.
		if first := one.Users[0]; first.User != "user-1" || first.Jobs < 6 || one.Makespan != 100*float64(first.Jobs) || first.GPUs != 100*float64(first.Jobs) {
			t.Errorf("%s takes %g s: %+v", one.Policy, one.Makespan, one.Users)
		}
	}
	if out, _ = replayed(t, folder, "-format", "gavel", "-policy", "fair", "-users", "2"); !strings.Contains(out, "SLOWDOWN") || !strings.Contains(out, "user-2") {
		t.Errorf("printed is %s", out)
	}
	if shown, err := os.ReadFile(page); err != nil || !strings.Contains(string(shown), "user-1") { //nolint:gosec // this test's folder
		t.Errorf("the page does not tell of users: %v", err)
	}
	write("machines.yaml", strings.Replace(machines, "trials: 1", "trials: -1", 1))
	if _, err := replayed(t, folder, "-format", "gavel"); err == nil || !strings.Contains(err.Error(), "quotas.user-1.trials is -1") {
		t.Errorf("the quota is taken: %v", err)
	}
}

// TestReplaySaysWhatATraceDoesNotTell: that jobs are packed by what is not known of
// them, and over which time energy is compared.
func TestReplaySaysWhatATraceDoesNotTell(t *testing.T) {
	t.Parallel()
	folder := replayFiles(t)
	out, err := replayed(t, folder, "-format", "gavel", "-policy", "first-fit,packed")
	if err != nil || !strings.Contains(out, "does not say how busy jobs keep a GPU") || !strings.Contains(out, "Energy is counted for the same 1m45s of all policies") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = replayed(t, folder, "-format", "gavel", "-policy", "first-fit,spread")
	if err != nil || strings.Contains(out, "does not say how busy") {
		t.Errorf("without packing: %v: %s", err, out)
	}
}
