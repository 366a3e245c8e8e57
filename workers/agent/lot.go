package agent

import (
	"github.com/tandem-tune/tandem/workers/agent/clock"
	"slices"
	"sync"
	"time"
)

// lot has the processes that have asked for their next trial and wait for one.
// A slot takes those of the others too, since the server's leases go to whichever
// slot asks first.
type lot struct {
	mutex   sync.Mutex
	waiting []*seat // the one that came first first
	leaving sync.WaitGroup
	// came is when a run last came to each GPU.
	came map[int]clock.Moment
}

// park lets the process wait; it is told to end where another run came to a GPU that
// it has, after the lease was over under which it had it: see seat.
func (l *lot) park(s *seat) {
	s.taken = make(chan struct{})
	taken, asking := s.taken, s.asking // it may wait anew before we look
	s.listenIdly()
	if !l.admit(s) {
		s.dismiss()
		return
	}
	l.leaving.Go(func() {
		timer := time.NewTimer(s.agent.options.NextWait)
		defer timer.Stop()
		select {
		case <-taken:
			return
		case <-timer.C:
		case <-asking.Gone():
		}
		if l.take(func(one *seat) bool { return one.asking == asking }) != nil {
			s.dismiss()
		}
	})
}

// take takes the first process that suits out of the lot; nil if none does.
func (l *lot) take(suits func(*seat) bool) *seat {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	at := slices.IndexFunc(l.waiting, suits)
	if at < 0 {
		return nil
	}
	s := l.waiting[at]
	l.waiting = slices.Delete(l.waiting, at, at+1)
	close(s.taken)
	return s
}

// seat returns a waiting process of the kind, or nil. Then the one that waits
// longest has made room for a new one: its memory may be needed. Whoever waits with
// memory of one of the GPUs has made room in any case: the server has given it to
// this run, and knows of no process without a lease.
func (l *lot) seat(kind string, gpus []int) *seat {
	l.comes(gpus)
	found := l.take(func(one *seat) bool { return one.kind == kind })
	if found == nil {
		if s := l.take(func(*seat) bool { return true }); s != nil {
			s.dismiss()
		}
	}
	for {
		s := l.take(func(one *seat) bool {
			return slices.ContainsFunc(one.gpus, func(gpu int) bool { return slices.Contains(gpus, gpu) })
		})
		if s == nil {
			return found
		}
		s.dismiss()
	}
}

// comes notes that a run comes to the GPUs.
func (l *lot) comes(gpus []int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.came == nil {
		l.came = make(map[int]clock.Moment)
	}
	for _, gpu := range gpus {
		l.came[gpu] = clock.Now()
	}
}

// admit has the process among those that wait, unless another run came to a GPU of it
// since it asked for its next trial: whoever comes from now on finds it there.
func (l *lot) admit(s *seat) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if slices.ContainsFunc(s.gpus, func(gpu int) bool { return l.came[gpu] > s.asking.At() }) {
		return false
	}
	l.waiting = append(l.waiting, s)
	return true
}

// close returns when all that wait have ended. Nobody may park any more.
func (l *lot) close() {
	for s := l.take(func(*seat) bool { return true }); s != nil; s = l.take(func(*seat) bool { return true }) {
		l.leaving.Go(s.dismiss)
	}
	l.leaving.Wait()
}
