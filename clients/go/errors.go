package tandem

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Code says of an error what to do about it.
type Code string

// The codes of the server's protocol.
const (
	Invalid      Code = "invalid"      // the request is wrong: correct it
	Unauthorized Code = "unauthorized" // there is no valid token
	Forbidden    Code = "forbidden"    // the token does not allow this
	NotFound     Code = "not_found"    // there is no such object, or it is another user's
	Conflict     Code = "conflict"     // the object's state forbids it, or the name is taken
	LeaseLost    Code = "lease_lost"   // the trial is another worker's now: write nothing more
	Unavailable  Code = "unavailable"  // the server cannot be reached or used now
	Internal     Code = "internal"     // a defect of the server
)

// ErrStudyOver says that the study has ended and gives no trial any more.
var ErrStudyOver = errors.New("tandem: the study has ended")

// Error is what the server refused, or that there is none.
type Error struct {
	Code   Code
	Status int    // of HTTP; 0 without an answer
	Doing  string // what was tried
	Detail string // for people
	Fields []Field
	cause  error
}

// Field is one fault of a request.
type Field struct {
	// Path is the field, such as space.x.low.
	Path string `json:"path"`
	// Message says what would be right.
	Message string `json:"message"`
	// Value is what was there.
	Value any `json:"value"`
}

// Error names what was tried, why not, and every fault.
func (e *Error) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "tandem: %s: %s", e.Doing, e.Detail)
	for _, field := range e.Fields {
		fmt.Fprintf(&text, "\n  %s: %s", field.Path, field.Message)
		if field.Value != nil {
			fmt.Fprintf(&text, " (got %v)", field.Value)
		}
	}
	return text.String()
}

// Unwrap is what went wrong below, if anything did.
func (e *Error) Unwrap() error { return e.cause }

// IsCode reports whether the error is an *Error with the code.
func IsCode(err error, code Code) bool {
	var found *Error
	return errors.As(err, &found) && found.Code == code
}

func problemOf(doing string, response *http.Response) error {
	var document struct {
		Code   Code    `json:"code"`
		Detail string  `json:"detail"`
		Errors []Field `json:"errors"`
	}
	data, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20)) // what came is all there is
	if err := json.Unmarshal(data, &document); err != nil || document.Detail == "" {
		document.Detail = fmt.Sprintf("the answer was %s: %.500s", response.Status, strings.TrimSpace(string(data)))
	}
	if strings.HasPrefix(document.Detail, "the answer was") && strings.Contains(document.Detail, "HTTP request to an HTTPS server") {
		document.Detail = "the server speaks TLS: use https:// and its authority.pem (Options.CA or TANDEM_CA)"
	}
	return &Error{Code: document.Code, Status: response.StatusCode, Doing: doing, Detail: document.Detail, Fields: document.Errors}
}
