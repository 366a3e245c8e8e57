package proc

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// usage is what /proc tells of one process: what it and the children it waited
// for have used, and what it has now.
type usage struct {
	parent                             int
	group                              int
	started                            uint64 // ticks after the machine's start: with the number, the process's identity
	userSeconds, systemSeconds         float64
	minorFaults, majorFaults           float64
	threads, residentBytes             float64
	readBytes, writeBytes              float64
	residentFileBytes                  float64
	accountsIO, accountsContextChanges bool
	accountsFiles                      bool
}

// parseUsage reads a line of /proc/PID/stat; see proc(5).
func parseUsage(line string) (usage, error) {
	end := strings.LastIndexByte(line, ')')
	if end < 0 {
		return usage{}, errors.New("no name in /proc/PID/stat")
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) < 22 {
		return usage{}, errors.New("too few fields in /proc/PID/stat")
	}
	numbers := make([]int64, 22)
	for i := range numbers {
		if i == 0 {
			continue // the state, a letter
		}
		value, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			signed, err := strconv.ParseInt(fields[i], 10, 64)
			if err != nil {
				return usage{}, fmt.Errorf("/proc/PID/stat: %w", err)
			}
			numbers[i] = signed
			continue
		}
		numbers[i] = int64(min(value, 1<<63-1))
	}
	ticks := func(fields ...int) float64 {
		sum := 0.0
		for _, field := range fields {
			sum += float64(numbers[field]) / ticksPerSecond
		}
		return sum
	}
	return usage{
		parent: int(numbers[1]), group: int(numbers[2]), started: uint64(numbers[19]),
		minorFaults: float64(numbers[7]) + float64(numbers[8]), majorFaults: float64(numbers[9]) + float64(numbers[10]),
		userSeconds: ticks(11, 13), systemSeconds: ticks(12, 14),
		threads: float64(numbers[17]), residentBytes: float64(numbers[21]) * float64(os.Getpagesize()),
	}, nil
}

// parseColumn finds a number in files of lines such as "name: 123", or "name:  123 kB".
func parseColumn(text, name string) (float64, bool) {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, name+":"); found {
			value, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return float64(value), err == nil
		}
	}
	return 0, false
}

// Tree follows a process and everything it starts.
type Tree struct {
	host   Host
	leader int
	// group is the process group that is theirs alone; 0: none is.
	group int
	// cgroup is the folder of the control group that is theirs alone.
	cgroup  string
	members map[int]usage
	// ended is what members left that nobody waited for.
	ended usage
	// threads has what each thread had used when it was seen last, endedThreads
	// the sum of those that are gone.
	threads      map[int]threadUsage
	endedThreads threadUsage
}

// NewTree follows the leader and all it starts. cgroup is the folder of a control
// group that is theirs alone; empty: there is none.
func NewTree(h Host, leader int, cgroup string) *Tree {
	t := &Tree{host: h, leader: leader, cgroup: cgroup, members: map[int]usage{}, threads: map[int]threadUsage{}}
	if line, err := h.Text(processFile(leader, "stat")); err == nil {
		if u, err := parseUsage(line); err == nil && u.group == leader {
			t.group = leader
		}
	}
	return t
}

func processFile(pid int, name string) string {
	return filepath.Join("proc", strconv.Itoa(pid), name)
}

// Observe looks at the tree. Thorough, it also finds members whose parents
// ended before they were seen.
func (t *Tree) Observe(thorough bool) Observation {
	o := NewObservation()
	now := t.look(thorough)
	for pid, before := range t.members {
		if after, alive := now[pid]; (!alive || after.started != before.started) && !t.waitedFor(before, now) {
			t.ended.add(before)
		}
	}
	t.members = now
	sum, largest := t.ended, usage{}
	for _, one := range now {
		sum.add(one)
		if one.residentBytes > largest.residentBytes {
			largest = one
		}
		sum.threads += one.threads
		sum.residentBytes += one.residentBytes
		sum.residentFileBytes += one.residentFileBytes
		sum.accountsFiles = sum.accountsFiles || one.accountsFiles
	}
	o.Sums["tree.cpu_user"], o.Sums["tree.cpu_system"] = sum.userSeconds, sum.systemSeconds
	o.Sums["tree.page_faults_minor"], o.Sums["tree.page_faults_major"] = sum.minorFaults, sum.majorFaults
	if len(now) == 0 {
		return o // its memory, files and threads are gone
	}
	if sum.accountsIO {
		o.Sums["tree.disk_read_bytes"], o.Sums["tree.disk_write_bytes"] = sum.readBytes, sum.writeBytes
	}
	t.observeThreads(o, sum.accountsContextChanges)
	if sum.accountsFiles {
		o.States["tree.resident_file_bytes"], o.States["tree.largest_resident_file_bytes"] = sum.residentFileBytes, largest.residentFileBytes
	}
	o.States["tree.largest_resident_bytes"] = largest.residentBytes
	o.States["tree.resident_bytes"], o.States["tree.threads"], o.States["tree.processes"] = sum.residentBytes, sum.threads, float64(len(now))
	return o
}

func (t *Tree) observeThreads(o Observation, accountsContextChanges bool) {
	all := t.endedThreads
	for _, one := range t.threads {
		all.add(one)
	}
	if accountsContextChanges {
		o.Sums["tree.context_switches"], o.Sums["tree.context_switches_forced"] = all.switches, all.forced
	}
	if all.accountsWaiting {
		o.Sums["tree.cpu_first_threads"], o.Sums["tree.cpu_waiting"] = all.firstSeconds, all.waitingSeconds
	}
}

func (u *usage) add(other usage) {
	u.userSeconds += other.userSeconds
	u.systemSeconds += other.systemSeconds
	u.minorFaults += other.minorFaults
	u.majorFaults += other.majorFaults
	u.readBytes += other.readBytes
	u.writeBytes += other.writeBytes
	u.accountsIO = u.accountsIO || other.accountsIO
	u.accountsContextChanges = u.accountsContextChanges || other.accountsContextChanges
}

// waitedFor reports whether what a member used is taken to be in the sums of an
// ancestor that is still there.
func (t *Tree) waitedFor(gone usage, now map[int]usage) bool {
	for range len(t.members) + 1 {
		if _, alive := now[gone.parent]; alive {
			return true
		}
		parent, known := t.members[gone.parent]
		if !known {
			return false
		}
		gone = parent
	}
	return false
}

// look reads every member there is.
func (t *Tree) look(thorough bool) map[int]usage {
	found := map[int]usage{}
	waiting := t.candidates(thorough)
	threads := map[int]threadUsage{}
	for len(waiting) > 0 {
		pid := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		if _, seen := found[pid]; seen || pid == os.Getpid() { // who looks is no part of it
			continue
		}
		one, children, ok := t.process(pid, threads)
		if before, was := t.members[pid]; !ok || was && before.started != one.started && pid != t.leader {
			continue // ended, or the number belongs to another now
		}
		found[pid] = one
		waiting = append(waiting, children...)
	}
	for thread, last := range t.threads {
		if now, alive := threads[thread]; !alive || now.before(last) {
			t.endedThreads.add(last)
		}
	}
	t.threads = threads
	return found
}

// candidates are where to look for members.
func (t *Tree) candidates(thorough bool) []int {
	list := slices.AppendSeq([]int{t.leader}, maps.Keys(t.members))
	if t.cgroup != "" {
		return append(list, cgroupProcesses(t.cgroup)...)
	}
	if !thorough || t.group == 0 {
		return list
	}
	return append(list, t.host.members(t.group)...)
}

// cgroupProcesses are the processes of a control group and of those in it.
func cgroupProcesses(folder string) []int {
	var list []int
	// A group that has just been removed has no processes.
	content, _ := readText(filepath.Join(folder, "cgroup.procs"))
	for field := range strings.FieldsSeq(content) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			list = append(list, pid)
		}
	}
	inside, _ := filepath.Glob(filepath.Join(folder, "*", "cgroup.procs"))
	for _, file := range inside {
		list = append(list, cgroupProcesses(filepath.Dir(file))...)
	}
	return list
}

// process reads one member and the children its threads have started.
func (t *Tree) process(pid int, threads map[int]threadUsage) (u usage, children []int, ok bool) {
	line, err := t.host.Text(processFile(pid, "stat"))
	if err != nil {
		return u, nil, false
	}
	if u, err = parseUsage(line); err != nil {
		return u, nil, false
	}
	if text, err := t.host.Text(processFile(pid, "io")); err == nil {
		read, hasRead := parseColumn(text, "read_bytes")
		written, hasWritten := parseColumn(text, "write_bytes")
		u.readBytes, u.writeBytes, u.accountsIO = read, written, hasRead && hasWritten
	}
	children = t.readThreads(pid, &u, threads)
	return u, children, true
}

// threadsOf are the threads of a process. One with a single thread need not be
// asked: it has the process's number.
func (t *Tree) threadsOf(pid int, u usage) []int {
	if u.threads == 1 {
		return []int{pid}
	}
	return t.host.numbered(processFile(pid, "task"))
}
