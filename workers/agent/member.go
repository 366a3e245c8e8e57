package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// members are the processes of the command that run now: those of its control
// group, else those of its process group, their children, and whatever carries
// the run's mark. None once it has ended.
func (p *process) members(mark string) []int {
	p.mutex.Lock()
	reaped := p.reaped
	p.mutex.Unlock()
	switch {
	case reaped:
		return nil
	case p.caged:
		return groupProcesses(p.cage.directory)
	}
	found := map[int]bool{p.pid: true}
	for _, pid := range marked(mark) {
		found[pid] = true
	}
	all := relatives()
	for grown := true; grown; {
		grown = false
		for pid, one := range all {
			if !found[pid] && (one.group == p.pid || found[one.parent]) {
				found[pid], grown = true, true
			}
		}
	}
	var list []int
	for pid := range found {
		list = append(list, pid)
	}
	return list
}

// groupProcesses are the processes of a control group and of those inside of it.
func groupProcesses(folder string) []int {
	var list []int
	content, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
	if err != nil {
		return nil // it has just been removed
	}
	for field := range strings.FieldsSeq(string(content)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			list = append(list, pid)
		}
	}
	inside, err := os.ReadDir(folder)
	if err != nil {
		return list
	}
	for _, one := range inside {
		if one.IsDir() {
			list = append(list, groupProcesses(filepath.Join(folder, one.Name()))...)
		}
	}
	return list
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
