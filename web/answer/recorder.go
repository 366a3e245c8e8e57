package answer

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Recorder remembers the status of an answer; 0 before it is begun.
type Recorder struct {
	http.ResponseWriter
	Status int
}

// WriteHeader notes the status; of several only the first one counts.
func (w *Recorder) WriteHeader(status int) {
	if w.Status != 0 {
		return
	}
	w.Status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write notes that the answer was begun.
func (w *Recorder) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *Recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Log logs the request and how it ended, but nothing that it carried.
func (w *Recorder) Log(logger *slog.Logger, r *http.Request, took time.Duration) {
	logger.LogAttrs(r.Context(), slog.LevelDebug, "request", slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.Int("status", w.Status), slog.Duration("took", took), slog.String("from", r.RemoteAddr))
}

// Recover answers a panic with status 500. It aborts an answer that was begun, so that
// nobody takes the part for the whole. It must be deferred.
func (w *Recorder) Recover(logger *slog.Logger, r *http.Request, refuse func(http.ResponseWriter, *http.Request, error)) {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	logger.LogAttrs(r.Context(), slog.LevelError, "panic", slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.String("cause", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())))
	if w.Status != 0 {
		panic(http.ErrAbortHandler)
	}
	refuse(w, r, problem.New(problem.Internal, "panic: %v", cause))
}

// Secure sets the headers that every answer carries.
func Secure(header http.Header, r *http.Request) {
	header.Set("Content-Security-Policy", "default-src 'self'; script-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	if strings.HasPrefix(r.URL.Path, "/api/") {
		header.Set("Cache-Control", "no-store")
	}
	if r.TLS != nil {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
}
