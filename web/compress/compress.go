// Package compress answers: may this answer go out compressed, and how?
//
// It knows HTTP's negotiation of gzip and nothing of what is sent. Its invariant:
// an answer is sent whole in one coding, or cut short where its handler was.
package compress

import (
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

// Accepts reports whether the client takes an answer compressed with gzip.
func Accepts(r *http.Request) bool {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, weight, _ := strings.Cut(strings.ReplaceAll(one, " ", ""), ";")
		if strings.EqualFold(coding, "gzip") {
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ToLower(weight), "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}

// worth is from how many bytes on an answer is compressed: a shorter one fits into
// one or two packets as it is.
const worth = 2 << 10

// Writer compresses an answer with gzip if it is long. Close it when the handler
// has returned, and not when it panicked: what was begun is not whole then.
type Writer struct {
	http.ResponseWriter
	status int
	held   []byte // the beginning, as long as it is short
	packed *gzip.Writer
}

// NewWriter returns a Writer for the answer to a client that accepts gzip.
func NewWriter(w http.ResponseWriter) *Writer { return &Writer{ResponseWriter: w} }

// WriteHeader notes the status; of several only the first one counts.
func (w *Writer) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write holds the beginning back until the answer is known to be long.
func (w *Writer) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.packed == nil {
		if len(w.held)+len(data) <= worth {
			w.held = append(w.held, data...)
			return len(data), nil
		}
		if err := w.begin(); err != nil {
			return 0, err
		}
	}
	return w.packed.Write(data)
}

// begin sends the headers, and what was held back.
func (w *Writer) begin() error {
	header := w.Header()
	header.Set("Content-Encoding", "gzip")
	header.Del("Content-Length")
	header.Add("Vary", "Accept-Encoding")
	w.ResponseWriter.WriteHeader(w.status)
	w.packed, _ = gzip.NewWriterLevel(w.ResponseWriter, gzip.BestSpeed) // the level is a valid one
	_, err := w.packed.Write(w.held)
	return err
}

// Close sends what is left.
func (w *Writer) Close() error {
	if w.packed != nil {
		return w.packed.Close()
	}
	if w.status == 0 {
		return nil // nothing was answered
	}
	w.Header().Add("Vary", "Accept-Encoding")
	w.ResponseWriter.WriteHeader(w.status)
	_, err := w.ResponseWriter.Write(w.held)
	return err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
