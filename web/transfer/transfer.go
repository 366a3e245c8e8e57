// Package transfer bounds how long clients may take to send and to receive bytes, and
// how many they may send. A long transfer may go on while it keeps its pace.
package transfer

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/answer"
)

const (
	// CallTime bounds a whole call; the longest is a lease that waits 60 seconds.
	CallTime = 2 * time.Minute
	// bodyTime bounds how long a client may take to send the body of a call.
	bodyTime = 30 * time.Second
	// Stall is how long a transfer may stand still, and pace how many bytes must come
	// in that time for each upload that its sender has under way. So one upload cannot
	// hold a place with less, and many cost their sender as much each.
	Stall = 60 * time.Second
	pace  = 16 << 10
	// smallBody is the first piece of a body, which is not counted. So a short one is
	// never refused for others: connections are bounded, and take more anyway.
	smallBody = 1 << 10
)

// SetDeadlines bounds how long the client may take. A body that no handler reads must
// come within its time, too: net/http waits for it.
func SetDeadlines(w http.ResponseWriter, r *http.Request, now time.Time) {
	connection := http.NewResponseController(w)
	_ = connection.SetWriteDeadline(now.Add(CallTime + 10*time.Second)) // a connection may have no deadlines
	if r.ContentLength != 0 {
		_ = connection.SetReadDeadline(now.Add(bodyTime))
	}
}

// ReadBody reads the whole body of a call, of at most so many bytes. It asks room for
// memory as the bytes come, whatever length was announced; room may refuse.
func ReadBody(w http.ResponseWriter, r *http.Request, most int64, room func(bytes int64) error) ([]byte, error) {
	if r.ContentLength > most {
		w.Header().Set("Connection", "close") // the rest of it is not worth reading
		return nil, TooLarge(most)
	}
	whole := most
	if r.ContentLength >= 0 {
		whole = r.ContentLength
	}
	in, body := http.MaxBytesReader(w, r.Body, most), make([]byte, 0, smallBody)
	for {
		if len(body) == cap(body) {
			larger := min(2*int64(cap(body)), whole+1) // one more: the end comes after the last byte
			if err := room(larger); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, larger), body...)
		}
		count, err := in.Read(body[len(body):cap(body)])
		body = body[:len(body)+count]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, Broken(err)
		}
	}
	// The deadline of the body must not outlast it: it would end a long poll.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return body, nil
}

// Broken refuses a request whose body could not be read, and says why.
func Broken(err error) error {
	var over *http.MaxBytesError
	var network net.Error
	switch {
	case errors.As(err, &over):
		return TooLarge(over.Limit)
	case errors.As(err, &network) && network.Timeout():
		return answer.Fault(http.StatusRequestTimeout, problem.Unavailable, "the body came too slowly")
	default:
		return answer.Fault(http.StatusBadRequest, problem.Invalid, "the body ended before it was whole")
	}
}

// TooLarge refuses a body of more bytes than the limit.
func TooLarge(limit int64) error {
	return answer.Fault(http.StatusRequestEntityTooLarge, problem.Exhausted, "the body is too large: at most %d bytes", limit)
}

// Reader reads a body for as long as its sender keeps the pace.
type Reader struct {
	// Places returns how many transfers the sender has under way; nil: this one.
	Places func() int64
	// Err is why reading failed; nil at the end of the body.
	Err error

	body       io.Reader
	connection *http.ResponseController
	due        time.Time // until when the pace must be met
	left       int64     // the bytes that must come until then
}

// NewReader returns a Reader of the body that comes over the connection of w.
func NewReader(body io.Reader, w http.ResponseWriter) *Reader {
	return &Reader{body: body, connection: http.NewResponseController(w)}
}

// Read reads the bytes that come while the pace is kept.
func (p *Reader) Read(into []byte) (int, error) {
	if p.due.IsZero() || p.left <= 0 {
		p.due, p.left = time.Now().Add(Stall), pace
		if p.Places != nil {
			p.left *= p.Places()
		}
		_ = p.connection.SetReadDeadline(p.due)
		_ = p.connection.SetWriteDeadline(p.due.Add(Stall)) // for the answer
	}
	count, err := p.body.Read(into)
	p.left -= int64(count)
	if errors.Is(err, io.EOF) {
		_ = p.connection.SetReadDeadline(time.Time{})
	} else if err != nil {
		p.Err = err
	}
	return count, err
}

// Writer writes an answer for as long as its receiver takes something.
type Writer struct {
	out        io.Writer
	connection *http.ResponseController
}

// NewWriter returns a Writer of the answer.
func NewWriter(w http.ResponseWriter) Writer {
	return Writer{w, http.NewResponseController(w)}
}

// Write writes the bytes that the client takes within the time of a stall.
func (d Writer) Write(data []byte) (int, error) {
	_ = d.connection.SetWriteDeadline(time.Now().Add(Stall)) // without a connection nothing stalls
	return d.out.Write(data)
}
