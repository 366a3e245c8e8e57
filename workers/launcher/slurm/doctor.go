package slurm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Finding is one thing that was looked at before workers are started.
type Finding struct {
	Name string `json:"name"`
	Good bool   `json:"good"`
	Says string `json:"says"`
}

// Doctor looks at the cluster. It changes nothing.
func (e *Engine) Doctor(ctx context.Context) []Finding {
	said, err := run(ctx, "", "scontrol", "show", "config")
	if err != nil {
		return []Finding{{"controller", false, err.Error()}}
	}
	config := map[string]string{}
	for line := range strings.Lines(said) {
		if key, value, is := strings.Cut(line, "="); is {
			config[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	found := []Finding{
		{"version", true, "Slurm " + config["SLURM_VERSION"]},
		{"arrays", true, "up to " + config["MaxArraySize"] + " jobs"},
		{"time to stop", true, "a job that is cancelled is killed after " + config["KillWait"] + " (KillWait): let --drain be shorter"},
	}
	partitions, err := run(ctx, "", "scontrol", "show", "partition", "--oneliner")
	if err != nil {
		return append(found, Finding{"partitions", false, err.Error()})
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
		found = append(found, Finding{"partition " + values["PartitionName"], values["State"] == "UP", says})
	}
	return found
}

// CheckTokenFile refuses a token that others of the machine could read.
func CheckTokenFile(path string) error {
	for _, one := range []string{path, filepath.Dir(path)} {
		info, err := os.Stat(one)
		if err != nil {
			return err
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			return fmt.Errorf("%s may be entered or read by others (mode %04o): chmod go= %s", one, mode, one)
		}
	}
	return nil
}
