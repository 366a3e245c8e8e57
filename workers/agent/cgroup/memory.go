package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Enable has the controller in the group, if this user may. It needs it in the
// groups above; the kernel allows it only in such as have no process themselves.
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
		_ = os.WriteFile(filepath.Join(folder, "cgroup.subtree_control"), []byte("+"+controller), 0) // seen below
	}
	return has()
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
	return os.IsNotExist(err) || len(Processes(folder)) == 0
}

// SweepVersion1 removes the groups (v1) of agents that were killed, as far as nothing
// runs in them.
func SweepVersion1(folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, one := range entries {
		name, ours := strings.CutPrefix(one.Name(), Prefix)
		number, _, named := strings.Cut(name, "-")
		pid, err := strconv.Atoi(number)
		if ours && named && err == nil && pid > 0 && unix.Kill(pid, 0) == unix.ESRCH {
			_ = os.Remove(filepath.Join(folder, one.Name())) // fails where something runs
		}
	}
}
