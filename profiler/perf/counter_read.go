package perf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Counted is what the kernel tells of an event: how often it happened while it
// was counted, how long it should have been, and how long it was, in
// nanoseconds summed over threads.
type Counted struct{ Value, Enabled, Running uint64 }

var errShortRead = errors.New("the kernel told less than was asked for")

// Read returns one count for each of [Counters.Events]. A group that cannot be
// read keeps its last counts.
func (c *Counters) Read() []Counted {
	var list []Counted
	for _, group := range c.groups {
		if len(group.descriptors) == 0 { // closed
			list = append(list, group.last...)
			continue
		}
		if now, err := c.readGroup(group); err == nil {
			group.last = now
		} else if group.last == nil {
			group.last = make([]Counted, len(group.events))
		}
		list = append(list, group.last...)
	}
	return list
}

func (c *Counters) readGroup(group *eventGroup) ([]Counted, error) {
	if group.grouped {
		return c.readTogether(group)
	}
	counts := make([]Counted, 0, len(group.descriptors))
	for _, descriptor := range group.descriptors {
		numbers, err := c.readNumbers(descriptor, 3)
		if err != nil {
			return nil, err
		}
		counts = append(counts, Counted{numbers[0], numbers[1], numbers[2]})
	}
	return counts, nil
}

// readTogether reads how many events there are, their common times, and their
// values.
func (c *Counters) readTogether(group *eventGroup) ([]Counted, error) {
	members := len(group.descriptors)
	numbers, err := c.readNumbers(group.descriptors[0], 3+members)
	if err != nil {
		return nil, err
	}
	if numbers[0] != uint64(members) {
		return nil, fmt.Errorf("the kernel tells %d events of a group of %d", numbers[0], members)
	}
	counts := make([]Counted, members)
	for i := range counts {
		counts[i] = Counted{numbers[3+i], numbers[1], numbers[2]}
	}
	return counts, nil
}

func (c *Counters) readNumbers(descriptor, wanted int) ([]uint64, error) {
	buffer := make([]byte, 8*wanted)
	n, err := c.kernel.read(descriptor, buffer)
	if err != nil {
		return nil, err
	}
	if n != len(buffer) {
		return nil, errShortRead
	}
	numbers := make([]uint64, wanted)
	for i := range numbers {
		numbers[i] = binary.NativeEndian.Uint64(buffer[8*i:])
	}
	return numbers, nil
}

// perfEvents is the kernel's own interface.
type perfEvents struct{}

func (perfEvents) open(attributes *unix.PerfEventAttr, group int) (int, error) {
	return unix.PerfEventOpen(attributes, 0, -1, group, unix.PERF_FLAG_FD_CLOEXEC)
}

func (perfEvents) read(descriptor int, into []byte) (int, error) { return unix.Read(descriptor, into) }

func (perfEvents) close(descriptor int) { _ = unix.Close(descriptor) } // read-only: nothing can be lost
