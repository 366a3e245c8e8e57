// Package problem is Tandem's one error type for anything a caller can act on.
//
// An [Error] says what went wrong (Detail), where (Fields), which class of
// failure it is (Code) and, wherever we know it, what to do about it. The HTTP
// layer maps a Code to a status in one place; nothing below it knows HTTP.
package problem

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the class of a failure: what a program may decide on.
type Code string

// The codes, and what a caller should do on each.
const (
	Invalid      Code = "invalid"      // the request is wrong: fix it, a retry will not help
	NotFound     Code = "not_found"    // the thing named does not exist
	Conflict     Code = "conflict"     // the thing is in a state that does not allow this
	LeaseLost    Code = "lease_lost"   // the trial was given to another lease: stop working on it
	Exhausted    Code = "exhausted"    // a bound was reached (size, count, rate)
	Unavailable  Code = "unavailable"  // a passing fault: retry with backoff
	Unauthorized Code = "unauthorized" // no valid token was shown
	Forbidden    Code = "forbidden"    // the token does not have the scope for this
	KeyReused    Code = "key_reused"   // an Idempotency-Key came again with another request
	Internal     Code = "internal"     // a defect of ours
)

// Field is one fault in the input.
type Field struct {
	// Path locates the fault, such as "space.learning_rate.low".
	Path string `json:"path"`
	// Message says what is wrong and what would be right.
	Message string `json:"message"`
	// Value is the offending value as it was given, if it can be shown.
	Value any `json:"value,omitempty"`
	// Line is the 1-based line in the file, 0 when unknown.
	Line int `json:"line,omitempty"`
}

// Error is a failure a caller can act on.
type Error struct {
	Code   Code
	Detail string
	Fields []Field
	cause  error
}

// ErrDiskFull is the cause of an [Unavailable] error that passes as soon as
// somebody makes room.
var ErrDiskFull = errors.New("the server's disk is full")

// New returns an Error with a formatted detail; %w wraps a cause.
func New(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	cause := errors.Unwrap(err)
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		cause = errors.Join(several.Unwrap()...)
	}
	return &Error{Code: code, Detail: err.Error(), cause: cause}
}

// WithFields returns an [Invalid] error that carries every fault found.
func WithFields(detail string, fields []Field) *Error {
	return &Error{Code: Invalid, Detail: detail, Fields: fields}
}

// Error returns the detail followed by one line for each field.
func (e *Error) Error() string {
	if len(e.Fields) == 0 {
		return e.Detail
	}
	var b strings.Builder
	b.WriteString(e.Detail)
	for _, f := range e.Fields {
		b.WriteString("\n  ")
		b.WriteString(f.String())
	}
	return b.String()
}

// Unwrap returns the wrapped cause, if any.
func (e *Error) Unwrap() error { return e.cause }

// String is the field as one line of text.
func (f Field) String() string {
	at := f.Path
	if f.Line > 0 {
		at = fmt.Sprintf("%s (line %d)", f.Path, f.Line)
	}
	if f.Value != nil {
		return fmt.Sprintf("%s: %s (got %v)", at, f.Message, f.Value)
	}
	return at + ": " + f.Message
}

// CodeOf returns the code of the first Error in err's chain, or [Internal].
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// Is reports whether err carries the code.
func Is(err error, code Code) bool { return err != nil && CodeOf(err) == code }
