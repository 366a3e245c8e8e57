// Package agenttest pretends to be parts of a machine for the tests of the worker.
package agenttest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/workers/agent/cgroup"
)

// FrequencyTree makes the kernel's files for the frequency of this process's
// cores below a folder, two cores to a policy, and returns it with the policies.
func FrequencyTree(t *testing.T) (root string, policies []string) {
	t.Helper()
	root = t.TempDir()
	for i, core := range AllowedCores(t) {
		policy := filepath.Join(root, fmt.Sprintf("sys/devices/system/cpu/cpufreq/policy%d", i/2))
		if i%2 == 0 {
			policies = append(policies, policy)
			if err := os.MkdirAll(policy, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, content := range map[string]string{
				"scaling_max_freq": "3000000", "cpuinfo_min_freq": "800000", "cpuinfo_max_freq": "3600000",
				"scaling_governor": "schedutil", "scaling_available_governors": "performance powersave schedutil",
			} {
				if err := os.WriteFile(filepath.Join(policy, name), []byte(content+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		folder := filepath.Join(root, fmt.Sprintf("sys/devices/system/cpu/cpu%d", core))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(policy, filepath.Join(folder, "cpufreq")); err != nil {
			t.Fatal(err)
		}
	}
	return root, policies
}

// AllowedCores are the cores that this process may run on.
func AllowedCores(t *testing.T) []int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	var cores []int
	for core := range 1024 {
		if set.IsSet(core) {
			cores = append(cores, core)
		}
	}
	return cores
}

// Content is what is in the file, without the space around it.
func Content(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// ChildRuns reports whether the process runs; it is a child of this one.
func ChildRuns(pid int) bool {
	var status syscall.WaitStatus
	ended, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
	return err == nil && ended == 0
}

// CanGroup reports whether this user may make control groups here.
func CanGroup() bool {
	c := cgroup.New("probe")
	c.Kill()
	c.Remove()
	return c != nil
}
