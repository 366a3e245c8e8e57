package knob

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/study/space"
)

// coresKnob keeps a command to some cores, those that other runs use least.
type coresKnob struct {
	allowed []int

	mutex sync.Mutex
	taken map[*Subject][]int
}

// allowedCores are the cores that this process may run on.
func allowedCores() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var cores []int
	for core := range 8 * len(set) * 8 {
		if set.IsSet(core) {
			cores = append(cores, core)
		}
	}
	return cores
}

// CPUSet is the set of the cores.
func CPUSet(cores []int) *unix.CPUSet {
	set := &unix.CPUSet{}
	for _, core := range cores {
		set.Set(core)
	}
	return set
}

// available sets the mask that is set already: that asks for the right and
// changes nothing.
func (k *coresKnob) available() (string, error) {
	if len(k.allowed) == 0 {
		return "", fmt.Errorf("the kernel does not tell which cores this process may use")
	}
	if err := unix.SchedSetaffinity(0, CPUSet(k.allowed)); err != nil {
		return "", fmt.Errorf("the kernel refuses it: %w", err)
	}
	return "", nil
}

func (k *coresKnob) set(s *Subject, value space.Value) (string, error) {
	wanted, isNumber := value.Number()
	if number := int(wanted); !isNumber || number < 1 || number > len(k.allowed) {
		return "", fmt.Errorf("this worker has %d cores, not %v", len(k.allowed), value)
	}
	s.Cores = k.take(s, int(wanted))
	return "", k.pin(s)
}

// take gives the run that many cores: those that the fewest others have, then
// those it has already, then the first ones.
func (k *coresKnob) take(s *Subject, number int) []int {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	others, mine := map[int]int{}, k.taken[s]
	for owner, cores := range k.taken {
		for _, core := range cores {
			if owner != s {
				others[core]++
			}
		}
	}
	rank := func(core int) int {
		if slices.Contains(mine, core) {
			return 0
		}
		return 1
	}
	cores := slices.Clone(k.allowed)
	slices.SortStableFunc(cores, func(a, b int) int {
		return cmp.Or(cmp.Compare(others[a], others[b]), cmp.Compare(rank(a), rank(b)))
	})
	cores = cores[:number]
	slices.Sort(cores)
	k.taken[s] = cores
	return cores
}

// pin puts every thread of the command onto its cores. One that keeps itself to
// some of them is left there, unless the cores are new.
func (k *coresKnob) pin(s *Subject) error {
	if s.Command == nil {
		return nil // it starts on them
	}
	fresh := !slices.Equal(s.pinned, s.Cores)
	if err := pinThreads(s.processes, s.Cores, fresh); err != nil {
		return err
	}
	s.pinned = s.Cores
	return nil
}

func (k *coresKnob) unset(s *Subject) {
	k.mutex.Lock()
	_, had := k.taken[s]
	delete(k.taken, s)
	k.mutex.Unlock()
	if had && s.pinned != nil {
		_ = pinThreads(s.processes, k.allowed, true) // a command that has ended needs no cores
	}
	s.Cores, s.pinned = nil, nil
}

func (k *coresKnob) held(*Subject) bool { return true }

// pinRounds is how often threads are looked for: those that start meanwhile may
// have been started by one that had not been pinned.
const pinRounds = 4

func pinThreads(processes func() []int, cores []int, all bool) error {
	wanted, done := CPUSet(cores), map[int]bool{}
	for range pinRounds {
		fresh := 0
		for _, thread := range threadsOf(processes()) {
			if done[thread] {
				continue
			}
			done[thread] = true
			fresh++
			var present unix.CPUSet
			if unix.SchedGetaffinity(thread, &present) != nil || present == *wanted || !all && within(present, *wanted) {
				continue // it has ended, or is there
			}
			if err := unix.SchedSetaffinity(thread, wanted); err != nil && err != unix.ESRCH {
				return fmt.Errorf("the kernel refuses it: %w", err)
			}
		}
		if fresh == 0 {
			return nil
		}
	}
	return nil
}

func within(part, whole unix.CPUSet) bool {
	for i := range part {
		if part[i]&^whole[i] != 0 {
			return false
		}
	}
	return true
}

func threadsOf(processes []int) []int {
	var list []int
	for _, pid := range processes {
		entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
		if err != nil {
			continue // it has ended
		}
		for _, entry := range entries {
			if thread, err := strconv.Atoi(entry.Name()); err == nil {
				list = append(list, thread)
			}
		}
	}
	return list
}
