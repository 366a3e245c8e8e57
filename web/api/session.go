package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/web/auth"
)

// sessionCookie is the cookie that holds a browser's session.
const sessionCookie = "tandem_session"

// signInRequest is what a browser signs in with.
type signInRequest struct {
	Token string `json:"token" maxLength:"256" doc:"the secret of an admin's or a viewer's token"`
}

type signInInput struct {
	Content[signInRequest]
	from   string
	secure bool
}

// Resolve notes where the request comes from.
func (i *signInInput) Resolve(ctx huma.Context) []error {
	i.from = ctx.RemoteAddr()
	// A proxy that says so is believed: the flag only makes the cookie stricter.
	i.secure = ctx.TLS() != nil || ctx.Header("X-Forwarded-Proto") == "https"
	return i.Content.Resolve(ctx)
}

type cookieAnswer struct {
	SetCookie string `header:"Set-Cookie"`
}

func (s *server) signIn(ctx context.Context, input *signInInput) (*cookieAnswer, error) {
	if err := s.signIns.Allow(input.from); err != nil {
		return nil, err
	}
	token, err := s.authenticator.Token(ctx, auth.Secret(input.Body.Token))
	if err != nil {
		if problem.Is(err, problem.Unauthorized) {
			s.signIns.Failed(input.from)
		}
		return nil, err
	}
	secret, session, err := s.authenticator.StartSession(ctx, token)
	if err != nil {
		return nil, err
	}
	cookie := newCookie(secret.Reveal(), input.secure)
	cookie.Expires = *session.Expires
	return &cookieAnswer{SetCookie: cookie.String()}, nil
}

func newCookie(value string, secure bool) *http.Cookie {
	return &http.Cookie{Name: sessionCookie, Value: value, Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode}
}

func (s *server) signOut(ctx context.Context, _ *nothing) (*cookieAnswer, error) {
	if err := s.authenticator.EndSession(ctx, tokenOf(ctx)); err != nil {
		return nil, err
	}
	cookie := newCookie("", false)
	cookie.MaxAge = -1
	return &cookieAnswer{SetCookie: cookie.String()}, nil
}
