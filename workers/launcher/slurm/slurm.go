// Package slurm starts workers as jobs of a Slurm cluster, by its own commands: sbatch,
// squeue, scontrol and scancel of version 20.02 or newer.
package slurm

import (
	"context"
	"fmt"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
)

// Engine starts workers as jobs.
type Engine struct {
	options engine.Options
	user    string
}

var _ launcher.Engine = (*Engine)(nil)

// New returns an engine of the user that this process runs as.
func New(options engine.Options) (*Engine, error) {
	me, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("whose jobs are these: %w", err)
	}
	for _, command := range []string{"sbatch", "squeue", "scontrol", "scancel"} {
		if _, err := exec.LookPath(command); err != nil {
			return nil, fmt.Errorf("%s is in no folder of PATH: run this on a machine where you use Slurm, such as its login node", command)
		}
	}
	return &Engine{options, me.Username}, nil
}

// forbidden are options of sbatch that would undo what makes a worker work.
var forbidden = []string{"--wrap", "--export", "--array", "-a", "--requeue", "--job-name", "-J", "--parsable", "--output", "-o", "--time", "-t"}

// CheckOptions refuses options of sbatch that a shape cannot have.
func CheckOptions(options []string) error {
	for _, one := range options {
		name, _, _ := strings.Cut(one, "=")
		if !strings.HasPrefix(one, "-") {
			return fmt.Errorf("option %q: write it as one word, such as --partition=gpu", one)
		}
		for _, bad := range forbidden {
			if name == bad {
				return fmt.Errorf("option %q: the launcher sets %s itself", one, bad)
			}
		}
	}
	return nil
}

// Launch submits an array of jobs. Nothing of this process's environment goes with
// them: Slurm would write it to its disk.
func (e *Engine) Launch(ctx context.Context, order launcher.Order) error {
	s := order.Shape
	args := []string{
		"--parsable", "--export=NONE", "--no-requeue", "--nodes=1", "--ntasks=1",
		"--job-name=" + e.options.Name + "." + s.Name + "." + order.ID,
		"--array=0-" + strconv.Itoa(order.Count-1),
		"--cpus-per-task=" + strconv.Itoa(s.Cores),
		"--time=" + strconv.Itoa(int(s.TimeLimit/time.Minute)),
		"--output=" + e.log("%A", "%a"), "--chdir=" + e.options.Logs,
	}
	if s.GPUs > 0 {
		kind := ""
		if s.GPUType != "" {
			kind = s.GPUType + ":"
		}
		args = append(args, "--gres=gpu:"+kind+strconv.Itoa(s.GPUs))
	}
	if s.MemoryGiB > 0 {
		args = append(args, "--mem="+strconv.Itoa(int(s.MemoryGiB*1024))+"M")
	}
	if _, err := engine.Run(ctx, e.script(order), "sbatch", append(args, s.Options...)...); err != nil {
		return fmt.Errorf("%w%s", err, remedy(err.Error()))
	}
	return nil
}

func (e *Engine) log(array, index string) string {
	return filepath.Join(e.options.Logs, "worker-"+array+"_"+index+".log")
}

// script is the job's script. The worker is a step of srun: only steps are told at once
// when the job is preempted. The step gets the script's environment, which sbatch left
// empty but for what the script sets.
func (e *Engine) script(order launcher.Order) string {
	return e.options.Script(order.Shape, "srun --export=ALL --kill-on-bad-exit=0",
		`"${TMPDIR:-/tmp}/tandem-$SLURM_JOB_ID"`, order.ID+`-"$SLURM_ARRAY_TASK_ID"`)
}

// List asks Slurm for all jobs of the user at once.
func (e *Engine) List(ctx context.Context) ([]launcher.Job, error) {
	said, err := engine.Run(ctx, "", "squeue", "--noheader", "--array", "--states=all", "--user="+e.user, "--format=%i|%F|%K|%j|%T|%r|%N")
	if err != nil {
		return nil, err
	}
	var jobs []launcher.Job
	for line := range strings.Lines(said) {
		job, mine := e.parse(strings.TrimSpace(line))
		if !mine {
			continue
		}
		if job.Failed() {
			array, index, _ := strings.Cut(job.ID, "_")
			engine.Explain(&job, e.log(array, index))
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// parse reads a line of squeue.
func (e *Engine) parse(line string) (job launcher.Job, mine bool) {
	part := strings.Split(line, "|")
	if len(part) != 7 {
		return job, false
	}
	name := strings.Split(part[3], ".")
	if len(name) != 3 || name[0] != e.options.Name {
		return job, false
	}
	if _, err := strconv.Atoi(part[2]); err != nil {
		return job, false // what is left of an array whose last jobs were cancelled
	}
	job = launcher.Job{ID: part[0], Launch: name[2] + "-" + part[2], Shape: name[1], Node: part[6]}
	state, reason := part[4], part[5]
	switch state {
	case "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD":
		job.State, job.Why = launcher.Pending, Waits(reason)
	case "RUNNING", "SUSPENDED", "STOPPED", "RESIZING":
		job.State = launcher.Running
	case "COMPLETING", "STAGE_OUT", "SIGNALING":
		job.State = launcher.Leaving
	default:
		job.State = launcher.Ended
		job.Cause = ends(state)
		job.Why = job.Cause.Words()
	}
	return job, true
}

// Cancel takes jobs back. Those that run get SIGTERM, and SIGKILL after KillWait.
func (e *Engine) Cancel(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := engine.Run(ctx, "", "scancel", append([]string{"--"}, ids...)...)
	return err
}
