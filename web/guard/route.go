package guard

import (
	"net/http"
	"time"

	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/web/auth"
)

// Route is a method and a path of the API, with the checks that it asks for.
type Route struct {
	Method, Path string
	// ID names the route in the audit log.
	ID     string
	Access Access
	// Role is what a user needs on a study of somebody else.
	Role   access.Role
	Status int // of a success
	Kind   Kind
	// MaxBody bounds the body of a call, in bytes.
	MaxBody int64
	// Urgent calls have memory of their own: a worker loses a trial, or its results,
	// if they are refused for long.
	Urgent bool
	// Heartbeat calls renew leases, also if the server has no room for them.
	Heartbeat bool
	// Metrics may be open to programs on this machine.
	Metrics bool
	// Audited requests are in the audit log before anything is done or sent. One that
	// then fails has a second entry.
	Audited bool
	// Routine reports that a request of an audited route needs no entry; nil: all do.
	Routine func(*http.Request, auth.Token) bool
}

// Kind says how a request is treated before its handler.
type Kind uint8

// The kinds.
const (
	Call      Kind = iota // a small body, read before; a deadline on the whole
	StudyFile             // a call whose body is not our JSON
	Secret                // a call that must not be repeated from a stored answer
	Stream                // the handler reads or writes at length, and sets its own deadlines
)

// Name returns method and path, as the table has them.
func (r Route) Name() string { return r.Method + " " + r.Path }

// Changes reports whether the route changes something.
func (r Route) Changes() bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// Monitor counts requests and shows the counts. Many requests call its methods at once.
type Monitor interface {
	// Answered counts a request: the method and path of its route ("page" and "none"
	// for those that have no route of the API), the status of the answer (0 if there
	// was none) and the time that it took.
	Answered(route string, status int, took time.Duration)
	// Limited counts a request that was refused because of a bound.
	Limited(bound string)
	// ServeHTTP answers with all counts, in Prometheus' text format.
	ServeHTTP(http.ResponseWriter, *http.Request)
}

// noMonitor is the monitor of a server without one.
type noMonitor struct{}

// Answered does nothing.
func (noMonitor) Answered(string, int, time.Duration) {}

// Limited does nothing.
func (noMonitor) Limited(string) {}

// ServeHTTP answers nothing.
func (noMonitor) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
}

// The names of requests that reach no route of the API.
const (
	pageRoute = "page"
	noRoute   = "none"
)
