package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// silence is how long a stream may stand still: the server sends a sign of
// life on an event stream every 15 seconds.
const silence = 45 * time.Second

// errSilent is why an attempt was given up.
var errSilent = errors.New("it says nothing any more")

// watch ends an attempt in which nothing happens for too long.
type watch struct {
	span   time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
	cause  func() error // why the attempt was ended, if it was
}

// watched returns the context of an attempt that ends by itself after the span,
// unless a transfer moves.
func watched(ctx context.Context, span time.Duration) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &watch{
		span: span, cancel: cancel, timer: time.AfterFunc(span, func() { cancel(errSilent) }),
		cause: func() error { return context.Cause(ctx) },
	}
}

func (w *watch) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// sending lets each piece of a long upload put the end off, and remembers if
// it was the reading of it that failed.
func (w *watch) sending(sent *http.Request, long bool) *source {
	if !long || sent.ContentLength == 0 {
		return nil
	}
	from := &source{ReadCloser: sent.Body, watch: w}
	sent.Body = from
	return from
}

// source is what is uploaded.
type source struct {
	io.ReadCloser
	watch  *watch
	mutex  sync.Mutex
	closed bool
	failed error
}

// Read reads a piece.
func (s *source) Read(into []byte) (int, error) {
	count, err := s.ReadCloser.Read(into)
	s.watch.timer.Reset(s.watch.span)
	if err == nil || errors.Is(err, io.EOF) {
		return count, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.closed {
		s.failed = err
	}
	return count, err
}

// Close closes it; what reading fails with from then on does not count.
func (s *source) Close() error {
	s.mutex.Lock()
	s.closed = true
	s.mutex.Unlock()
	return s.ReadCloser.Close()
}

// err is why it could not be read, if that is so.
func (s *source) err() error {
	if s == nil {
		return nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.failed
}

// receiving watches a download for as long as somebody waits for it.
func (w *watch) receiving(answer *http.Response) io.ReadCloser {
	w.timer.Stop()
	return &sink{answer.Body, w, answer.ContentLength}
}

// sink is what is downloaded.
type sink struct {
	io.ReadCloser
	watch *watch
	size  int64
}

// Size is how many bytes the server said there are; -1: it did not say.
func (s *sink) Size() int64 { return s.size }

// Read reads a piece.
func (s *sink) Read(into []byte) (int, error) {
	s.watch.timer.Reset(s.watch.span)
	defer s.watch.timer.Stop()
	count, err := s.ReadCloser.Read(into)
	if err != nil && errors.Is(s.watch.cause(), errSilent) {
		err = errSilent
	}
	return count, err
}

// Close ends the download.
func (s *sink) Close() error {
	defer s.watch.end()
	return s.ReadCloser.Close()
}
