// Package idempotency reads the keys that name logical calls, and admits the attempts
// of one call one after the other.
package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"

	"github.com/tandem-tune/tandem/internal/problem"
)

// The headers of a call: the key that all its attempts show, and the mark of an answer
// that an earlier attempt got.
const (
	KeyHeader    = "Idempotency-Key"
	ReplayHeader = "Idempotency-Replayed"
)

const maxKey = 128

// KeyOf returns the key of the request; empty where it has none. The error is invalid.
func KeyOf(r *http.Request) (string, error) {
	keys := r.Header.Values(KeyHeader)
	if len(keys) == 0 {
		return "", nil
	}
	key, invisible := keys[0], func(c rune) bool { return c <= ' ' || c > '~' }
	if len(keys) > 1 || key == "" || len(key) > maxKey || strings.ContainsFunc(key, invisible) {
		return "", problem.WithFields("the request has a fault", []problem.Field{
			{Path: KeyHeader, Message: "must be one key of 1 to 128 visible ASCII characters"}})
	}
	return key, nil
}

// Hash identifies a request by its method, query and body, and by the path as the router
// reads it. The lengths keep these parts apart.
func Hash(r *http.Request, path string, body []byte) string {
	hash := sha256.New()
	for _, part := range [][]byte{[]byte(r.Method), []byte(path), []byte(r.URL.RawQuery), body} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Attempts admits the attempts of one call one after the other. A client whose
// connection broke calls again while the first attempt may still be at work. The second
// must find the answer of the first, not the state that the first is about to leave.
type Attempts struct {
	mutex sync.Mutex
	// inside holds, for each key with an attempt under way, a channel that is
	// closed when that attempt has ended.
	inside map[string]chan struct{}
}

// NewAttempts returns Attempts of which none is under way.
func NewAttempts() *Attempts { return &Attempts{inside: make(map[string]chan struct{})} }

// Enter waits until no other attempt with the key is under way, and returns
// the function that ends this one. The error is the context's.
func (a *Attempts) Enter(ctx context.Context, key string) (leave func(), err error) {
	ended := make(chan struct{})
	for {
		a.mutex.Lock()
		other, busy := a.inside[key]
		if !busy {
			a.inside[key] = ended
		}
		a.mutex.Unlock()
		if !busy {
			return func() { a.leave(key, ended) }, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (a *Attempts) leave(key string, ended chan struct{}) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.inside, key)
	close(ended)
}
