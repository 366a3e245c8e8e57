package proc

import (
	"path/filepath"
	"strconv"
	"strings"
)

// threadUsage is what /proc tells of one thread, or of several: sums since they
// began.
type threadUsage struct {
	switches, forced float64
	// firstSeconds is the CPU time of a process's first thread, waitingSeconds
	// how long threads that could have run had no core.
	firstSeconds, waitingSeconds float64
	accountsWaiting              bool
}

func (u *threadUsage) add(other threadUsage) {
	u.switches += other.switches
	u.forced += other.forced
	u.firstSeconds += other.firstSeconds
	u.waitingSeconds += other.waitingSeconds
	u.accountsWaiting = u.accountsWaiting || other.accountsWaiting
}

// before reports whether one of the sums is smaller than the other's, so that
// the number belongs to another thread now.
func (u threadUsage) before(other threadUsage) bool {
	return u.switches < other.switches || u.waitingSeconds < other.waitingSeconds || u.firstSeconds < other.firstSeconds
}

// parseThread reads a thread's status and schedstat, which not every kernel has.
func parseThread(status, schedule string, first bool) (u threadUsage, accountsSwitches bool) {
	own, hasOwn := parseColumn(status, "voluntary_ctxt_switches")
	forced, hasForced := parseColumn(status, "nonvoluntary_ctxt_switches")
	u.switches, u.forced = own+forced, forced
	fields := strings.Fields(schedule) // nanoseconds it ran, and waited for a core, and how often
	if len(fields) != 3 {
		return u, hasOwn && hasForced
	}
	ran, err1 := strconv.ParseUint(fields[0], 10, 64)
	waited, err2 := strconv.ParseUint(fields[1], 10, 64)
	if err1 == nil && err2 == nil {
		u.waitingSeconds, u.accountsWaiting = float64(waited)/1e9, true
		if first {
			u.firstSeconds = float64(ran) / 1e9
		}
	}
	return u, hasOwn && hasForced
}

// readThreads reads the threads of a member, and what children they started.
func (t *Tree) readThreads(pid int, u *usage, threads map[int]threadUsage) (children []int) {
	for _, thread := range t.threadsOf(pid, *u) {
		folder := processFile(pid, "task/"+strconv.Itoa(thread))
		if status, err := t.host.Text(filepath.Join(folder, "status")); err == nil {
			schedule, _ := t.host.Text(filepath.Join(folder, "schedstat")) // not in every kernel
			one, accounts := parseThread(status, schedule, thread == pid)
			u.accountsContextChanges = u.accountsContextChanges || accounts
			if kilobytes, has := parseColumn(status, "RssFile"); has {
				u.residentFileBytes, u.accountsFiles = 1024*kilobytes, true // the same in all threads
			}
			threads[thread] = one
		}
		if t.cgroup != "" {
			continue // the group knows them
		}
		text, _ := t.host.Text(filepath.Join(folder, "children")) // not in every kernel
		for field := range strings.FieldsSeq(text) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// Threads are those of a process by their numbers; none when it has ended.
func Threads(pid int) []int { return NewHost("").numbered(processFile(pid, "task")) }
