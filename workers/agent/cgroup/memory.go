package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/profiler/proc"
)

// aside is the name of the group into which an agent moves itself (see Enable): one that
// nobody else gives.
const aside = "tandem-worker.aside"

// Folder is where groups are made: the group this process was started in; empty
// where there is none.
func Folder() string {
	folder := proc.ControlGroup()
	if filepath.Base(folder) == aside {
		return filepath.Dir(folder)
	}
	return folder
}

// Enable has the controller in the group, if this user may. The groups above need it
// too, and the kernel allows it only in such as have no process themselves: where this
// process is the only one, as in a service of systemd, it moves into a group of its own.
func (g *Group) Enable(controller string) bool {
	if g == nil {
		return false
	}
	const limit = ".max"
	has := func() bool { return unix.Access(g.File(controller+limit), unix.W_OK) == nil }
	if has() {
		return true
	}
	outer := filepath.Dir(g.Directory)
	for _, folder := range []string{filepath.Dir(outer), outer} {
		if errors.Is(passOn(folder, controller), unix.EBUSY) && alone(folder) && stepAside(folder) == nil {
			_ = passOn(folder, controller) // seen below
		}
	}
	return has()
}

func passOn(folder, controller string) error {
	return os.WriteFile(filepath.Join(folder, "cgroup.subtree_control"), []byte("+"+controller), 0)
}

// alone reports whether no other process is in the group itself.
func alone(folder string) bool {
	return slices.Equal(own(folder), []int{os.Getpid()})
}

func stepAside(folder string) error {
	group := filepath.Join(folder, aside)
	if err := os.Mkdir(group, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
}

// CanEnable reports whether groups below the folder would have the controller,
// as far as that can be told without making some.
func CanEnable(folder, controller string) bool {
	if folder == "" || unix.Access(folder, unix.W_OK) != nil {
		return false
	}
	if content, err := os.ReadFile(filepath.Join(folder, "cgroup.subtree_control")); err == nil && slices.Contains(strings.Fields(string(content)), controller) {
		return true
	}
	content, err := os.ReadFile(filepath.Join(folder, "cgroup.controllers"))
	if err != nil || !slices.Contains(strings.Fields(string(content)), controller) {
		return false
	}
	// Of the groups with processes in them only the tree's root may pass it on.
	_, err = os.Stat(filepath.Join(folder, "cgroup.type"))
	return os.IsNotExist(err) || len(own(folder)) == 0 || alone(folder)
}

// SweepVersion1 removes the groups (v1) of agents that were killed, as far as nothing
// runs in them.
func SweepVersion1(folder string) {
	for path := range abandoned(folder) {
		_ = os.Remove(path) // fails where something runs
	}
}
