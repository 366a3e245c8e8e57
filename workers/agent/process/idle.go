package process

import (
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/workers/agent/clock"
	"github.com/tandem-tune/tandem/workers/agent/knob"
	"github.com/tandem-tune/tandem/workers/agent/workspace"
)

// IdlePool has the processes that have asked for their next trial and wait for one.
// Whoever runs trials takes those of the others too, since the server's leases go
// to whichever asks first.
type IdlePool struct {
	Host Host

	mutex   sync.Mutex
	waiting []*Slot // the one that came first first
	leaving sync.WaitGroup
	// came is when a run last came to each GPU.
	came map[int]clock.Moment
}

// Park lets the process wait; it is told to end where another run came to a GPU that
// it has, after the lease was over under which it had it: see Take.
func (p *IdlePool) Park(s *Slot) {
	s.taken = make(chan struct{})
	taken, asking := s.taken, s.Asking // it may wait anew before we look
	s.listenIdly()
	if !p.admit(s) {
		s.Dismiss()
		return
	}
	p.leaving.Go(func() {
		timer := time.NewTimer(p.Host.NextWait)
		defer timer.Stop()
		select {
		case <-taken:
			return
		case <-timer.C:
		case <-asking.Gone():
		}
		if p.take(func(one *Slot) bool { return one.Asking == asking }) != nil {
			s.Dismiss()
		}
	})
}

// NewSlot is a slot of the kind with the folder; its command is started by a run.
func (p *IdlePool) NewSlot(kind string, gpus []int, folder *workspace.Folder) *Slot {
	return &Slot{host: p.Host, kind: kind, gpus: gpus, Folder: folder, Subject: &knob.Subject{Group: folder.Group}, begun: make(chan struct{})}
}

// take takes the first process that suits out of the pool; nil if none does.
func (p *IdlePool) take(suits func(*Slot) bool) *Slot {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	at := slices.IndexFunc(p.waiting, suits)
	if at < 0 {
		return nil
	}
	s := p.waiting[at]
	p.waiting = slices.Delete(p.waiting, at, at+1)
	close(s.taken)
	return s
}

// Take returns a waiting process of the kind, or nil. Then the one that waits
// longest has made room for a new one: its memory may be needed. Whoever waits with
// memory of one of the GPUs has made room in any case: the server has given it to
// this run, and knows of no process without a lease.
func (p *IdlePool) Take(kind string, gpus []int) *Slot {
	p.comes(gpus)
	found := p.take(func(one *Slot) bool { return one.kind == kind })
	if found == nil {
		if s := p.take(func(*Slot) bool { return true }); s != nil {
			s.Dismiss()
		}
	}
	for {
		s := p.take(func(one *Slot) bool {
			return slices.ContainsFunc(one.gpus, func(gpu int) bool { return slices.Contains(gpus, gpu) })
		})
		if s == nil {
			return found
		}
		s.Dismiss()
	}
}

// comes notes that a run comes to the GPUs.
func (p *IdlePool) comes(gpus []int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.came == nil {
		p.came = make(map[int]clock.Moment)
	}
	for _, gpu := range gpus {
		p.came[gpu] = clock.Now()
	}
}

// admit has the process among those that wait, unless another run came to a GPU of it
// since it asked for its next trial: whoever comes from now on finds it there.
func (p *IdlePool) admit(s *Slot) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if slices.ContainsFunc(s.gpus, func(gpu int) bool { return p.came[gpu] > s.Asking.At() }) {
		return false
	}
	p.waiting = append(p.waiting, s)
	return true
}

// Close returns when all that wait have ended. Nobody may park any more.
func (p *IdlePool) Close() {
	for s := p.take(func(*Slot) bool { return true }); s != nil; s = p.take(func(*Slot) bool { return true }) {
		p.leaving.Go(s.Dismiss)
	}
	p.leaving.Wait()
}
