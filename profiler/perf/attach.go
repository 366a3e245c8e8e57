package perf

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/tandem-tune/tandem/profiler/proc"
	"golang.org/x/sys/unix"
)

// Attach counts the events in a process that runs already: in the threads that it has
// now, and in all threads and children that these start. Children that it has now are
// not counted. What the kernel refuses is missing, with the reason.
//
// A thread that starts meanwhile may have some of the events and not others. So it
// begins again until no thread started. After ten times the events are read one by one:
// the kernel does not read a group that a thread has in part.
func Attach(pid int, wanted []Event) *Counters {
	for attempt := 1; ; attempt++ {
		before := proc.Threads(pid)
		c := &Counters{kernel: &attached{pid: pid, opened: map[int][]thread{}}, ungrouped: attempt > attempts}
		c.open(wanted)
		if attempt > attempts || slices.Equal(before, proc.Threads(pid)) {
			return c
		}
		c.Close()
	}
}

// attempts bounds how often Attach begins again for a process that starts threads.
const attempts = 10

// attached opens each event once for each thread. To its caller it is one event, whose
// counts are the sums.
type attached struct {
	pid    int
	opened map[int][]thread // by the number that stands for them
	last   int
}

// thread is an event in one thread.
type thread struct{ id, descriptor int }

func (a *attached) open(attributes *unix.PerfEventAttr, group int) (int, error) {
	own := *attributes
	own.Bits &^= unix.PerfBitDisabled | unix.PerfBitEnableOnExec // it runs already
	members, err := proc.Threads(a.pid), error(unix.ESRCH)
	var opened []thread
	for _, id := range members {
		leader := -1
		if group >= 0 {
			if leader = descriptorOf(a.opened[group], id); leader < 0 {
				continue // it began after the leader of the group was opened
			}
		}
		descriptor, failed := unix.PerfEventOpen(&own, id, -1, leader, unix.PERF_FLAG_FD_CLOEXEC)
		switch {
		case failed == nil:
			opened = append(opened, thread{id, descriptor})
		case !errors.Is(failed, unix.ESRCH) || len(members) == 1: // one that has ended is no fault
			closeAll(opened)
			return 0, failed
		}
	}
	if len(opened) == 0 {
		return 0, err
	}
	a.last++
	a.opened[a.last] = opened
	return a.last, nil
}

func descriptorOf(threads []thread, id int) int {
	for _, one := range threads {
		if one.id == id {
			return one.descriptor
		}
	}
	return -1
}

// read sums over the threads. Of a group the first number is how many events there
// are, which is the same for all: it is known by the length, as three numbers are one
// event's.
func (a *attached) read(number int, into []byte) (int, error) {
	clear(into)
	buffer, first := make([]byte, len(into)), 0
	if len(into) > 3*8 {
		first = 8
	}
	for _, one := range a.opened[number] {
		n, err := unix.Read(one.descriptor, buffer)
		if err != nil || n != len(buffer) {
			return n, err
		}
		copy(into[:first], buffer)
		for at := first; at < len(into); at += 8 {
			binary.NativeEndian.PutUint64(into[at:], binary.NativeEndian.Uint64(into[at:])+binary.NativeEndian.Uint64(buffer[at:]))
		}
	}
	return len(into), nil
}

func (a *attached) close(number int) {
	closeAll(a.opened[number])
	delete(a.opened, number)
}

func closeAll(threads []thread) {
	for _, one := range threads {
		_ = unix.Close(one.descriptor) // read-only: nothing can be lost
	}
}
