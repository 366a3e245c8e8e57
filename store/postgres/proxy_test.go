package postgres_test

import (
	"bytes"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fate is what becomes of the next commit that passes a wire.
type fate int32

const (
	answered    fate = iota
	requestLost      // the connection breaks before the database hears of it
	answerLost       // the connection breaks before the client hears of it
	overtaken        // the connection breaks, and the database hears of it later
)

// wire stands between a store and its database.
type wire struct {
	socket string // of the database
	next   atomic.Int32
	cut    atomic.Bool

	mutex sync.Mutex
	open  map[net.Conn]bool
}

// through returns a wire to the database and the address by which it is
// reached through it.
func through(t *testing.T, address string) (*wire, string) {
	t.Helper()
	folder := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(folder, ".s.PGSQL.5432"))
	if err != nil {
		t.Skipf("a socket cannot be made in the test's folder: %v", err)
	}
	w := &wire{socket: shared.Socket(), open: make(map[net.Conn]bool)}
	t.Cleanup(func() {
		listener.Close()
		w.breakAll()
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go w.serve(client)
		}
	}()
	before, _, _ := strings.Cut(address, "?")
	return w, before + "?host=" + folder
}

// breakAll closes every connection; more are refused while the wire is cut.
func (w *wire) breakAll() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for connection := range w.open {
		connection.Close()
	}
	clear(w.open)
}

func (w *wire) keep(connections ...net.Conn) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, connection := range connections {
		w.open[connection] = true
	}
}

func (w *wire) serve(client net.Conn) {
	if w.cut.Load() {
		client.Close()
		return
	}
	server, err := net.Dial("unix", w.socket)
	if err != nil {
		client.Close()
		return
	}
	w.keep(client, server)
	var swallow atomic.Bool
	go func() { // what the database says
		defer client.Close()
		buffer := make([]byte, 64<<10)
		for {
			count, err := server.Read(buffer)
			if count > 0 && swallow.Load() {
				return // the client hears nothing any more
			}
			if count > 0 {
				if _, err := client.Write(buffer[:count]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	defer server.Close()
	buffer := make([]byte, 64<<10)
	for {
		count, err := client.Read(buffer)
		if count > 0 && bytes.Contains(buffer[:count], []byte("commit\x00")) {
			switch fate(w.next.Swap(int32(answered))) {
			case requestLost:
				client.Close()
				return
			case answerLost:
				swallow.Store(true)
			case overtaken:
				swallow.Store(true)
				client.Close()
				time.Sleep(300 * time.Millisecond)
				_, _ = server.Write(buffer[:count])
				return
			}
		}
		if count > 0 {
			if _, err := server.Write(buffer[:count]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
