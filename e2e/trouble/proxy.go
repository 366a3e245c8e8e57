package trouble

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Weather is how a [Proxy] treats what passes through it. The zero value does
// nothing to it.
type Weather struct {
	// Latency is added to each piece of data, in each direction.
	Latency time.Duration
	// Piece is the most bytes that are passed on at once; 0: as they come.
	Piece int
	// BytesPerSecond bounds each direction of each connection; 0: no bound.
	BytesPerSecond int
	// ResetAfter is how many bytes a connection carries on average before it is
	// reset, both directions together; 0: none is.
	ResetAfter int
	// HoldUp and HoldDown keep back what goes to the server, and what comes from
	// it: a partition, of one direction or of both. As with TCP nothing of it is
	// lost; it arrives when the weather is better, if the connection still is.
	HoldUp, HoldDown bool
	// Refuse closes connections as they come.
	Refuse bool
}

// Proxy passes TCP connections on to a server.
type Proxy struct {
	target   string
	listener net.Listener
	random   *rand.Rand
	running  sync.WaitGroup

	mutex   sync.Mutex
	weather Weather
	changed chan struct{} // closed and replaced when the weather changes
	open    map[net.Conn]struct{}
	closed  bool
	resets  int
}

// pieceSize is the most that is passed on at once in fine weather.
const pieceSize = 32 << 10

// NewProxy listens on a port of the loopback interface for connections to the
// target, in fine weather. The seed decides when connections are reset.
func NewProxy(target string, seed uint64) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		target: target, listener: listener, random: rand.New(rand.NewPCG(seed, 0)),
		changed: make(chan struct{}), open: map[net.Conn]struct{}{},
	}
	p.running.Go(p.accept)
	return p, nil
}

// Address is where the proxy listens.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Resets says how many connections were reset by the weather.
func (p *Proxy) Resets() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.resets
}

// Set changes the weather, also for connections that are open.
func (p *Proxy) Set(weather Weather) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.weather = weather
	close(p.changed)
	p.changed = make(chan struct{})
}

// Close ends the proxy and all its connections.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.mutex.Lock()
	p.closed = true
	for connection := range p.open {
		_ = connection.Close() // whoever reads or writes it finds out
	}
	close(p.changed)
	p.changed = make(chan struct{})
	p.mutex.Unlock()
	p.running.Wait()
	return err
}

func (p *Proxy) now() (weather Weather, changed chan struct{}, closed bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.weather, p.changed, p.closed
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		if weather, _, _ := p.now(); weather.Refuse {
			reset(client)
			continue
		}
		p.running.Go(func() { p.pass(client) })
	}
}

// pass connects the client and the server until one of them, or the weather,
// ends it.
func (p *Proxy) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		reset(client)
		return
	}
	defer server.Close()
	if !p.keep(client, server) {
		return
	}
	defer p.drop(client, server)
	l := &link{proxy: p, client: client, server: server}
	var directions sync.WaitGroup
	directions.Go(func() { l.copy(server, client, true) })
	directions.Go(func() { l.copy(client, server, false) })
	directions.Wait()
}

func (p *Proxy) keep(connections ...net.Conn) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, connection := range connections {
		p.open[connection] = struct{}{}
	}
	return !p.closed
}

func (p *Proxy) drop(connections ...net.Conn) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, connection := range connections {
		delete(p.open, connection)
	}
}

// link is one connection through the proxy.
type link struct {
	proxy          *Proxy
	client, server net.Conn
}

// copy passes on what comes from one end until that, or the link, is over.
func (l *link) copy(to, from net.Conn, up bool) {
	buffer := make([]byte, pieceSize)
	for {
		weather, _, _ := l.proxy.now()
		most := len(buffer)
		if weather.Piece > 0 {
			most = min(weather.Piece, most)
		}
		n, err := from.Read(buffer[:most])
		if n > 0 && !l.deliver(to, buffer[:n], up) {
			return
		}
		if err != nil {
			l.ended(to, err)
			return
		}
	}
}

// deliver passes a piece on as the weather is; false when the link is over.
func (l *link) deliver(to net.Conn, piece []byte, up bool) bool {
	weather, ok := l.held(up)
	if !ok {
		return false
	}
	pause := weather.Latency
	if weather.BytesPerSecond > 0 {
		pause += time.Duration(float64(len(piece)) / float64(weather.BytesPerSecond) * float64(time.Second))
	}
	if pause > 0 {
		time.Sleep(pause)
	}
	if l.proxy.breaks(weather, len(piece)) {
		reset(l.client)
		reset(l.server)
		return false
	}
	_, err := to.Write(piece)
	return err == nil
}

// held returns when the direction is open; false when the proxy is closed.
func (l *link) held(up bool) (Weather, bool) {
	for {
		weather, changed, closed := l.proxy.now()
		if closed {
			return weather, false
		}
		if up && !weather.HoldUp || !up && !weather.HoldDown {
			return weather, true
		}
		<-changed
	}
}

// breaks decides whether a connection is reset with so many bytes on their way.
func (p *Proxy) breaks(weather Weather, bytes int) bool {
	if weather.ResetAfter <= 0 {
		return false
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.random.Float64() >= float64(bytes)/float64(weather.ResetAfter) {
		return false
	}
	p.resets++
	return true
}

// ended hands on that one end has said all.
func (l *link) ended(to net.Conn, err error) {
	if errors.Is(err, net.ErrClosed) {
		_ = to.Close()
		return
	}
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite() // the other direction may go on
	}
}

// reset ends the connection without a word.
func reset(connection net.Conn) {
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a close is then a reset
	}
	_ = connection.Close()
}
