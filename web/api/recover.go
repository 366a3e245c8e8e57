package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/tandem-tune/tandem/internal/problem"
)

// witness remembers whether an answer was begun.
type witness struct {
	http.ResponseWriter
	status int
	route  string // as the monitor is told
}

// WriteHeader notes the status; of several only the first one counts.
func (w *witness) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write notes that the answer was begun.
func (w *witness) Write(data []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *witness) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// recover turns a panic into a 500, or cuts an answer that was begun short, so
// that nobody takes the part for the whole.
func (s *server) recover(w *witness, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	s.logger.LogAttrs(r.Context(), slog.LevelError, "panic", slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.String("cause", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())))
	if w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	s.refuse(w, r, problem.New(problem.Internal, "panic: %v", cause))
}
