package servecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/beside"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/auth"
)

// What is answered beside the server.
const (
	localTokens = "/api/v1/tokens"
	// localSessions answers with the server's address and an admin token, which is
	// valid until who asked hangs up.
	localSessions = "/api/v1/sessions"
	// maxLocal bounds a request's body.
	maxLocal = 64 << 10
)

// answerLocally makes tokens for who owns the data folder; where that cannot be
// done, the server does without.
func (s *server) answerLocally() {
	var err error
	if s.local, err = beside.Open(s.process.options.Data, s.localHandler()); err != nil {
		s.process.options.Logger.Warn("tokens cannot be made beside this server, without a token", "error", err)
	}
}

// localHandler makes tokens and sessions, and nothing else.
func (s *server) localHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := error(problem.New(problem.NotFound, "only tokens and sessions are made here"))
		if from, known := beside.Asker(r); known && r.Method == http.MethodPost {
			by := maker{who: fmt.Sprintf("user %d on the server's machine", from.Uid), from: fmt.Sprintf("process %d", from.Pid)}
			switch r.URL.Path {
			case localTokens:
				err = s.tokenBeside(w, r, by)
			case localSessions:
				err = s.session(w, r, by)
			}
		}
		if err != nil {
			refuseLocal(w, err)
		}
	})
}

// tokenBeside makes a token. An error was not answered yet.
func (s *server) tokenBeside(w http.ResponseWriter, r *http.Request, by maker) error {
	var ask protocol.TokenRequest
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLocal))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&ask); err != nil {
		return problem.New(problem.Invalid, "this is no request for a token: %w", err)
	}
	request, err := requestOf(ask)
	if err != nil {
		return err
	}
	secret, token, err := issueLogged(r.Context(), s.store, s.audit, request, by)
	if err != nil {
		s.process.options.Logger.Error("make a token", "error", err)
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(issuedOf(secret, token)) // who hung up has no token
	return nil
}

// refuseLocal answers with a problem document, as the client reads it.
func refuseLocal(w http.ResponseWriter, err error) {
	told := &problem.Error{Code: problem.Internal, Detail: "the server failed on this request: its log says why"}
	errors.As(err, &told)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(protocol.StatusOf(told.Code))
	_ = json.NewEncoder(w).Encode(map[string]any{"code": told.Code, "detail": told.Detail, "errors": told.Fields})
}

// createTokenBeside has the server make a token that has the data folder now; the
// error is [beside.ErrNone] if none has.
func createTokenBeside(ctx context.Context, data string, ask protocol.TokenRequest) (protocol.IssuedToken, error) {
	connection, err := beside.Dial(ctx, data)
	if err != nil {
		return protocol.IssuedToken{}, err
	}
	defer connection.Close()
	client, err := rest.New(rest.Options{URL: "http://localhost", Patience: -1, UserAgent: "tandem/" + term.Version(), HTTPClient: &http.Client{
		Timeout:   2 * beside.Time,
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return connection, nil }},
	}})
	if err != nil {
		return protocol.IssuedToken{}, err
	}
	return client.CreateToken(ctx, ask)
}

// requestOf is what a token is made from.
func requestOf(ask protocol.TokenRequest) (auth.Request, error) {
	if !(ask.TTLSeconds >= 0 && ask.TTLSeconds <= maxTokenSeconds) {
		return auth.Request{}, problem.WithFields("the token is not valid", []problem.Field{{Path: "ttl_seconds", Value: ask.TTLSeconds, Message: "must be from 0, for a token that never expires, to ten years"}})
	}
	return auth.Request{Name: ask.Name, Scope: auth.Scope(ask.Scope), Worker: ask.Worker, Life: time.Duration(ask.TTLSeconds * float64(time.Second))}, nil
}

// maxTokenSeconds is the longest that a token may live that ends.
const maxTokenSeconds = 10 * 365 * 24 * 60 * 60

// issuedOf is a token as who asked for it is shown it, this once.
func issuedOf(secret string, token auth.Token) protocol.IssuedToken {
	return protocol.IssuedToken{Token: secret, TokenView: protocol.TokenView{
		ID: token.ID, Name: token.Name, Scope: string(token.Scope), Worker: token.Worker, Created: token.Created, Expires: token.Expires,
	}}
}
