package profiler

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/profiler/perf"
	"github.com/tandem-tune/tandem/profiler/proc"
	"golang.org/x/sys/unix"
)

// DefaultInterval is how often a running command is looked at.
const DefaultInterval = time.Second

// RecorderOptions say what to record. Only Leader is required.
type RecorderOptions struct {
	// Leader is the process whose tree is recorded.
	Leader int
	// Cgroup is the folder of a control group (v2) that holds the tree and
	// nothing else, where there is one.
	Cgroup string
	// Interval is the time between samples. When it is 0 it is DefaultInterval,
	// or as much longer as a sample of a very large tree needs to take at most
	// half a percent of one core's time.
	Interval time.Duration
	// Environment is the command's, as [os/exec.Cmd] has it: which GPUs it may
	// use follows from it. This process's when nil.
	Environment []string
	// Root is prefixed to the paths of the kernel's files; "/" when empty.
	Root string
	// Sampled, where there is one, is told of each interval.
	Sampled func(Profile)
}

// Recorder samples a running command, so that counts are scaled over short
// windows, until it is stopped. It is safe for concurrent use.
type Recorder struct {
	counters *perf.Counters
	events   []perf.Event
	host     proc.Host
	tree     *proc.Tree
	gpus     *gpuWatch
	stop     chan struct{}
	ended    chan struct{}
	once     sync.Once

	mutex      sync.Mutex
	at         time.Time
	lap, whole *span
	step       *span // since the last interval; told to sampled
	sampled    func(Profile)
	gpusInLap  bool // the lap has states of the GPUs
	missing    []proc.Missing
	stopped    bool
}

// Record begins to sample the command that was started with the counters, which
// belong to the recorder from now on.
func Record(counters *perf.Counters, options RecorderOptions) *Recorder {
	return record(counters, options, openGPUs)
}

func record(counters *perf.Counters, options RecorderOptions, open func() (gpuReader, error)) *Recorder {
	stretch := options.Interval <= 0
	if stretch {
		options.Interval = DefaultInterval
	}
	h := proc.NewHost(options.Root)
	r := &Recorder{
		counters: counters, events: counters.Events(), host: h, tree: proc.NewTree(h, options.Leader, options.Cgroup),
		stop: make(chan struct{}), ended: make(chan struct{}), at: time.Now(), sampled: options.Sampled,
	}
	counts := counters.Read()
	// What the command has done between its start and now belongs to it.
	begun := make([]perf.Counted, len(counts))
	r.missing = counters.Missing()
	machine, missing := proc.ObserveMachine(h)
	r.missing = append(r.missing, missing...)
	seen := r.tree.Observe(false)
	for name := range seen.Sums {
		machine.Sums[name] = 0
	}
	r.lap, r.whole, r.step = newSpan(begun, machine), newSpan(begun, machine), newSpan(begun, machine)
	for _, s := range r.spans() {
		s.observe(0, counts, seen)
	}
	r.gpus = watchGPUs(open, options.Environment, options.Interval)
	go r.run(options.Interval, stretch)
	return r
}

func (r *Recorder) run(interval time.Duration, stretch bool) {
	defer close(r.ended)
	runtime.LockOSThread() // its CPU time is read; it ends with the goroutine
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for due := time.Now().Add(interval); ; {
		select {
		case <-r.stop:
			return
		case <-timer.C:
		}
		before := threadTime()
		r.look()
		spent := threadTime() - before
		if !stretch {
			spent = 0
		}
		now := time.Now()
		due = nextSample(now, due.Add(interval), spent)
		timer.Reset(due.Sub(now))
	}
}

func (r *Recorder) spans() []*span { return []*span{r.lap, r.whole, r.step} }

// look samples, and tells of it.
func (r *Recorder) look() {
	r.mutex.Lock()
	r.sample(false)
	if r.sampled == nil {
		r.mutex.Unlock()
		return
	}
	step := r.step.profile(r.events, r.counters.Level(), nil)
	r.step.restart()
	r.mutex.Unlock()
	r.sampled(step)
}

// rest is how long the recorder rests for each second that it worked: 200 make
// half a percent of a core.
const rest = 200

// nextSample is when to look again: when it is due, but not before a look that
// took so much CPU time is paid for, and not in the past.
func nextSample(now, due time.Time, spent time.Duration) time.Time {
	if earliest := now.Add(rest * spent); due.Before(earliest) {
		return earliest
	}
	return due
}

// threadTime is the CPU time of this thread, without what it waited for others
// that keep the processor busy; 0 where the kernel does not tell.
func threadTime() time.Duration {
	var spent unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spent) != nil {
		return 0
	}
	return time.Duration(spent.Nano())
}

// sample looks at everything once. The caller holds the mutex.
func (r *Recorder) sample(thorough bool) {
	if r.stopped {
		return
	}
	now := time.Now()
	counts := r.counters.Read()
	both, _ := proc.ObserveMachine(r.host) // what is missing was told at the start
	seen := r.tree.Observe(thorough)
	maps.Copy(both.Sums, seen.Sums)
	maps.Copy(both.States, seen.States)
	seconds := now.Sub(r.at).Seconds()
	r.at = now
	fresh, last := r.gpus.take(now)
	for _, s := range r.spans() {
		s.observe(seconds, counts, both)
		for _, states := range fresh {
			s.add(states)
		}
	}
	r.gpusInLap = r.gpusInLap || len(fresh) > 0
	if thorough && !r.gpusInLap {
		r.lap.add(last) // a lap shorter than an interval
	}
}

// absent is what is not measured at all.
func (r *Recorder) absent() []proc.Missing { return slices.Concat(r.missing, r.gpus.absent(r.at)) }

// Lap returns what happened since the start or the last Lap.
func (r *Recorder) Lap() Profile {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.sample(true)
	p := r.lap.profile(r.events, r.counters.Level(), r.absent())
	r.lap.restart()
	r.gpusInLap = false
	return p
}

// Stop looks for the last time and closes the counters. Call it when the
// command has ended and before it is waited for: then its own sums can still be
// read. Laps can be taken afterwards.
func (r *Recorder) Stop() {
	r.once.Do(func() {
		close(r.stop)
		<-r.ended
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.sample(true)
		r.stopped = true
		close(r.gpus.stop)
		r.counters.Close()
	})
}
