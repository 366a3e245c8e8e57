package perf

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/profiler/proc"
	"github.com/tandem-tune/tandem/profiler/proctest"
)

// fakeKernel counts what the test says it does.
type fakeKernel struct {
	// refuse says how an event is refused; nil: it is opened.
	refuse func(a *unix.PerfEventAttr, members int) error
	opened map[int]*fakeEvent
	next   int
	// times are enabled and running, by the leader's event type.
	times map[uint32][2]uint64
	fault error
}

type fakeEvent struct {
	attributes unix.PerfEventAttr
	leader     int
	value      uint64
	members    []int
}

func newFakeKernel() *fakeKernel {
	return &fakeKernel{opened: map[int]*fakeEvent{}, next: 100, times: map[uint32][2]uint64{}}
}

func (k *fakeKernel) open(a *unix.PerfEventAttr, group int) (int, error) {
	members := 0
	if group >= 0 {
		members = len(k.opened[group].members)
	}
	if k.refuse != nil {
		if err := k.refuse(a, members); err != nil {
			return -1, err
		}
	}
	k.next++
	e := &fakeEvent{attributes: *a, leader: group}
	k.opened[k.next] = e
	if group < 0 {
		e.leader, group = k.next, k.next
	}
	k.opened[group].members = append(k.opened[group].members, k.next)
	return k.next, nil
}

func (k *fakeKernel) read(descriptor int, into []byte) (int, error) {
	if k.fault != nil {
		return 0, k.fault
	}
	e := k.opened[descriptor]
	leader := k.opened[e.leader]
	times := k.times[leader.attributes.Type]
	numbers := []uint64{e.value, times[0], times[1]}
	if e.attributes.Read_format&unix.PERF_FORMAT_GROUP != 0 {
		numbers = []uint64{uint64(len(leader.members)), times[0], times[1]}
		for _, member := range leader.members {
			numbers = append(numbers, k.opened[member].value)
		}
	}
	n := 0
	for _, number := range numbers {
		if n+8 > len(into) {
			return 0, unix.ENOSPC
		}
		binary.NativeEndian.PutUint64(into[n:], number)
		n += 8
	}
	return n, nil
}

func (k *fakeKernel) close(descriptor int) { delete(k.opened, descriptor) }

// set gives an opened event's counter a value.
func (k *fakeKernel) set(t *testing.T, event Event, value uint64) {
	t.Helper()
	for _, e := range k.opened {
		if e.attributes.Type == event.source && e.attributes.Config == event.config {
			e.value = value
			return
		}
	}
	t.Fatalf("%s is not open", event.Name)
}

func named(t *testing.T, names ...string) []Event {
	t.Helper()
	var list []Event
	for _, name := range names {
		at := slices.IndexFunc(knownEvents(), func(e Event) bool { return e.Name == name })
		if at < 0 {
			t.Fatalf("unknown event %s", name)
		}
		list = append(list, knownEvents()[at])
	}
	return list
}

func TestEventsAreOpenedToBeInheritedFromExecOn(t *testing.T) {
	k := newFakeKernel()
	c := openCounters(k, knownEvents(), 0)
	if len(c.Events()) != 62 || len(c.Missing()) != 0 || c.Level() != KernelLevel {
		t.Fatalf("%d events at level %q, missing %v", len(c.Events()), c.Level(), c.Missing())
	}
	for descriptor, e := range k.opened {
		bits, leads := e.attributes.Bits, e.leader == descriptor
		if bits&unix.PerfBitInherit == 0 {
			t.Errorf("%+v is not inherited by threads and children", e.attributes)
		}
		if starts := bits&unix.PerfBitEnableOnExec != 0 && bits&unix.PerfBitDisabled != 0; starts != leads {
			t.Errorf("leader %t begins with exec: %t", leads, starts)
		}
		if len(e.members) > 4 && e.attributes.Type != unix.PERF_TYPE_SOFTWARE {
			t.Errorf("%d events in a group: some processors have 4 counters", len(e.members))
		}
	}
	c.Close()
	if len(k.opened) != 0 {
		t.Errorf("%d descriptors are left open", len(k.opened))
	}
}

func TestWhatIsRefusedIsMissingWithItsReason(t *testing.T) {
	userOnly := func(a *unix.PerfEventAttr) error {
		if a.Bits&unix.PerfBitExcludeKernel == 0 {
			return unix.EACCES
		}
		return nil
	}
	for name, test := range map[string]struct {
		refuse         func(a *unix.PerfEventAttr, members int) error
		level          Level
		counted        int
		missing, cause string
	}{
		"a machine without hardware counters": {func(a *unix.PerfEventAttr, _ int) error {
			if a.Type != unix.PERF_TYPE_SOFTWARE {
				return unix.ENOENT
			}
			return nil
		}, KernelLevel, 10, "instructions", "does not count it"},
		"perf_event_paranoid 2": {func(a *unix.PerfEventAttr, _ int) error { return userOnly(a) }, UserLevel, 59, "context-switches", "kernel mode"},
		"perf_event_paranoid 3": {func(*unix.PerfEventAttr, int) error { return unix.EACCES }, HostLevel, 0, "task-clock", "refuses it to this user"},
		"a kernel without them": {func(*unix.PerfEventAttr, int) error { return unix.ENOSYS }, HostLevel, 0, "task-clock", "built without"},
		"no descriptors left": {func(a *unix.PerfEventAttr, _ int) error {
			if a.Type == unix.PERF_TYPE_HW_CACHE {
				return unix.EMFILE
			}
			return nil
		}, HostLevel, 0, "task-clock", "open more files"},
		"one event is another processor's": {func(a *unix.PerfEventAttr, _ int) error {
			if a.Type == unix.PERF_TYPE_HARDWARE && a.Config == unix.PERF_COUNT_HW_BUS_CYCLES {
				return unix.EINVAL
			}
			return nil
		}, KernelLevel, 61, "bus-cycles", "does not count it for a process"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newFakeKernel()
			k.refuse = test.refuse
			c := openCounters(k, knownEvents(), 0)
			if c.Level() != test.level || len(c.Events()) != test.counted || len(c.Missing()) != 62-test.counted {
				t.Errorf("level %q with %d events, %d missing; want %q with %d", c.Level(), len(c.Events()), len(c.Missing()), test.level, test.counted)
			}
			at := slices.IndexFunc(c.Missing(), func(m proc.Missing) bool { return m.Name == test.missing })
			if at < 0 || !strings.Contains(c.Missing()[at].Reason, test.cause) {
				t.Errorf("%s is not missing because of %q: %v", test.missing, test.cause, c.Missing())
			}
			if test.counted == 0 && len(k.opened) != 0 {
				t.Errorf("%d descriptors are left open", len(k.opened))
			}
		})
	}
}

func TestEventsThatDoNotFitIntoTheGroupAreCountedAlone(t *testing.T) {
	k := newFakeKernel()
	k.refuse = func(a *unix.PerfEventAttr, members int) error {
		if members >= 1 {
			return unix.EINVAL
		}
		return nil
	}
	c := openCounters(k, named(t, "instructions", "cpu-cycles"), 0)
	k.set(t, named(t, "instructions")[0], 7)
	k.set(t, named(t, "cpu-cycles")[0], 9)
	k.times[unix.PERF_TYPE_HARDWARE] = [2]uint64{10, 10}
	if counts := c.Read(); len(counts) != 2 || counts[0].Value != 7 || counts[1].Value != 9 {
		t.Errorf("read %v, want 7 and 9", counts)
	}
}

func TestOldKernelsAreReadOneByOne(t *testing.T) {
	k := newFakeKernel()
	k.refuse = func(a *unix.PerfEventAttr, _ int) error {
		if a.Read_format&unix.PERF_FORMAT_GROUP != 0 {
			return unix.EINVAL // with inherit, as Linux had it
		}
		return nil
	}
	events := named(t, "instructions", "cpu-cycles", "cache-misses")
	c := openCounters(k, events, 0)
	for i, e := range events {
		k.set(t, e, uint64(10*(i+1)))
	}
	k.times[unix.PERF_TYPE_HARDWARE] = [2]uint64{4, 2}
	if counts := c.Read(); !slices.Equal(counts, []Counted{{10, 4, 2}, {20, 4, 2}, {30, 4, 2}}) {
		t.Errorf("read %v", counts)
	}
	k.fault = unix.ECHILD
	if counts := c.Read(); counts[2].Value != 30 {
		t.Errorf("a failed reading gives %v, not the last one", counts)
	}
}

func TestDriversEventsAreDiscovered(t *testing.T) {
	const cpu = "sys/bus/event_source/devices/cpu/"
	root := proctest.Write(t, map[string]string{
		cpu + "type": "4\n", cpu + "format/event": "config:0-7,32-35\n", cpu + "format/umask": "config:8-15\n",
		cpu + "format/ldlat": "config1:0-15\n", cpu + "format/inv": "config:23\n",
		cpu + "events/mem-loads": "event=0xcd,umask=0x1,ldlat=3\n", cpu + "events/topdown": "event=0x1c2,inv\n",
		cpu + "events/topdown.scale": "2\n", cpu + "events/argument": "event=?\n", cpu + "events/cpu-cycles": "event=0x3c\n",
		cpu + "events/unknown":                                 "event=1,frequency=3\n",
		"sys/bus/event_source/devices/power/type":              "9\n",
		"sys/bus/event_source/devices/power/events/energy-pkg": "event=0x02\n",
	})
	got := pmuEvents(proc.NewHost(root))
	want := []Event{
		{Name: "cpu/mem-loads", Kind: PMU, source: 4, config: 0x1cd, config1: 3},
		{Name: "cpu/topdown", Kind: PMU, source: 4, config: 0xc2 | 1<<32 | 1<<23},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func FuzzEventDescriptions(f *testing.F) {
	f.Add("event=0xcd,umask=0x1,ldlat=3", "config:0-7,32-35")
	f.Fuzz(func(t *testing.T, text, format string) {
		configs, err := parseEvent(text, map[string]string{"event": format})
		if err != nil && configs[0] != 0 && !strings.Contains(text, ",") {
			t.Errorf("%q is refused and has %v", text, configs)
		}
	})
}

// TestFirstEventsOnly: those that are refused take no room.
func TestFirstEventsOnly(t *testing.T) {
	k := newFakeKernel()
	k.refuse = func(a *unix.PerfEventAttr, _ int) error {
		if a.Type == unix.PERF_TYPE_HW_CACHE {
			return unix.ENOENT
		}
		return nil
	}
	c := openCounters(k, knownEvents(), 12)
	var names []string
	for _, event := range c.Events() {
		names = append(names, event.Name)
	}
	if want := 12; len(names) != want || !slices.Contains(names, "stalled-cycles-backend") || !slices.Contains(names, "cpu-clock") {
		t.Errorf("%v are counted, want %d: those of the hardware, and the first two of software", names, want)
	}
	missing := c.Missing()
	if last := missing[len(missing)-1]; len(missing) != 50 || !strings.Contains(last.Reason, "no room") {
		t.Errorf("%d missing, the last one %v", len(missing), last)
	}
}
