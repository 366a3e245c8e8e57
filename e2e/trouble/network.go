package trouble

import (
	"context"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// Network connects clients and servers within one process, without sockets: a
// goroutine that waits for it is one that testing/synctest lets time pass for.
// The zero value has no servers. Addresses are any text.
type Network struct {
	mutex     sync.Mutex
	listeners map[string]*listener
}

// Listen begins to take connections to the address, in place of whoever did so
// before.
func (n *Network) Listen(address string) net.Listener {
	l := &listener{network: n, address: address, arriving: make(chan net.Conn), closed: make(chan struct{})}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	n.listeners[address] = l
	return l
}

// Dial connects to whoever listens at the address. It is refused when there is
// nobody.
func (n *Network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mutex.Lock()
	l := n.listeners[address]
	n.mutex.Unlock()
	if l == nil {
		return nil, broken("dial", syscall.ECONNREFUSED)
	}
	near, far := net.Pipe()
	select {
	case l.arriving <- far:
		return near, nil
	case <-l.closed:
		return nil, broken("dial", syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Transport returns an HTTP transport over the network.
func (n *Network) Transport() *http.Transport {
	return &http.Transport{DialContext: n.Dial, MaxIdleConnsPerHost: 16}
}

type listener struct {
	network  *Network
	address  string
	arriving chan net.Conn
	once     sync.Once
	closed   chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case connection := <-l.arriving:
		return connection, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.network.mutex.Lock()
		defer l.network.mutex.Unlock()
		if l.network.listeners[l.address] == l {
			delete(l.network.listeners, l.address)
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return address(l.address) }

type address string

func (a address) Network() string { return "memory" }
func (a address) String() string  { return string(a) }
