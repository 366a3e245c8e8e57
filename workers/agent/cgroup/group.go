// Package cgroup finds and ends the processes of a command: those of its control
// group, those of its process group, and orphans that its environment marks.
package cgroup

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Group is a control group (v2). What a command starts stays in it, whatever it
// does to its process group and its environment, and the kernel ends all of it
// at once. Where this user may not make control groups there is none: a nil
// group does nothing, and the process group and the environment's mark have to do.
type Group struct{ Directory string }

const (
	// Prefix begins the names of the groups that agents make.
	Prefix = "tandem-"
	// Patience is how long killed processes may take to be gone; one that
	// hangs inside the kernel can take forever.
	Patience = 2 * time.Second
)

// New makes a group in Folder; nil where it cannot.
func New(name string) *Group {
	folder := Folder()
	if folder == "" {
		return nil
	}
	sweep(folder)
	return makeGroup(filepath.Join(folder, fmt.Sprintf("%s%d-%s", Prefix, os.Getpid(), name)))
}

// sweep removes the empty groups of agents that were killed. Groups in which
// something runs are left to the agent that finds the folder they belong to: a
// process number may mean another process in another container.
func sweep(folder string) {
	for path := range abandoned(folder) {
		if g := (&Group{path}); g.empty() {
			g.Remove()
		}
	}
}

// abandoned are the paths of the groups that agents made which do not run any more.
func abandoned(folder string) iter.Seq[string] {
	entries, _ := os.ReadDir(folder)
	return func(yield func(string) bool) {
		for _, one := range entries {
			name, ours := strings.CutPrefix(one.Name(), Prefix)
			number, _, named := strings.Cut(name, "-")
			pid, err := strconv.Atoi(number)
			if ours && named && err == nil && pid > 0 && unix.Kill(pid, 0) == unix.ESRCH && !yield(filepath.Join(folder, one.Name())) {
				return
			}
		}
	}
}

func makeGroup(directory string) *Group {
	if os.Mkdir(directory, 0o755) != nil {
		return nil
	}
	g := &Group{directory}
	if _, err := os.Stat(g.File("cgroup.kill")); err != nil { // a kernel before 5.14
		g.Remove()
		return nil
	}
	return g
}

// File is the path of one of the files by which the kernel controls the group.
func (g *Group) File(name string) string { return filepath.Join(g.Directory, name) }

// Inner makes a group inside of this one.
func (g *Group) Inner(name string) *Group {
	if g == nil {
		return nil
	}
	return makeGroup(g.File(name))
}

// Open returns a descriptor that a command can be started into, or -1.
func (g *Group) Open() int {
	if g == nil {
		return -1
	}
	descriptor, err := unix.Open(g.Directory, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return descriptor
}

// Kill ends everything in the group and in the groups inside of it.
func (g *Group) Kill() {
	if g != nil {
		_ = os.WriteFile(g.File("cgroup.kill"), []byte("1"), 0) // fails only when it is gone
	}
}

// CPUSeconds is the CPU time of everything that ran in the group, and whether
// the kernel tells it.
func (g *Group) CPUSeconds() (float64, bool) {
	content, err := os.ReadFile(g.File("cpu.stat"))
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
func (g *Group) empty() bool {
	content, err := os.ReadFile(g.File("cgroup.events"))
	return err != nil || strings.Contains(string(content), "populated 0")
}

// Remove removes the group and those inside of it, once what was killed in them
// is gone.
func (g *Group) Remove() {
	if g == nil {
		return
	}
	pause := 200 * time.Microsecond
	for deadline := time.Now().Add(Patience); !g.empty() && time.Now().Before(deadline); pause = min(2*pause, 5*time.Millisecond) {
		time.Sleep(pause)
	}
	inside, err := os.ReadDir(g.Directory)
	if err != nil {
		return
	}
	for _, entry := range inside {
		if entry.IsDir() {
			_ = os.Remove(g.File(entry.Name())) // what stays keeps the outer one, below
		}
	}
	_ = os.Remove(g.Directory) // an empty control group costs next to nothing
}
