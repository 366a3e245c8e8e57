package leave

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ReasonFile names the variable with the path of a file that says why the worker is
// ended; whoever ends it writes it first.
const ReasonFile = "TANDEM_LEAVE_REASON"

// Node names the variable with the machine's name for engines that have no other, such
// as Kubernetes' spec.nodeName by the downward API.
const Node = "TANDEM_NODE"

// mostReason bounds what is read of a reason, in bytes.
const mostReason = 500

// FromEngine completes the rules by what the engine's environment says. Names and
// variables are those of Slurm's sbatch(1) and srun(1).
func FromEngine(rules Rules, variable func(string) string) Rules {
	rules.Host = cmp.Or(rules.Host, variable(Node), variable("SLURMD_NODENAME"))
	job := variable("SLURM_JOB_ID")
	if job != "" {
		list := ""
		if variable("CUDA_VISIBLE_DEVICES") != "" { // a job that has a node to itself has its GPUs without asking
			list = variable("SLURM_JOB_GPUS")
		}
		rules.GPUs = promised(variable("SLURM_GPUS_ON_NODE"), list)
		rules.Name = cmp.Or(variable("SLURMD_NODENAME"), "slurm") + "-" + job
		if again := variable("SLURM_RESTART_COUNT"); again != "" && again != "0" {
			rules.Name += "-" + again
		}
	}
	rules.Reason = func() string {
		said := readReason(variable(ReasonFile))
		switch {
		case said != "":
		case job != "":
			return slurmReason(job, variable("SLURM_JOB_PARTITION"))
		case variable(Node) != "" && variable("KUBERNETES_SERVICE_HOST") != "":
			return "stopped by Kubernetes (pod " + variable("HOSTNAME") + ")"
		}
		return said
	}
	return rules
}

// promised is how many GPUs Slurm gave: a number, or a list such as 0,2-3 or gpu:2.
func promised(count, list string) int {
	if n, err := strconv.Atoi(count[strings.LastIndex(count, ":")+1:]); err == nil {
		return n
	}
	all := 0
	for part := range strings.SplitSeq(list, ",") {
		from, to, is := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		switch {
		case is && err == nil && err2 == nil && last >= first:
			all += last - first + 1
		case part != "":
			all++
		}
	}
	return all
}

func readReason(path string) string {
	if path == "" {
		return ""
	}
	file, err := os.Open(path) //nolint:gosec // the operator names it
	if err != nil {
		return ""
	}
	defer file.Close()
	said, err := io.ReadAll(io.LimitReader(file, mostReason))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(strings.Join(strings.Fields(string(said)), " "), "")
}

// patience is how long Slurm may take to say what it does.
const patience = 3 * time.Second

var field = regexp.MustCompile(`(\w+)=(\S*)`)

// slurmReason asks Slurm why it ends the job.
func slurmReason(job, partition string) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, "scontrol", "show", "job", "-o", job)
	command.WaitDelay = time.Second
	said, err := command.Output()
	if err != nil {
		return fmt.Sprintf("stopped by Slurm (job %s)", job)
	}
	return explain(string(said), job, partition, time.Now())
}

// explain says what "scontrol show job -o" means for people. Slurm prints a line for each
// task of an array if the job has the array's id, as one of them does.
func explain(said, job, partition string, now time.Time) string {
	line, seen := said, map[string]string{}
	for one := range strings.Lines(said) {
		if strings.HasPrefix(one, "JobId="+job+" ") {
			line = one
		}
	}
	for _, one := range field.FindAllStringSubmatch(line, -1) {
		if _, twice := seen[one[1]]; !twice {
			seen[one[1]] = one[2]
		}
	}
	partition = cmp.Or(seen["Partition"], partition)
	where := fmt.Sprintf("(job %s, partition %s)", job, partition)
	preempted, err := time.ParseInLocation("2006-01-02T15:04:05", seen["PreemptTime"], time.Local)
	switch ends, err2 := time.ParseInLocation("2006-01-02T15:04:05", seen["EndTime"], time.Local); {
	case err == nil && !preempted.IsZero(), seen["JobState"] == "PREEMPTED":
		return "preempted by Slurm for a job that goes first " + where
	case seen["JobState"] == "CANCELLED":
		return "cancelled in Slurm " + where
	case seen["JobState"] == "TIMEOUT", err2 == nil && ends.Sub(now) < 2*time.Minute:
		return "ended by Slurm at the job's time limit " + where
	case seen["JobState"] == "NODE_FAIL":
		return "ended by Slurm as its node failed " + where
	}
	return "stopped by Slurm " + where
}
