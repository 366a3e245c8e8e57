package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study"
)

// document is the one shape of every error answer: a problem document (RFC
// 9457) with our code and the faults found in the request.
type document struct {
	Type   string          `json:"type" doc:"about:blank: the code says what the problem is"`
	Title  string          `json:"title" doc:"the status in words"`
	Status int             `json:"status" doc:"the HTTP status"`
	Detail string          `json:"detail" doc:"what went wrong, and what to do about it"`
	Code   problem.Code    `json:"code" enum:"invalid,not_found,conflict,lease_lost,exhausted,unavailable,unauthorized,forbidden,key_reused,internal" doc:"the class of the problem: what a program may decide on"`
	Errors []problem.Field `json:"errors,omitempty" doc:"every fault found in the request"`

	after time.Duration // of Retry-After; 0: what is usual for the status
	kept  bool          // it refuses a heartbeat, and the leases are renewed all the same
}

const problemType = "application/problem+json"

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

// fault is a problem with a status of its own.
func fault(status int, code problem.Code, format string, args ...any) error {
	return withStatus{problem: problem.New(code, format, args...), status: status}
}

// documentOf turns any error into its document, and sees to what a refusal must
// not cost.
func (s *server) documentOf(ctx context.Context, err error) *document {
	answer := s.told(ctx, err)
	known := knownOf(ctx)
	if known.id == heartbeatID && known.excused.ID != "" && (answer.Status >= http.StatusInternalServerError || answer.Status == http.StatusTooManyRequests) {
		worker := strings.TrimSuffix(strings.TrimPrefix(known.path, prefix+"/workers/"), "/heartbeat")
		s.studies.Excuse(study.WithCaller(ctx, callerOf(known.excused)), worker)
		answer.kept = true
	}
	return answer
}

// told is what is told of the error. What is no problem.Error, or is a defect of
// ours, is logged and told to nobody.
func (s *server) told(ctx context.Context, err error) *document {
	s.noteRefusal(ctx, err)
	var told *problem.Error
	if !errors.As(err, &told) || told.Code == problem.Internal {
		if ctx.Err() != nil {
			// Whatever it was, the request had ended: the client has hung up,
			// the server closes, or its time was over.
			return newDocument(http.StatusServiceUnavailable, problem.Unavailable, "the request was ended before it was done: try again", nil)
		}
		s.logger.LogAttrs(ctx, slog.LevelError, "request failed", slog.String("request", knownOf(ctx).name), slog.Any("error", err))
		return newDocument(http.StatusInternalServerError, problem.Internal, "the server failed on this request: its log says why", nil)
	}
	status := protocol.StatusOf(told.Code)
	var special withStatus
	switch {
	case errors.As(err, &special):
		status = special.status
	case errors.Is(err, problem.ErrDiskFull):
		status = http.StatusInsufficientStorage
	}
	answer := newDocument(status, told.Code, told.Detail, told.Fields)
	answer.after = special.after
	return answer
}

func newDocument(status int, code problem.Code, detail string, fields []problem.Field) *document {
	shown := make([]problem.Field, len(fields))
	for i, field := range fields {
		field.Value = showable(field.Value)
		shown[i] = field
	}
	return &document{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code, Errors: shown}
}

// showable is the value if it is short and can be encoded, or nothing.
func showable(value any) any {
	if value == nil {
		return nil
	}
	encoded, err := json.Marshal(value)
	if err != nil || len(encoded) > maxShown {
		return nil
	}
	return json.RawMessage(encoded)
}

// Error returns the detail.
func (d *document) Error() string { return d.Detail }

// GetStatus returns the HTTP status; huma asks for it.
func (d *document) GetStatus() int { return d.Status }

// ContentType returns the media type of problem documents; huma asks for it.
func (d *document) ContentType(string) string { return problemType }

// GetHeaders returns the headers that belong to the answer; huma asks for them.
func (d *document) GetHeaders() http.Header {
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

// refuse writes an error outside of huma.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	answer := s.documentOf(r.Context(), err)
	maps.Copy(w.Header(), answer.GetHeaders())
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(answer.Status)
	if r.Method != http.MethodHead {
		_ = json.NewEncoder(w).Encode(answer) // only a client that hung up fails this
	}
}

// ours turns huma's own errors, of decoding and validation, into documents.
func (s *server) ours(ctx huma.Context, _ string, answer any) (any, error) {
	theirs, ok := answer.(*huma.ErrorModel)
	if !ok {
		return answer, nil
	}
	if theirs.Status >= http.StatusInternalServerError {
		s.logger.LogAttrs(ctx.Context(), slog.LevelError, "request failed", slog.String("request", knownOf(ctx.Context()).name), slog.String("error", theirs.Error()))
		return newDocument(theirs.Status, problem.Internal, "the server failed on this request: its log says why", nil), nil
	}
	fields := fieldsOf(theirs.Errors)
	text := theirs.Detail
	switch len(fields) {
	case 0:
	case 1:
		text = "the request has a fault"
	default:
		text = fmt.Sprintf("the request has %d faults", len(fields))
	}
	return newDocument(theirs.Status, problem.Invalid, text, fields), nil
}
