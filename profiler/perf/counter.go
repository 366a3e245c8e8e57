// Package perf counts the events of the processor and the kernel in a command, and
// chooses which of them say something new.
package perf

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/tandem-tune/tandem/profiler/proc"
	"golang.org/x/sys/unix"
)

// Level is how much of a process its user may count.
type Level string

// The levels, the best first.
const (
	KernelLevel Level = "user and kernel mode"
	UserLevel   Level = "user mode only"
	HostLevel   Level = "host metrics only"
)

// kernel is perf_event_open and what goes with it; tests have another.
type kernel interface {
	// open opens an event for the calling thread, on whatever CPU it runs.
	open(attributes *unix.PerfEventAttr, group int) (descriptor int, err error)
	read(descriptor int, into []byte) (int, error)
	close(descriptor int)
}

// Counters count events of a command with all the threads and children it has
// or leaves behind. Open them with [OpenCounters]; they are safe for use by one
// goroutine at a time.
type Counters struct {
	kernel  kernel
	level   Level
	groups  []*eventGroup
	missing []proc.Missing
	// most bounds how many events are counted; none when 0.
	most, opened int
	// ungrouped says that this kernel does not read inherited events as groups.
	ungrouped bool
}

// eventGroup is a set of events that are on the processor together.
type eventGroup struct {
	events      []Event
	descriptors []int
	grouped     bool // one read tells them all
	last        []Counted
}

// OpenCounters opens the events on the calling thread, disabled. What this
// thread starts inherits them, and they begin to count in the started command
// when it calls exec: nothing of it is missed, and nothing of this process is
// counted. So the caller locks the goroutine to its thread, opens, starts the
// command, and never uses the thread to start another.
//
// It does not fail: what the kernel refuses is missing, with the reason.
func OpenCounters(wanted []Event) *Counters { return openCounters(perfEvents{}, wanted, 0) }

// OpenFirst is [OpenCounters] for at most so many of the events that can be
// counted, the first ones: who has no room for more would only share the
// counters with what is thrown away.
func OpenFirst(wanted []Event, most int) *Counters { return openCounters(perfEvents{}, wanted, most) }

func openCounters(k kernel, wanted []Event, most int) *Counters {
	return (&Counters{kernel: k, most: most}).open(wanted)
}

func (c *Counters) open(wanted []Event) *Counters {
	fault := c.findLevel()
	if fault != nil {
		c.level = HostLevel
		for _, event := range wanted {
			c.miss(event.Name, refusal(fault))
		}
		return c
	}
	for _, group := range grouped(wanted) {
		if err := c.openGroup(group); err != nil {
			// The descriptors are needed for more important things.
			c.Close()
			c.groups, c.level, c.missing = nil, HostLevel, nil
			for _, event := range wanted {
				c.miss(event.Name, refusal(err))
			}
			break
		}
	}
	return c
}

// findLevel tries what the user may do with an event that every kernel has.
func (c *Counters) findLevel() error {
	probe := Event{source: unix.PERF_TYPE_SOFTWARE, config: unix.PERF_COUNT_SW_TASK_CLOCK}
	var err error
	for _, c.level = range [...]Level{KernelLevel, UserLevel} {
		var descriptor int
		if descriptor, err = c.kernel.open(c.attributes(probe, -1, false), -1); err == nil {
			c.kernel.close(descriptor)
			return nil
		}
		if !Denied(err) {
			return err
		}
	}
	return err
}

// Denied reports whether the kernel refused an event to this user.
func Denied(err error) bool { return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) }

// grouped gathers the events that belong together, in their order.
func grouped(wanted []Event) [][]Event {
	var groups [][]Event
	for _, event := range wanted {
		at := slices.IndexFunc(groups, func(group []Event) bool {
			return event.together != "" && group[0].together == event.together
		})
		if at < 0 {
			groups = append(groups, []Event{event})
		} else {
			groups[at] = append(groups[at], event)
		}
	}
	return groups
}

// openGroup opens the events as one group; those that do not fit into it, alone.
// It fails only when this process has no more descriptors.
func (c *Counters) openGroup(wanted []Event) error {
	var group *eventGroup
	for _, event := range wanted {
		if event.inKernel && c.level == UserLevel {
			c.miss(event.Name, "it happens in kernel mode, which this user may not count")
			continue
		}
		if c.most > 0 && c.opened >= c.most {
			c.miss(event.Name, fmt.Sprintf("%d others are counted, and there is no room for more", c.most))
			continue
		}
		leader := -1
		if group != nil {
			leader = group.descriptors[0]
		}
		descriptor, grouped, err := c.openEvent(event, leader)
		if err != nil && leader >= 0 && !scarce(err) {
			leader = -1
			descriptor, grouped, err = c.openEvent(event, leader)
		}
		switch {
		case scarce(err):
			return err
		case err != nil:
			c.miss(event.Name, refusal(err))
		case leader < 0:
			c.opened++
			one := &eventGroup{events: []Event{event}, descriptors: []int{descriptor}, grouped: grouped}
			c.groups = append(c.groups, one)
			if group == nil {
				group = one
			}
		default:
			c.opened++
			group.events, group.descriptors = append(group.events, event), append(group.descriptors, descriptor)
		}
	}
	return nil
}

func scarce(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }

// openEvent opens one event, to be read with its group where the kernel can.
func (c *Counters) openEvent(event Event, leader int) (descriptor int, grouped bool, err error) {
	if !c.ungrouped {
		descriptor, err = c.kernel.open(c.attributes(event, leader, true), leader)
		if err == nil || !errors.Is(err, unix.EINVAL) || leader >= 0 {
			return descriptor, true, err
		}
	}
	descriptor, err = c.kernel.open(c.attributes(event, leader, false), leader)
	if err == nil && leader < 0 {
		c.ungrouped = true // it was the reading of groups that was refused
	}
	return descriptor, false, err
}

// attributes ask for an event that is inherited by threads and children and
// begins with exec. Members of a group begin and end with its leader.
func (c *Counters) attributes(event Event, leader int, grouped bool) *unix.PerfEventAttr {
	a := &unix.PerfEventAttr{
		Type: event.source, Config: event.config, Ext1: event.config1, Ext2: event.config2,
		Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Bits: unix.PerfBitInherit,
		Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
	}
	if leader < 0 {
		a.Bits |= unix.PerfBitDisabled | unix.PerfBitEnableOnExec
	}
	if c.level == UserLevel {
		a.Bits |= unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
	}
	if grouped {
		a.Read_format |= unix.PERF_FORMAT_GROUP
	}
	return a
}

func (c *Counters) miss(name, reason string) {
	c.missing = append(c.missing, proc.Missing{Name: name, Reason: reason})
}

// Level is how much is counted.
func (c *Counters) Level() Level { return c.level }

// Missing are the events that are not counted.
func (c *Counters) Missing() []proc.Missing { return slices.Clone(c.missing) }

// Events are the events that are counted, in the order of their groups.
func (c *Counters) Events() []Event {
	var list []Event
	for _, group := range c.groups {
		list = append(list, group.events...)
	}
	return list
}

// Close gives the descriptors back; nothing is counted any more.
func (c *Counters) Close() {
	for _, group := range c.groups {
		for _, descriptor := range slices.Backward(group.descriptors) {
			c.kernel.close(descriptor)
		}
		group.descriptors = nil
	}
}

// refusal says in words why an event cannot be counted.
func refusal(err error) string {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return "this processor does not count it, or shows no counters here, as most virtual machines do"
	case Denied(err):
		return "the kernel refuses it to this user"
	case errors.Is(err, unix.EINVAL):
		return "the kernel does not count it for a process"
	case errors.Is(err, unix.ENOSYS):
		return "this kernel is built without performance events"
	case scarce(err):
		return "this process may not open more files"
	default:
		return fmt.Sprintf("perf_event_open: %v", err)
	}
}
