// Package limits answers: how does one machine play several unlike ones?
//
// A [Group] is a control group, of either version, with a quota of CPU time and
// a limit of memory; a [Network] is a network namespace that reaches this
// machine. A process that is started by the command lines of both has no more
// than they leave. It needs root; what this machine can't do is an error that
// says why, for a test to be skipped with.
package limits

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tandem-tune/tandem/profiler/proc"
)

// Limits are what a group leaves; 0: all there is.
type Limits struct {
	// Cores is time, in cores: 0.4 is two fifths of one.
	Cores       float64
	MemoryBytes int64
}

// Group is a control group, or one for each controller where they are of version 1.
type Group struct{ folders []string }

// period is the span of the kernel in which a quota is dealt out.
const period = 100_000 // microseconds

// NewGroup makes a group below the one this process is in. Remove it when all
// that ran in it has ended.
func NewGroup(name string, wanted Limits) (*Group, error) {
	g := &Group{}
	modern := g.makeModern(name, wanted)
	if modern == nil {
		return g, nil
	}
	g.Remove()
	old := g.makeOld(name, wanted)
	if old == nil {
		return g, nil
	}
	g.Remove()
	return nil, fmt.Errorf("this process may not limit others by control groups: version 2: %w; version 1: %w", modern, old)
}

// makeModern makes one group of version 2.
func (g *Group) makeModern(name string, wanted Limits) error {
	own := proc.ControlGroup()
	if own == "" {
		return errors.New("it is not mounted")
	}
	folder := filepath.Join(own, name)
	settings := map[string]string{}
	for controller, setting := range map[string]string{"cpu": wanted.quota(" " + strconv.Itoa(period)), "memory": wanted.memory()} {
		if setting == "" {
			continue
		}
		if err := write(filepath.Join(own, "cgroup.subtree_control"), "+"+controller); err != nil {
			return fmt.Errorf("no controller %s for groups below %s: %w", controller, own, err)
		}
		settings[controller+".max"] = setting
	}
	return g.add(folder, settings)
}

// makeOld makes a group of version 1 for each controller.
func (g *Group) makeOld(name string, wanted Limits) error {
	for controller, settings := range map[string]map[string]string{
		"cpu":    {"cpu.cfs_quota_us": wanted.quota("")},
		"memory": {"memory.limit_in_bytes": wanted.memory()},
	} {
		for _, setting := range settings {
			if setting == "" {
				settings = nil
			}
		}
		if settings == nil {
			continue
		}
		own := proc.OldControlGroup(controller)
		if own == "" {
			return fmt.Errorf("the controller %s is not mounted", controller)
		}
		if err := g.add(filepath.Join(own, name), settings); err != nil {
			return err
		}
	}
	return nil
}

func (l Limits) quota(behind string) string {
	if l.Cores <= 0 {
		return ""
	}
	return strconv.Itoa(int(l.Cores*period)) + behind
}

func (l Limits) memory() string {
	if l.MemoryBytes <= 0 {
		return ""
	}
	return strconv.FormatInt(l.MemoryBytes, 10)
}

// add makes a folder with the settings in its files.
func (g *Group) add(folder string, settings map[string]string) error {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	g.folders = append(g.folders, folder)
	for file, setting := range settings {
		if err := write(filepath.Join(folder, file), setting); err != nil {
			return err
		}
	}
	return nil
}

func write(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0) // never a file that is not there
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// Within is the command line that runs in the group what follows.
func (g *Group) Within() []string {
	if len(g.folders) == 0 {
		return nil
	}
	line := []string{"sh", "-c", `for group in "$@"; do
  shift
  [ "$group" = -- ] && exec "$@"
  echo $$ > "$group/cgroup.procs" || exit 1
done`, "sh"}
	return append(append(line, g.folders...), "--")
}

// emptied is how long the kernel may take to let go of what has ended.
const emptied = 10 * time.Second

// Remove removes the group, once what ran in it has ended. What does not end
// keeps it.
func (g *Group) Remove() {
	for _, folder := range g.folders {
		for deadline := time.Now().Add(emptied); os.Remove(folder) != nil && time.Now().Before(deadline); {
			time.Sleep(20 * time.Millisecond)
		}
	}
	g.folders = nil
}
