package cgroup

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// MarkVariable starts the variable that marks every process of a run: its
// checkpoint folder lies in the run's own folder, and children inherit it even
// when they leave the process group.
const MarkVariable = "TANDEM_CHECKPOINT_DIR="

// KillMarked kills this user's processes whose environment, as they were
// started with it, has a variable that begins with the mark. It looks again
// until none is left, since a process may start another meanwhile.
func KillMarked(mark string) int {
	killed := map[int]bool{}
	for range 5 {
		found := marked(mark)
		if len(found) == 0 {
			break
		}
		for _, pid := range found {
			killed[pid] = true
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended by itself
		}
	}
	return len(killed)
}

func marked(mark string) []int {
	if mark == "" {
		return nil // it would be on every process of this machine
	}
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	var found []int
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil {
			continue // it ended, or belongs to somebody else
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && pid != os.Getpid() && hasVariable(environment, mark) {
			found = append(found, pid)
		}
	}
	return found
}

func hasVariable(environment []byte, mark string) bool {
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		if bytes.HasPrefix(variable, []byte(mark)) {
			return true
		}
	}
	return false
}
