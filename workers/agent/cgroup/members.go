package cgroup

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Members are the processes of a command in no control group: those of its
// leader's process group, their children, and those whose environment has the mark.
func Members(leader int, mark string) []int {
	found := map[int]bool{leader: true}
	for _, pid := range marked(mark) {
		found[pid] = true
	}
	all := relatives()
	for grown := true; grown; {
		grown = false
		for pid, one := range all {
			if !found[pid] && (one.group == leader || found[one.parent]) {
				found[pid], grown = true, true
			}
		}
	}
	return slices.Collect(maps.Keys(found))
}

// Processes are the processes of a control group and of those inside of it.
func Processes(folder string) []int {
	list := own(folder)
	inside, err := os.ReadDir(folder)
	if err != nil {
		return list
	}
	for _, one := range inside {
		if one.IsDir() {
			list = append(list, Processes(filepath.Join(folder, one.Name()))...)
		}
	}
	return list
}

// own are the processes of a control group without those of groups inside of it.
func own(folder string) []int {
	var list []int
	content, _ := os.ReadFile(filepath.Join(folder, "cgroup.procs")) // it may have just been removed
	for field := range strings.FieldsSeq(string(content)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			list = append(list, pid)
		}
	}
	return list
}

// Descends reports whether the process is in the leader's session or below it in
// the tree of processes: it cannot choose either.
func Descends(pid, leader int) bool {
	if session, err := unix.Getsid(pid); err == nil && session == leader {
		return true
	}
	all := relatives()
	for at, steps := pid, 0; at > 1 && steps < 1000; at, steps = all[at].parent, steps+1 {
		if at == leader {
			return true
		}
	}
	return false
}

type relative struct{ parent, group int }

// relatives are all processes of this machine by their numbers.
func relatives() map[int]relative {
	all := map[int]relative{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return all
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil {
			continue // it has ended
		}
		// The name in brackets may hold anything, so what follows its end counts.
		fields := strings.Fields(string(line[strings.LastIndexByte(string(line), ')')+1:]))
		if len(fields) < 3 || fields[0] == "Z" {
			continue // it has ended, as its parent does not know yet
		}
		parent, parentErr := strconv.Atoi(fields[1])
		group, groupErr := strconv.Atoi(fields[2])
		if parentErr == nil && groupErr == nil {
			all[pid] = relative{parent, group}
		}
	}
	return all
}
