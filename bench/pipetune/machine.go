package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// machine is where a run was measured.
type machine struct {
	Cores int    `json:"cores"`
	Model string `json:"model"`
	// Threads is how many PyTorch takes when nobody says anything.
	Threads int `json:"default_threads"`
}

// thisMachine asks the kernel and PyTorch.
func thisMachine(ctx context.Context, o options) machine {
	m := machine{Cores: runtime.NumCPU(), Model: "unknown"}
	info, _ := os.ReadFile("/proc/cpuinfo") // absent: the model stays unknown
	for line := range strings.Lines(string(info)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			m.Model = strings.TrimSpace(value)
			break
		}
	}
	command := exec.CommandContext(ctx, o.python, "-c", "import torch; print(torch.get_num_threads())")
	command.Env = o.environment("")
	if output, err := command.Output(); err == nil {
		m.Threads, _ = strconv.Atoi(strings.TrimSpace(string(output)))
	}
	return m
}

// loadAverage is the last minute's, as the kernel counts it; 0 where it does not.
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}

// commit is the version of the source, with a + if it was changed since.
func commit(ctx context.Context) string {
	output, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty=+", "--exclude", "*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(output))
}

// environment is what training processes outside of Tandem get: this process's
// variables, without the thread settings that it may have, and with ours.
func (o options) environment(threads string) []string {
	var kept []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasSuffix(name, "_NUM_THREADS") {
			kept = append(kept, variable)
		}
	}
	kept = append(kept, "PIPETUNE_DATA="+o.data, fmt.Sprintf("PIPETUNE_SCALE=%g", o.scale), "PYTHONUNBUFFERED=1")
	if threads != "" {
		kept = append(kept, "OMP_NUM_THREADS="+threads)
	}
	return kept
}
