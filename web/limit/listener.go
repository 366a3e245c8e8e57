package limit

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Listener bounds the open connections: one too many is told so, if there are
// words for it, and closed at once, so that it does not wait in a queue until
// its client gives up. No address but this machine's own may have more than three
// quarters of them, so that one that opens connections and sends nothing leaves some.
type Listener struct {
	net.Listener
	most  int64
	words string

	mutex sync.Mutex
	open  int64
	from  map[netip.Prefix]int64
	shed  atomic.Uint64
}

// shedTime is how long a connection that is one too many may take to read why.
const shedTime = time.Second

// Listen bounds the connections of the listener. words is what one too many is
// sent; a listener behind TLS has none, as nobody could read them.
func Listen(inner net.Listener, most int, words string) *Listener {
	return &Listener{Listener: inner, most: int64(most), words: words, from: make(map[netip.Prefix]int64)}
}

// Open is how many connections are open.
func (l *Listener) Open() int64 {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.open
}

// Shed is how many connections were closed because there were too many.
func (l *Listener) Shed() uint64 { return l.shed.Load() }

// Accept returns the next connection for which there is room.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if from := Origin(accepted.RemoteAddr().String()); l.take(from) {
			return &connection{Conn: accepted, listener: l, from: from}, nil
		}
		l.shed.Add(1)
		l.refuse(accepted)
	}
}

func (l *Listener) take(from netip.Prefix) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	own := from.Addr().IsLoopback() || from.Contains(netip.IPv6Loopback())
	if l.open >= l.most || l.from[from] >= l.most*3/4 && !own {
		return false
	}
	l.open++
	l.from[from]++
	return true
}

func (l *Listener) give(from netip.Prefix) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.open--
	if l.from[from]--; l.from[from] == 0 {
		delete(l.from, from)
	}
}

// refuse closes a connection. A short answer fits into what the kernel keeps
// for a connection nobody has written to, so this does not wait for the client.
func (l *Listener) refuse(accepted net.Conn) {
	if l.words != "" {
		_ = accepted.SetWriteDeadline(time.Now().Add(shedTime))
		_, _ = accepted.Write([]byte(l.words)) // whoever is gone already need not know
	}
	_ = accepted.Close()
}

// connection gives its place back when it is closed.
type connection struct {
	net.Conn
	listener *Listener
	from     netip.Prefix
	once     sync.Once
}

// Close closes the connection.
func (c *connection) Close() error {
	c.once.Do(func() { c.listener.give(c.from) })
	return c.Conn.Close()
}
