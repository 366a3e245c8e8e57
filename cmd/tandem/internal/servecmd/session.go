package servecmd

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/auth"
)

// unusedTime is how long a server that ends with its last session waits for another one.
const unusedTime = 5 * time.Second

// users counts the sessions of programs on this machine.
type users struct {
	mutex sync.Mutex
	count int
	ended bool
	// idle ends the server; nil: it does not end with its sessions.
	idle *time.Timer
}

// whileUsed is a context that ends once nobody has a session.
func (u *users) whileUsed(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.idle = time.AfterFunc(unusedTime, func() {
		u.mutex.Lock()
		defer u.mutex.Unlock()
		if u.count == 0 {
			u.ended = true
			cancel()
		}
	})
	return ctx
}

// enter begins a session; false: the server ends.
func (u *users) enter() bool {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if !u.ended {
		u.count++
	}
	return !u.ended
}

// leave ends a session.
func (u *users) leave() {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.count--; u.count == 0 && u.idle != nil {
		u.idle.Reset(unusedTime)
	}
}

// opening is the first line of a session's answer.
type opening struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	// CA is the file of the authority that signed the server's certificate, if it made one.
	CA string `json:"ca,omitempty"`
}

// session tells the server's address and an admin token, which is revoked once the caller
// hangs up or the server ends. An error was not answered yet.
func (s *server) session(w http.ResponseWriter, r *http.Request, by maker) error {
	p := s.process
	if !p.users.enter() {
		return problem.New(problem.Unavailable, "the server ends, as nobody used it")
	}
	defer p.users.leave()
	secret, token, err := issueLogged(r.Context(), s.store, s.audit, auth.Request{Name: runTokenName, Scope: auth.Admin, Life: runTokenLife}, by)
	if err != nil {
		return err
	}
	defer func() {
		if err := p.RevokeRunToken(context.WithoutCancel(r.Context()), token); err != nil {
			p.options.Logger.Warn("the token of a session that is over was not revoked", "error", err)
		}
	}()
	first := opening{URL: p.URL(), Token: secret}
	if p.own != nil {
		first.CA = p.own.File()
	}
	stream := http.NewResponseController(w)
	_ = errors.Join(stream.SetReadDeadline(time.Time{}), stream.SetWriteDeadline(time.Time{})) // a socket takes them
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = errors.Join(json.NewEncoder(w).Encode(first), stream.Flush()) // who hung up is seen below
	<-r.Context().Done()
	return nil
}
