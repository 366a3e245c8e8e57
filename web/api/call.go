package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study"
)

const (
	// maxBody bounds the body of a call.
	maxBody = 1 << 20
	// maxSignIn bounds that of a call about a session: it holds a token at most.
	maxSignIn = 4 << 10
	// bodyTime is how long a client may take to send it.
	bodyTime = 30 * time.Second

	keyHeader    = "Idempotency-Key"
	replayHeader = "Idempotency-Replayed"
	maxKey       = 128
)

// call reads the body of a call, answers it from an earlier attempt if there
// was one, and else lets it through.
func (s *server) call(w http.ResponseWriter, r *http.Request, found route) {
	if found.mutates() {
		taken := s.roomFor(r, found)
		defer taken.give()
		body, err := s.readBody(w, r, found.maxBody(), taken)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		if found.kind != studyFile && len(body) > 0 {
			if err := takeJSON(r, body); err != nil {
				s.refuse(w, r, err)
				return
			}
		}
		r = r.WithContext(withBody(r.Context(), body))
		r.Body = io.NopCloser(bytes.NewReader(body))
		if keys := r.Header.Values(keyHeader); len(keys) > 0 && found.kind != secret {
			ctx, leave := s.replay(w, r, found, body)
			if ctx == nil {
				return
			}
			defer leave()
			r = r.WithContext(ctx)
		}
	}
	s.mux.ServeHTTP(w, r)
}

// readBody reads the whole body within its bounds. It takes room for what has
// come, whatever was announced.
func (s *server) readBody(w http.ResponseWriter, r *http.Request, most int64, taken *room) ([]byte, error) {
	if r.ContentLength > most {
		w.Header().Set("Connection", "close") // what is left of it is not worth reading
		return nil, tooLarge(most)
	}
	whole := most
	if r.ContentLength >= 0 {
		whole = r.ContentLength
	}
	in, body := http.MaxBytesReader(w, r.Body, most), make([]byte, 0, smallBody)
	for {
		if len(body) == cap(body) {
			larger := min(2*int64(cap(body)), whole+1) // one more: only behind the last byte is its end
			if !taken.grow(larger) {
				return nil, s.limited("bodies", problem.New(problem.Unavailable, "too much is being sent to this server at once: try again"))
			}
			body = append(make([]byte, 0, larger), body...)
		}
		count, err := in.Read(body[len(body):cap(body)])
		body = body[:len(body)+count]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, readFault(err)
		}
	}
	// The guard's deadline must not outlast the body: it would end a long poll.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return body, nil
}

// readFault says what went wrong while a body was read.
func readFault(err error) error {
	var over *http.MaxBytesError
	var network net.Error
	switch {
	case errors.As(err, &over):
		return tooLarge(over.Limit)
	case errors.As(err, &network) && network.Timeout():
		return fault(http.StatusRequestTimeout, problem.Unavailable, "the body came too slowly")
	default:
		return fault(http.StatusBadRequest, problem.Invalid, "the body ended before it was whole")
	}
}

func tooLarge(limit int64) error {
	return fault(http.StatusRequestEntityTooLarge, problem.Exhausted, "the body is too large: at most %d bytes", limit)
}

// takeJSON checks a body that has to be JSON. It leaves the one spelling of the
// content type that every parser behind it reads alike.
func takeJSON(r *http.Request, body []byte) error {
	if given := r.Header.Get("Content-Type"); given != "" {
		kind, _, err := mime.ParseMediaType(given)
		if err != nil || kind != "application/json" {
			return fault(http.StatusUnsupportedMediaType, problem.Invalid, "the body must be JSON: send Content-Type: application/json")
		}
	}
	r.Header.Set("Content-Type", "application/json")
	return checkBody(body)
}

// replay answers a call whose key was used before with what was answered then,
// and returns no context. Otherwise it returns one under which the use case
// keeps its answer, and a function to call after that: until then another
// attempt with the key waits. Keys of different tokens never meet.
func (s *server) replay(w http.ResponseWriter, r *http.Request, found route, body []byte) (context.Context, func()) {
	keys := r.Header.Values(keyHeader)
	if len(keys) != 1 || !visible(keys[0]) {
		s.refuse(w, r, problem.WithFields("the request has a fault", []problem.Field{
			{Path: keyHeader, Message: "must be one key of 1 to 128 visible ASCII characters"}}))
		return nil, nil
	}
	key, hash := tokenOf(r.Context()).ID+":"+keys[0], requestHash(r, body)
	leave, err := s.attempts.enter(r.Context(), key)
	if err != nil {
		s.refuse(w, r, err)
		return nil, nil
	}
	answer, known, err := s.studies.Receipt(r.Context(), key, hash)
	if err == nil && !known {
		return study.WithIdempotency(r.Context(), key, hash), leave
	}
	leave()
	if err != nil {
		s.refuse(w, r, err)
		return nil, nil
	}
	w.Header().Set(replayHeader, "true")
	if found.status == http.StatusNoContent {
		w.WriteHeader(found.status)
		return nil, nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(found.status)
	_, _ = w.Write(append(answer, '\n')) // only a client that hung up fails this
	return nil, nil
}

func visible(key string) bool {
	if key == "" || len(key) > maxKey {
		return false
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return false
		}
	}
	return true
}

// requestHash tells one request from another: the parts are told apart by
// their lengths.
func requestHash(r *http.Request, body []byte) string {
	hash := sha256.New()
	for _, part := range [][]byte{[]byte(r.Method), []byte(routePath(r)), []byte(r.URL.RawQuery), body} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}
