package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/profiler"
)

// cage is a control group (v2). What a command starts stays in it, whatever it
// does to its process group and its environment, and the kernel ends all of it
// at once. Where this user may not make control groups there is none: a nil
// cage does nothing, and the process group and the environment's mark have to do.
type cage struct{ directory string }

const (
	cagePrefix = "tandem-"
	// cagePatience is how long killed processes may take to be gone; one that
	// hangs inside the kernel can take forever.
	cagePatience = 2 * time.Second
)

// newCage makes a group below the one this process is in; nil where it cannot.
func newCage(name string) *cage {
	own := profiler.ControlGroup()
	if own == "" {
		return nil
	}
	sweep(own)
	return makeCage(filepath.Join(own, fmt.Sprintf("%s%d-%s", cagePrefix, os.Getpid(), name)))
}

// sweep removes the empty groups of agents that were killed. Groups in which
// something runs are left to the agent that finds the folder they belong to: a
// process number may mean another process in another container.
func sweep(own string) {
	folders, err := os.ReadDir(own)
	if err != nil {
		return
	}
	for _, folder := range folders {
		name, ours := strings.CutPrefix(folder.Name(), cagePrefix)
		number, _, named := strings.Cut(name, "-")
		pid, err := strconv.Atoi(number)
		if !ours || !named || err != nil || pid <= 0 || unix.Kill(pid, 0) != unix.ESRCH {
			continue
		}
		if c := (&cage{filepath.Join(own, folder.Name())}); c.empty() {
			c.remove()
		}
	}
}

func makeCage(directory string) *cage {
	if os.Mkdir(directory, 0o755) != nil {
		return nil
	}
	c := &cage{directory}
	if _, err := os.Stat(c.file("cgroup.kill")); err != nil { // a kernel before 5.14
		c.remove()
		return nil
	}
	return c
}

func (c *cage) file(name string) string { return filepath.Join(c.directory, name) }

// inner makes a group inside of this one.
func (c *cage) inner(name string) *cage {
	if c == nil {
		return nil
	}
	return makeCage(c.file(name))
}

// open returns a descriptor that a command can be started into, or -1.
func (c *cage) open() int {
	if c == nil {
		return -1
	}
	descriptor, err := unix.Open(c.directory, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return descriptor
}

// kill ends everything in the group and in the groups inside of it.
func (c *cage) kill() {
	if c != nil {
		_ = os.WriteFile(c.file("cgroup.kill"), []byte("1"), 0) // fails only when it is gone
	}
}

// cpuSeconds is the CPU time of everything that ran in the group, and whether
// the kernel tells it.
func (c *cage) cpuSeconds() (float64, bool) {
	content, err := os.ReadFile(c.file("cpu.stat"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(content)) {
		if used, found := strings.CutPrefix(line, "usage_usec "); found {
			microseconds, err := strconv.ParseInt(strings.TrimSpace(used), 10, 64)
			return float64(microseconds) / 1e6, err == nil
		}
	}
	return 0, false
}

// empty reports whether nothing runs in the group or in the groups inside of it.
func (c *cage) empty() bool {
	content, err := os.ReadFile(c.file("cgroup.events"))
	return err != nil || strings.Contains(string(content), "populated 0")
}

// remove removes the group and those inside of it, once what was killed in them
// is gone.
func (c *cage) remove() {
	if c == nil {
		return
	}
	pause := 200 * time.Microsecond
	for deadline := time.Now().Add(cagePatience); !c.empty() && time.Now().Before(deadline); pause = min(2*pause, 5*time.Millisecond) {
		time.Sleep(pause)
	}
	inside, err := os.ReadDir(c.directory)
	if err != nil {
		return
	}
	for _, entry := range inside {
		if entry.IsDir() {
			_ = os.Remove(c.file(entry.Name())) // what stays keeps the outer one, below
		}
	}
	_ = os.Remove(c.directory) // an empty control group costs next to nothing
}
