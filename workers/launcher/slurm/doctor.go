package slurm

import (
	"context"
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
)

// Doctor looks at the cluster. It changes nothing.
func (e *Engine) Doctor(ctx context.Context) []launcher.Finding {
	said, err := engine.Run(ctx, "", "scontrol", "show", "config")
	if err != nil {
		return []launcher.Finding{{Name: "controller", Good: false, Says: err.Error()}}
	}
	config := map[string]string{}
	for line := range strings.Lines(said) {
		if key, value, is := strings.Cut(line, "="); is {
			config[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	found := []launcher.Finding{
		{Name: "version", Good: true, Says: "Slurm " + config["SLURM_VERSION"]},
		{Name: "arrays", Good: true, Says: "up to " + config["MaxArraySize"] + " jobs"},
		{Name: "time to stop", Good: true, Says: "a job that is cancelled is killed after " + config["KillWait"] + " (KillWait): let --drain be shorter"},
	}
	partitions, err := engine.Run(ctx, "", "scontrol", "show", "partition", "--oneliner")
	if err != nil {
		return append(found, launcher.Finding{Name: "partitions", Good: false, Says: err.Error()})
	}
	for line := range strings.Lines(partitions) {
		values := map[string]string{}
		for _, word := range strings.Fields(line) {
			key, value, _ := strings.Cut(word, "=")
			values[key] = value
		}
		says := fmt.Sprintf("time limit %s, preemption %s, grace %s s", values["MaxTime"], strings.ToLower(values["PreemptMode"]), values["GraceTime"])
		preempted := values["PreemptMode"] != "" && values["PreemptMode"] != "OFF"
		if preempted && values["GraceTime"] == "0" {
			says += ": trials that are preempted go on from the last checkpoint, as there is no time for another"
		}
		found = append(found, launcher.Finding{Name: "partition " + values["PartitionName"], Good: values["State"] == "UP", Says: says})
	}
	return found
}
