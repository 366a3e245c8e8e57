package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/web/audit"
	"github.com/tandem-tune/tandem/web/auth"
)

// sessionCookie is the cookie that holds a browser's session. Over TLS it has a
// prefix, with which browsers take it from this host alone and send it over TLS
// alone, whatever another server under the same domain may say.
const (
	sessionCookie = "tandem_session"
	hostPrefix    = "__Host-"
)

// cookieName is the session cookie's name.
func cookieName(secure bool) string {
	if secure {
		return hostPrefix + sessionCookie
	}
	return sessionCookie
}

// overTLS reports whether the browser talks TLS, to this server or to the proxy
// before it. A proxy that says so is believed: it only makes cookies stricter.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// sessionOf is the session's secret in the request's cookie.
func sessionOf(r *http.Request) (secret auth.Secret, given bool) {
	cookie, err := r.Cookie(cookieName(overTLS(r)))
	if err != nil {
		return "", false
	}
	return auth.Secret(cookie.Value), true
}

// signInRequest is what a browser signs in with.
type signInRequest struct {
	Token string `json:"token" maxLength:"256" doc:"the secret of an admin's, a user's or a viewer's token"`
}

type signInInput struct {
	Content[signInRequest]
	from   string
	secure bool
	// session is the one the browser has, if it was given.
	session auth.Secret
	signed  bool
}

// Resolve notes where the request comes from.
func (i *signInInput) Resolve(ctx huma.Context) []error {
	r, _ := humachi.Unwrap(ctx)
	i.from, i.secure = r.RemoteAddr, overTLS(r)
	i.session, i.signed = sessionOf(r)
	return i.Content.Resolve(ctx)
}

type cookieAnswer struct {
	SetCookie string `header:"Set-Cookie"`
}

func (s accessAPI) signIn(ctx context.Context, input *signInInput) (*cookieAnswer, error) {
	token, err := s.authenticator.Token(ctx, auth.Secret(input.Body.Token))
	if err != nil {
		return nil, s.takeSignIn(input.from, err)
	}
	if token.Scope == auth.Link { // which strangers may have
		if err := s.takeToken(token); err != nil {
			return nil, err
		}
	}
	if s.seesAlready(ctx, input, token) {
		return &cookieAnswer{}, nil
	}
	secret, session, err := s.authenticator.StartSession(ctx, token)
	if err != nil {
		return nil, err
	}
	entry := entryOf(ctx, audit.Done)
	entry.Token, entry.Who = token.ID, whoOf(token)
	if _, err := s.noteVisit(entry, token); err != nil {
		return nil, errors.Join(err, s.authenticator.EndSession(ctx, session))
	}
	cookie := newCookie(secret.Reveal(), input.secure)
	cookie.Expires = *session.Expires
	return &cookieAnswer{SetCookie: cookie.String()}, nil
}

// seesAlready reports whether the browser has a session that sees what the link
// opens: somebody who is signed in and follows a link stays who they are.
func (s accessAPI) seesAlready(ctx context.Context, input *signInInput, token auth.Token) bool {
	if token.Scope != auth.Link || !input.signed {
		return false
	}
	present, err := s.authenticator.Session(ctx, input.session)
	if err != nil || present.Scope == auth.Link {
		return false
	}
	_, err = s.studies.Study(study.WithCaller(ctx, callerOf(present)), token.Study)
	return err == nil
}

func newCookie(value string, secure bool) *http.Cookie {
	return &http.Cookie{Name: cookieName(secure), Value: value, Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode}
}

type signOutInput struct{ secure bool }

// Resolve notes which cookie the browser has.
func (i *signOutInput) Resolve(ctx huma.Context) []error {
	r, _ := humachi.Unwrap(ctx)
	i.secure = overTLS(r)
	return nil
}

func (s accessAPI) signOut(ctx context.Context, input *signOutInput) (*cookieAnswer, error) {
	if err := s.authenticator.EndSession(ctx, tokenOf(ctx)); err != nil {
		return nil, err
	}
	cookie := newCookie("", input.secure)
	cookie.MaxAge = -1
	return &cookieAnswer{SetCookie: cookie.String()}, nil
}

// whoAmI says whose token this is, for clients that only have the token.
func (s accessAPI) whoAmI(ctx context.Context, _ *nothing) (*jsonAnswer[protocol.Identity], error) {
	token := tokenOf(ctx)
	identity := protocol.Identity{Name: token.Name, Scope: string(token.Scope), Study: token.Study}
	switch token.Scope {
	case auth.Admin:
		identity.Owner = study.Administrators
	case auth.User:
		identity.Owner = token.Name
	case auth.Worker, auth.Viewer, auth.Link:
	}
	return answered(identity, nil)
}
