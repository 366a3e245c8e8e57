package slurm

import (
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// Waits says in a sentence why Slurm does not start a job, by the code that squeue
// prints as its reason (squeue(1), "JOB REASON CODES").
func Waits(code string) string {
	said := "Slurm gives no reason yet"
	for _, one := range []struct{ prefix, says string }{
		{"Resources", "waits until enough nodes are free"},
		{"Priority", "waits behind jobs that go first"},
		{"QOS", "waits as a limit of your quality of service (QOS) is reached"},
		{"Assoc", "waits as a limit of your account is reached"},
		{"MaxGRESPerAccount", "waits as your account has as many GPUs as it may"},
		{"PartitionTimeLimit", "cannot start: the partition does not allow so long a job; lower time_limit"},
		{"PartitionNodeLimit", "cannot start: the partition has no such nodes; choose another --partition"},
		{"PartitionDown", "waits as its partition takes no jobs now"},
		{"PartitionInactive", "waits as its partition takes no jobs now"},
		{"BadConstraints", "cannot start: no node has what the shape asks for"},
		{"ReqNodeNotAvail", "waits as the nodes it needs are down or reserved"},
		{"NodeDown", "waits as the nodes it needs are down"},
		{"JobHeldUser", "is held: 'scontrol release' lets it go on"},
		{"JobHeldAdmin", "is held by who runs the cluster: ask there"},
		{"BeginTime", "waits until the time from which it may start"},
		{"Dependency", "waits for other jobs to end"},
		{"Licenses", "waits for a licence"},
		{"Reservation", "waits for its reservation"},
		{"InvalidAccount", "cannot start: the account is not valid; set --account"},
		{"InvalidQOS", "cannot start: the quality of service (QOS) is not valid; set --qos"},
		{"JobArrayTaskLimit", "waits as as many of its array run as may"},
	} {
		if strings.HasPrefix(code, one.prefix) {
			said = one.says
			break
		}
	}
	if code == "" || code == "None" {
		return said
	}
	return said + " (Slurm: " + code + ")"
}

// remedy says what helps against what sbatch says when it refuses an array that is larger
// than the site or the account takes; "" of all else.
func remedy(said string) string {
	switch {
	case strings.Contains(said, "Invalid job array specification"):
		return "; the site takes smaller arrays (MaxArraySize): lower most_pending of the shape"
	case strings.Contains(said, "job submit limit"):
		return "; the account may have fewer jobs queued, or smaller ones: lower most_pending, or what the shape asks for"
	}
	return ""
}

// ends says how a job ended, by the state that squeue prints (squeue(1), "JOB STATE
// CODES").
func ends(state string) protocol.Cause {
	switch {
	case state == "COMPLETED":
		return protocol.Finished
	case state == "PREEMPTED":
		return protocol.Preempted
	case strings.HasPrefix(state, "CANCELLED"):
		return protocol.Cancelled
	case state == "NODE_FAIL", state == "BOOT_FAIL":
		return protocol.NodeFailed
	case state == "TIMEOUT", state == "DEADLINE":
		return protocol.TimeLimit
	case state == "OUT_OF_MEMORY":
		return protocol.OutOfMemory
	}
	return protocol.Crashed
}
