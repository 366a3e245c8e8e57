package slurm

import (
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
)

func TestTheScript(t *testing.T) {
	e := &Engine{options: engine.Options{Name: "tandem", Logs: "/l", Worker: []string{"/opt/tandem", "worker", "--idle", "5m"}, Enrolments: "/home/o'ann/tokens", Home: "/home/o'ann", Path: "/usr/bin"}}
	got := e.script(launcher.Order{ID: "abc", Shape: launcher.Shape{Trials: 2, TimeLimit: time.Hour, Setup: []string{"module load cuda"}}})
	want := `#!/bin/sh
# A worker that tandem launch ordered.
export HOME='/home/o'\''ann' PATH='/usr/bin'
module load cuda
exec srun --export=ALL --kill-on-bad-exit=0 '/opt/tandem' 'worker' --scratch "${TMPDIR:-/tmp}/tandem-$SLURM_JOB_ID" '--idle' '5m' '--slots' '2' '--end-at' '59m0s' --token-file '/home/o'\''ann/tokens'/abc-"$SLURM_ARRAY_TASK_ID" --launch abc-"$SLURM_ARRAY_TASK_ID"
`
	if got != want {
		t.Errorf("the script is\n%s", got)
	}
}

func TestWhatSqueueSays(t *testing.T) {
	e := &Engine{options: engine.Options{Name: "tandem"}}
	for _, test := range []struct {
		line string
		want launcher.Job
		mine bool
	}{
		{"3_1|3|1|tandem.gpu1.abc|PENDING|QOSMaxGRESPerUser|", launcher.Job{ID: "3_1", Launch: "abc-1", Shape: "gpu1", State: launcher.Pending, Why: "waits as a limit of your quality of service (QOS) is reached (Slurm: QOSMaxGRESPerUser)"}, true},
		{"3_0|3|0|tandem.gpu1.abc|RUNNING|None|n1", launcher.Job{ID: "3_0", Launch: "abc-0", Shape: "gpu1", State: launcher.Running, Node: "n1"}, true},
		{"3_0|3|0|tandem.gpu1.abc|COMPLETING|None|n1", launcher.Job{ID: "3_0", Launch: "abc-0", Shape: "gpu1", State: launcher.Leaving, Node: "n1"}, true},
		{"3_0|3|0|tandem.gpu1.abc|PREEMPTED|None|n1", launcher.Job{ID: "3_0", Launch: "abc-0", Shape: "gpu1", State: launcher.Ended, Node: "n1", Why: "preempted for a job that goes first", Cause: protocol.Preempted}, true},
		{"3_0|3|0|tandem.gpu1.abc|OUT_OF_MEMORY|None|n1", launcher.Job{ID: "3_0", Launch: "abc-0", Shape: "gpu1", State: launcher.Ended, Node: "n1", Why: "the worker ran out of memory: raise memory_gib", Cause: protocol.OutOfMemory}, true},
		{"4|4|N/A|wrap|RUNNING|None|n1", launcher.Job{}, false},
		{"4_0|4|0|other.gpu1.abc|RUNNING|None|n1", launcher.Job{}, false},
		{"10|10|N/A|tandem.gpu1.abc|CANCELLED|None|", launcher.Job{}, false},
		{"slurm_load_jobs error", launcher.Job{}, false},
	} {
		if got, mine := e.parse(test.line); mine != test.mine || mine && got != test.want {
			t.Errorf("%s: %+v, %v", test.line, got, mine)
		}
	}
}

func TestARefusedArraySaysWhatHelps(t *testing.T) {
	for said, want := range map[string]string{
		"sbatch: error: Batch job submission failed: Invalid job array specification":                                                       "lower most_pending",
		"sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)": "lower most_pending",
		"sbatch: error: invalid partition specified: nowhere":                                                                               "",
	} {
		if got := remedy(said); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", said, got, want)
		}
	}
}

func TestOptionsThatUndoAWorkerAreRefused(t *testing.T) {
	for option, good := range map[string]bool{"--partition=gpu": true, "--account=lab": true, "--export=ALL": false, "--wrap=x": false, "-t=3": false, "gpu": false} {
		if err := CheckOptions([]string{option}); (err == nil) != good {
			t.Errorf("%s: %v", option, err)
		}
	}
}
