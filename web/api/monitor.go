package api

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
)

// Monitor is told what the API does, for those who watch the server, and tells
// it to them. Its methods are called by many requests at once.
type Monitor interface {
	// Answered is told of the end of a request: the method and pattern of its
	// route ("page" and "none" for what is no route of the API), the status of
	// the answer (0 if there was none) and how long it took.
	Answered(route string, status int, took time.Duration)
	// Limited is told that a request was refused because of a bound.
	Limited(bound string)
	// ServeHTTP answers with everything, in Prometheus' text format.
	ServeHTTP(http.ResponseWriter, *http.Request)
}

// unwatched is the monitor where there is none.
type unwatched struct{}

// Answered does nothing.
func (unwatched) Answered(string, int, time.Duration) {}

// Limited does nothing.
func (unwatched) Limited(string) {}

// ServeHTTP answers nothing.
func (unwatched) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
}

// The names of requests that reach no route of the API.
const (
	pageRoute = "page"
	noRoute   = "none"
)

func (s healthAPI) metrics(context.Context, *nothing) (*huma.StreamResponse, error) {
	return &huma.StreamResponse{Body: func(framework huma.Context) {
		r, w := humachi.Unwrap(framework)
		s.monitor.ServeHTTP(w, r)
	}}, nil
}

// opensMetrics reports whether the request may read the metrics without a token:
// the server was told to allow that to programs on this machine. What a proxy
// passes on comes from this machine too, and from anywhere.
func (s *server) opensMetrics(found route, r *http.Request) bool {
	if !s.openMetrics || found.path != metricsPath {
		return false
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}
