package servecmd

import (
	"net/http"
	"time"
)

// turns lets the goroutines of handlers take the requests of all connections in turn. The
// stack of a handler is deep, and stays so: on the goroutine of its connection, each idle
// connection would keep one.
type turns struct {
	handler http.Handler
	next    chan *turn
}

func inTurns(handler http.Handler) turns { return turns{handler, make(chan *turn)} }

// turn is one request. ended has what its handler panicked with.
type turn struct {
	w     http.ResponseWriter
	r     *http.Request
	ended chan any
}

// ServeHTTP lets the handler answer, and panics as it does.
func (t turns) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	one := &turn{w, r, make(chan any)}
	select {
	case t.next <- one:
	default:
		go t.take(one)
	}
	if cause := <-one.ended; cause != nil {
		panic(cause)
	}
}

// take answers requests until none comes for a second.
func (t turns) take(one *turn) {
	for {
		t.answer(one)
		select {
		case one = <-t.next:
		case <-time.After(time.Second):
			return
		}
	}
}

func (t turns) answer(one *turn) {
	defer func() { one.ended <- recover() }()
	t.handler.ServeHTTP(one.w, one.r)
}
