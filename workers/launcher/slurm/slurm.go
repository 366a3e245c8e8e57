// Package slurm starts workers as jobs of a Slurm cluster, by its own commands: sbatch,
// squeue, scontrol and scancel of version 20.02 or newer.
package slurm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/workers/launcher"
)

// Options make an [Engine].
type Options struct {
	// Name tells the jobs of this launcher from those of others of the same user.
	Name string
	// Logs is the folder of the jobs' output, on a disk that all nodes have.
	Logs string
	// Worker is the command line of a worker: the program, "worker" and its flags,
	// without a token's text.
	Worker []string
	// Home and Path are those that workers start with.
	Home, Path string
}

// Engine starts workers as jobs.
type Engine struct {
	options Options
	user    string
}

var _ launcher.Engine = (*Engine)(nil)

// New returns an engine of the user that this process runs as.
func New(options Options) (*Engine, error) {
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

// mostOfOrder is how many jobs one array has at most; sites allow 1001 as a rule
// (MaxArraySize).
const mostOfOrder = 1000

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
		"--array=0-" + strconv.Itoa(min(order.Count, mostOfOrder)-1),
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
	_, err := run(ctx, e.Script(order), "sbatch", append(args, s.Options...)...)
	return err
}

func (e *Engine) log(array, index string) string {
	return filepath.Join(e.options.Logs, "worker-"+array+"_"+index+".log")
}

// margin is how long before the time limit a worker counts itself as ended.
const margin = time.Minute

// Script is the job's script. The worker is a step of srun: only steps are told at once
// when the job is preempted. The step gets the script's environment, which sbatch left
// empty but for what the script sets.
func (e *Engine) Script(order launcher.Order) string {
	s := order.Shape
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\n# A worker that tandem launch slurm ordered.\nexport HOME=%s PATH=%s\n", quote(e.options.Home), quote(e.options.Path))
	for _, line := range s.Setup {
		b.WriteString(line + "\n")
	}
	worker := append(append([]string{}, e.options.Worker...),
		"--slots", strconv.Itoa(s.Trials), "--end-at", (s.TimeLimit - margin).String())
	b.WriteString("exec srun --export=ALL --kill-on-bad-exit=0")
	for i, word := range worker {
		b.WriteString(" " + quote(word))
		if i == 1 { // before the user's flags, which may say otherwise
			b.WriteString(" --scratch \"${TMPDIR:-/tmp}/tandem-$SLURM_JOB_ID\"")
		}
	}
	b.WriteString(" --launch " + order.ID + "-\"$SLURM_ARRAY_TASK_ID\"\n")
	return b.String()
}

// quote makes one word of the shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// List asks Slurm for all jobs of the user at once.
func (e *Engine) List(ctx context.Context) ([]launcher.Job, error) {
	said, err := run(ctx, "", "squeue", "--noheader", "--array", "--states=all", "--user="+e.user, "--format=%i|%F|%K|%j|%T|%r|%N")
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
			e.explain(ctx, &job)
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
		job.Why, job.Cause = ends(state)
	}
	return job, true
}

// explain adds to a job that failed what its worker said last. A job whose output is
// gone keeps Slurm's word.
func (e *Engine) explain(_ context.Context, job *launcher.Job) {
	array, index, _ := strings.Cut(job.ID, "_")
	if said := lastLine(e.log(array, index)); said != "" {
		job.Why += ": " + said
	}
	if job.Node != "" {
		job.Why += " (on " + job.Node + ")"
	}
}

const mostOfLine = 400

// lastLine is the last line of a file that the worker, or what it started, wrote.
func lastLine(path string) string {
	content, err := os.ReadFile(path) //nolint:gosec // a log in our own folder
	if err != nil {
		return ""
	}
	content = bytes.TrimSpace(content)
	last := content[bytes.LastIndexByte(content, '\n')+1:]
	for line := range bytes.Lines(content) { // srun's own words come last and say less
		if bytes.HasPrefix(line, []byte("tandem: ")) {
			last = bytes.TrimSpace(line[len("tandem: "):])
		}
	}
	return strings.ToValidUTF8(string(last[:min(len(last), mostOfLine)]), "")
}

// Cancel takes jobs back. Those that run get SIGTERM, and SIGKILL after KillWait.
func (e *Engine) Cancel(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := run(ctx, "", "scancel", append([]string{"--"}, ids...)...)
	return err
}

// patience is how long a command of Slurm may take: a busy controller takes seconds.
const patience = time.Minute

// run runs a command of Slurm and returns what it printed.
func run(ctx context.Context, input, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...) //nolint:gosec // a fixed command of Slurm
	command.WaitDelay = time.Second
	command.Env = environment()
	command.Stdin = strings.NewReader(input)
	var out, errors bytes.Buffer
	command.Stdout, command.Stderr = &out, &errors
	if err := command.Run(); err != nil {
		said := strings.TrimSpace(errors.String())
		return "", fmt.Errorf("%s: %w: %s", name, err, said[:min(len(said), 1000)])
	}
	return out.String(), nil
}

// environment is this process's without Tandem's variables: one may be a token.
func environment() (list []string) {
	for _, one := range os.Environ() {
		if !strings.HasPrefix(one, "TANDEM_") {
			list = append(list, one)
		}
	}
	return list
}
