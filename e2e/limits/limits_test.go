package limits_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/e2e/limits"
	"github.com/tandem-tune/tandem/profiler"
)

// told, in the environment, makes the test binary say what it may use.
const told = "TANDEM_LIMITS_TOLD"

func TestMain(m *testing.M) {
	if os.Getenv(told) != "" {
		machine := profiler.ThisMachine()
		fmt.Printf("%d %g %d", machine.Cores, machine.CPUQuota, machine.MemoryLimitBytes)
		return
	}
	os.Exit(m.Run())
}

// TestAProcessSeesItsLimits asks a process in each group what it may use.
func TestAProcessSeesItsLimits(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	own := profiler.ThisMachine()
	for name, test := range map[string]struct {
		limits limits.Limits
		want   string
	}{
		"time":   {limits.Limits{Cores: 0.25}, fmt.Sprintf("1 0.25 %d", own.MemoryLimitBytes)},
		"memory": {limits.Limits{MemoryBytes: 512 << 20}, fmt.Sprintf("%d %g %d", own.Cores, own.CPUQuota, 512<<20)},
		"both":   {limits.Limits{Cores: 0.5, MemoryBytes: 256 << 20}, fmt.Sprintf("1 0.5 %d", 256<<20)},
		"none":   {limits.Limits{}, fmt.Sprintf("%d %g %d", own.Cores, own.CPUQuota, own.MemoryLimitBytes)},
	} {
		t.Run(name, func(t *testing.T) {
			group, err := limits.NewGroup(fmt.Sprintf("tandem-limits-%d-%s", os.Getpid(), name), test.limits)
			if err != nil {
				t.Skip(err)
			}
			defer group.Remove()
			line := append(group.Within(), self)
			command := exec.CommandContext(t.Context(), line[0], line[1:]...)
			command.Env = append(os.Environ(), told+"=1")
			said, err := command.CombinedOutput()
			if err != nil || strings.TrimSpace(string(said)) != test.want {
				t.Errorf("it may use %s, %v; want %s", said, err, test.want)
			}
		})
	}
}
