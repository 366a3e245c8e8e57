package leave_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/workers/agent/leave"
)

func TestAWorkerLeavesWhenItHasBeenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := leave.Watch{Rules: leave.Rules{Idle: time.Minute}}
		w.Begin()
		ended := w.Leased()
		time.Sleep(time.Hour)
		if due := w.Due(); due != nil {
			t.Errorf("it leaves while it has a trial: %v", due)
		}
		ended(true)
		time.Sleep(59 * time.Second)
		if due := w.Due(); due != nil {
			t.Errorf("it leaves early: %v", due)
		}
		time.Sleep(time.Second)
		if due := w.Due(); !errors.As(due, new(leave.Departure)) || !strings.Contains(due.Error(), "no trial for 1m0s") {
			t.Errorf("it does not leave: %v", due)
		}
	})
}

func TestAWorkerWithoutRulesStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w leave.Watch
		w.Begin()
		time.Sleep(1000 * time.Hour)
		if w.Due() != nil || w.Late() || w.Excluded("three trials failed") != nil {
			t.Error("it leaves")
		}
	})
}

func TestAWorkerTakesNoLeaseThatDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := leave.Watch{Rules: leave.Rules{EndAt: time.Now().Add(10 * time.Hour)}, Drain: time.Minute}
		w.Begin()
		lease := func(long time.Duration) {
			ended := w.Leased()
			time.Sleep(long)
			ended(true)
		}
		lease(10 * time.Minute)
		time.Sleep(9*time.Hour + 38*time.Minute) // 12 minutes are left
		if w.Late() || w.Due() != nil {
			t.Error("a lease of ten minutes would fit")
		}
		time.Sleep(90 * time.Second)
		if !w.Late() || w.Due() == nil {
			t.Error("a lease of ten minutes does not fit, and nothing runs")
		}
		w.Leased()
		if w.Due() != nil {
			t.Error("what runs may go on")
		}
		time.Sleep(9*time.Minute + 30*time.Second)
		if w.Due() == nil {
			t.Error("what runs must be handed in")
		}
	})
}

func TestAMachineOnWhichEverythingFailsIsLeft(t *testing.T) {
	w := leave.Watch{Rules: leave.Rules{Idle: time.Minute}}
	if err := w.Excluded("no such file"); !errors.As(err, new(leave.Useless)) {
		t.Errorf("it stays: %v", err)
	}
	w.Leased()(true)
	if err := w.Excluded("no such file"); err != nil {
		t.Errorf("it leaves though a trial has run there: %v", err)
	}
}

func TestSlurmSaysWhereTheWorkerIs(t *testing.T) {
	tests := []struct {
		environment      map[string]string
		name, host, says string
		seen             int
	}{
		{nil, "", "", "", 3},
		{map[string]string{"TANDEM_NODE": "node-7"}, "", "node-7", "", 0},
		{map[string]string{"SLURM_JOB_ID": "12", "SLURMD_NODENAME": "n1", "SLURM_GPUS_ON_NODE": "2"}, "n1-12", "n1", "", 2},
		{map[string]string{"SLURM_JOB_ID": "12", "SLURMD_NODENAME": "n1", "SLURM_GPUS_ON_NODE": "gpu:2"}, "n1-12", "n1", "gave this worker 2 GPUs and it can use 0", 0},
		{map[string]string{"SLURM_JOB_ID": "12", "SLURMD_NODENAME": "n1", "SLURM_JOB_GPUS": "0,2-3", "CUDA_VISIBLE_DEVICES": "0,1,2", "SLURM_RESTART_COUNT": "1"}, "n1-12-1", "n1", "gave this worker 3 GPUs and it can use 4", 4},
		{map[string]string{"SLURM_JOB_ID": "12", "SLURMD_NODENAME": "n1", "SLURM_JOB_GPUS": "0,2-3"}, "n1-12", "n1", "", 0},
	}
	for _, test := range tests {
		rules := leave.FromEngine(leave.Rules{}, func(name string) string { return test.environment[name] })
		if rules.Name != test.name || rules.Host != test.host {
			t.Errorf("%v: it is %s on %s", test.environment, rules.Name, rules.Host)
		}
		if err := rules.Check(test.seen); (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%v: %v", test.environment, err)
		}
	}
}

func TestKubernetesIsNamed(t *testing.T) {
	for _, test := range []struct {
		environment map[string]string
		want        string
	}{
		{map[string]string{"TANDEM_NODE": "n1", "KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "tandem-abc-0"}, "stopped by Kubernetes (pod tandem-abc-0)"},
		{map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "mine"}, "the worker was stopped"},
	} {
		w := leave.Watch{Rules: leave.FromEngine(leave.Rules{}, func(name string) string { return test.environment[name] })}
		if got := w.Why(nil); got != test.want {
			t.Errorf("%v: it says %q", test.environment, got)
		}
	}
}

func TestTheFileSaysWhy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "why")
	if err := os.WriteFile(path, []byte("the node pool\nis drained\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rules := leave.FromEngine(leave.Rules{}, func(name string) string {
		if name == leave.ReasonFile {
			return path
		}
		return ""
	})
	w := leave.Watch{Rules: rules}
	if why := w.Why(nil); why != "the node pool is drained" {
		t.Errorf("it says %q", why)
	}
	if why := w.Why(leave.Departure("it was idle")); why != "it was idle" {
		t.Errorf("its own decision reads %q", why)
	}
	if why := new(leave.Watch).Why(nil); why != "the worker was stopped" {
		t.Errorf("without a reason it says %q", why)
	}
}

// What Slurm 22.05 printed of a job in the grace of its preemption, shortened.
const preempted = "JobId=1 JobName=j.sh UserId=root(0) JobState=RUNNING Reason=None RunTime=00:00:03 TimeLimit=01:00:00 EndTime=2026-11-27T16:49:41 Deadline=N/A PreemptTime=2026-11-27T16:49:33 SuspendTime=None Partition=spot "

func TestSlurmSaysWhy(t *testing.T) {
	now := time.Date(2026, 11, 27, 16, 49, 33, 0, time.Local)
	tests := []struct{ line, want string }{
		{preempted, "preempted by Slurm for a job that goes first (job 1, partition spot)"},
		{strings.Replace(preempted, "2026-11-27T16:49:33", "None", 1), "ended by Slurm at the job's time limit (job 1, partition spot)"},
		{"JobState=RUNNING EndTime=2026-11-28T16:49:41 PreemptTime=None", "stopped by Slurm (job 1, partition gpu)"},
		{"JobState=CANCELLED Reason=None EndTime=2026-11-27T16:49:33 Partition=spot", "cancelled in Slurm (job 1, partition spot)"},
		{"", "stopped by Slurm (job 1, partition gpu)"},
		{"JobId=2 ArrayJobId=1 ArrayTaskId=0 JobState=RUNNING PreemptTime=None Partition=spot\n" + preempted + "\nJobId=11 JobState=CANCELLED", "preempted by Slurm for a job that goes first (job 1, partition spot)"},
	}
	for _, test := range tests {
		if got := leave.Explain(test.line, "1", "gpu", now); got != test.want {
			t.Errorf("%q: %q, want %q", test.line, got, test.want)
		}
	}
}
