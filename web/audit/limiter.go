package audit

import (
	"maps"
	"sync"
	"time"
)

// The bounds of what strangers can make the log write.
const (
	// window is how long lines of one kind are counted together.
	window = time.Minute
	// perKind is how many lines a window has of one kind from one origin, perAll
	// how many in all.
	perKind = 10
	perAll  = 60
	// maxKinds bounds what is remembered.
	maxKinds = 10000
)

// Limiter bounds the lines that strangers write, by being refused or by what
// everybody may do, so that nobody fills the disk or drives other lines out. What has no line of its own is
// counted, and the next line of its kind says how many there were. It is safe
// for concurrent use.
type Limiter struct {
	now   func() time.Time
	mutex sync.Mutex
	kinds map[string]*counter
	all   counter
}

// counter counts what one window had.
type counter struct {
	began    time.Time
	written  int
	unspoken int // since the last line
}

// NewLimiter returns a Limiter on the clock.
func NewLimiter(now func() time.Time) *Limiter {
	return &Limiter{now: now, kinds: make(map[string]*counter)}
}

// Count counts one more of the kind. It returns for how many a line is to be
// written now; 0 for none.
func (l *Limiter) Count(kind string) int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := l.now()
	of := l.kinds[kind]
	if of == nil {
		if len(l.kinds) >= maxKinds {
			l.forget(now)
		}
		of = &counter{began: now}
		l.kinds[kind] = of
	}
	of.unspoken++
	if !of.open(now, perKind) || !l.all.open(now, perAll) {
		return 0
	}
	of.written++
	l.all.written++
	count := of.unspoken
	of.unspoken = 0
	return count
}

// open reports whether the window has room for a line.
func (c *counter) open(now time.Time, lines int) bool {
	if now.Sub(c.began) >= window {
		c.began, c.written = now, 0
	}
	return c.written < lines
}

// forget drops the kinds of past windows, or all when there are too many. What
// was not spoken of then stays so.
func (l *Limiter) forget(now time.Time) {
	maps.DeleteFunc(l.kinds, func(_ string, of *counter) bool { return now.Sub(of.began) >= window })
	if len(l.kinds) >= maxKinds {
		clear(l.kinds)
	}
}
