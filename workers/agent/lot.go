package agent

import (
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
}

// park lets the process wait.
func (l *lot) park(s *seat) {
	s.taken = make(chan struct{})
	taken, asking := s.taken, s.asking // it may wait anew before we look
	s.listenIdly()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.waiting = append(l.waiting, s)
	l.leaving.Go(func() {
		timer := time.NewTimer(s.agent.options.NextWait)
		defer timer.Stop()
		select {
		case <-taken:
			return
		case <-timer.C:
		case <-asking.gone:
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
// longest has made room for a new one: its memory may be needed.
func (l *lot) seat(kind string) *seat {
	if s := l.take(func(one *seat) bool { return one.kind == kind }); s != nil {
		return s
	}
	if s := l.take(func(*seat) bool { return true }); s != nil {
		s.dismiss()
	}
	return nil
}

// close returns when all that wait have ended. Nobody may park any more.
func (l *lot) close() {
	for s := l.take(func(*seat) bool { return true }); s != nil; s = l.take(func(*seat) bool { return true }) {
		l.leaving.Go(s.dismiss)
	}
	l.leaving.Wait()
}
