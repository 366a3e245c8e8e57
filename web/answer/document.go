// Package answer makes the problem documents (RFC 9457) that refuse requests, and writes them.
// It logs the defects of the server, and hides them from clients.
package answer

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// Document is the body of every refusal, with our code and the faults of the request.
type Document struct {
	Type   string          `json:"type" doc:"about:blank: the code says what the problem is"`
	Title  string          `json:"title" doc:"the status in words"`
	Status int             `json:"status" doc:"the HTTP status"`
	Detail string          `json:"detail" doc:"what went wrong, and what to do about it"`
	Code   problem.Code    `json:"code" enum:"invalid,not_found,conflict,lease_lost,exhausted,unavailable,unauthorized,forbidden,key_reused,internal" doc:"the class of the problem: what a program may decide on"`
	Errors []problem.Field `json:"errors,omitempty" doc:"every fault found in the request"`

	after time.Duration // of Retry-After; 0: what is usual for the status
	kept  bool          // the leases of the refused heartbeat were renewed
}

// Type is the media type of problem documents.
const Type = "application/problem+json"

// maxShown bounds the offending value that is sent back with a fault.
const maxShown = 256

// withStatus is an error whose status says more than its code's.
type withStatus struct {
	problem *problem.Error
	status  int
	after   time.Duration // when to try again; 0: what is usual
}

// Error returns the problem's text.
func (w withStatus) Error() string { return w.problem.Error() }

// Unwrap returns the problem.
func (w withStatus) Unwrap() error { return w.problem }

// Fault returns a problem with a status that is not its code's.
func Fault(status int, code problem.Code, format string, args ...any) error {
	return withStatus{problem: problem.New(code, format, args...), status: status}
}

// Malformed gives a problem the status 400. It returns nil for none.
func Malformed(found *problem.Error) error {
	if found == nil {
		return nil
	}
	return withStatus{problem: found, status: http.StatusBadRequest}
}

// TooMuch refuses a request that may be repeated after the wait.
func TooMuch(wait time.Duration, format string, args ...any) error {
	return withStatus{problem: problem.New(problem.Exhausted, format, args...), status: http.StatusTooManyRequests, after: wait}
}

// Of returns the document of an error. It hides and logs an error that is no
// problem.Error or is internal; request names the request in the log.
func Of(ctx context.Context, err error, logger *slog.Logger, request string) *Document {
	var told *problem.Error
	if !errors.As(err, &told) || told.Code == problem.Internal {
		if ctx.Err() != nil {
			// Whatever it was, the request had ended: the client has hung up,
			// the server closes, or its time was over.
			return New(http.StatusServiceUnavailable, problem.Unavailable, "the request was ended before it was done: try again", nil)
		}
		return Failed(ctx, err, logger, request)
	}
	status := protocol.StatusOf(told.Code)
	var special withStatus
	switch {
	case errors.As(err, &special):
		status = special.status
	case errors.Is(err, problem.ErrDiskFull):
		status = http.StatusInsufficientStorage
	}
	answer := New(status, told.Code, told.Detail, told.Fields)
	answer.after = special.after
	return answer
}

// Failed logs a defect of the server, and returns the document that hides it.
func Failed(ctx context.Context, err error, logger *slog.Logger, request string) *Document {
	logger.LogAttrs(ctx, slog.LevelError, "request failed", slog.String("request", request), slog.Any("error", err))
	return New(http.StatusInternalServerError, problem.Internal, "the server failed on this request: its log says why", nil)
}

// New returns a document. It leaves out the values of fields that are too long to show.
func New(status int, code problem.Code, detail string, fields []problem.Field) *Document {
	shown := make([]problem.Field, len(fields))
	for i, field := range fields {
		field.Value = Showable(field.Value)
		shown[i] = field
	}
	return &Document{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code, Errors: shown}
}

// Showable returns the value if it is short and can be encoded, else nil.
func Showable(value any) any {
	if value == nil {
		return nil
	}
	encoded, err := json.Marshal(value)
	if err != nil || len(encoded) > maxShown {
		return nil
	}
	return json.RawMessage(encoded)
}

// KeepLeases says in a header that the leases of a refused heartbeat were renewed.
func (d *Document) KeepLeases() { d.kept = true }

// Error returns the detail.
func (d *Document) Error() string { return d.Detail }

// GetStatus returns the HTTP status; huma asks for it.
func (d *Document) GetStatus() int { return d.Status }

// ContentType returns the media type of problem documents; huma asks for it.
func (d *Document) ContentType(string) string { return Type }

// GetHeaders returns the headers that belong to the answer; huma asks for them.
func (d *Document) GetHeaders() http.Header {
	headers := http.Header{}
	if d.kept {
		headers.Set(protocol.LeasesHeader, protocol.LeasesKept)
	}
	switch d.Status {
	case http.StatusUnauthorized:
		headers.Set("WWW-Authenticate", `Bearer realm="tandem"`)
	case http.StatusTooManyRequests, http.StatusInsufficientStorage:
		wait := 10
		if d.after > 0 {
			wait = int(math.Ceil(d.after.Seconds()))
		}
		headers.Set("Retry-After", strconv.Itoa(wait))
	case http.StatusServiceUnavailable:
		headers.Set("Retry-After", "1")
	}
	return headers
}

// Write sends the document, without its body for HEAD.
func (d *Document) Write(w http.ResponseWriter, r *http.Request) {
	maps.Copy(w.Header(), d.GetHeaders())
	w.Header().Set("Content-Type", Type)
	w.WriteHeader(d.Status)
	if r.Method != http.MethodHead {
		_ = json.NewEncoder(w).Encode(d) // only a client that hung up fails this
	}
}
