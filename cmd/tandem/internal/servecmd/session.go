package servecmd

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/auth"
)

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
	if !p.users.Enter() {
		return problem.New(problem.Unavailable, "the server ends, as nobody used it")
	}
	defer p.users.Leave()
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
