package api

import (
	"context"
	"errors"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/guard"
)

// signInRequest is the body of a sign-in.
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
	i.from, i.secure = r.RemoteAddr, auth.OverTLS(r)
	i.session, i.signed = auth.SessionOf(r)
	return i.Content.Resolve(ctx)
}

type cookieAnswer struct {
	SetCookie string `header:"Set-Cookie"`
}

func (s accessAPI) signIn(ctx context.Context, input *signInInput) (*cookieAnswer, error) {
	token, err := s.Authenticator.Token(ctx, auth.Secret(input.Body.Token))
	if err != nil {
		return nil, s.Limits.TakeSignIn(input.from, err)
	}
	if token.Scope == auth.Link { // which strangers may have
		if err := s.Limits.TakeToken(token); err != nil {
			return nil, err
		}
	}
	if s.seesAlready(ctx, input, token) {
		return &cookieAnswer{}, nil
	}
	secret, session, err := s.Authenticator.StartSession(ctx, token)
	if err != nil {
		return nil, err
	}
	if err := s.AuditSignIn(ctx, token); err != nil {
		return nil, errors.Join(err, s.Authenticator.EndSession(ctx, session))
	}
	cookie := auth.NewCookie(secret.Reveal(), input.secure)
	cookie.Expires = *session.Expires
	return &cookieAnswer{SetCookie: cookie.String()}, nil
}

// seesAlready reports whether the browser has a session that sees what the link
// opens: somebody who is signed in and follows a link stays who they are.
func (s accessAPI) seesAlready(ctx context.Context, input *signInInput, token auth.Token) bool {
	if token.Scope != auth.Link || !input.signed {
		return false
	}
	present, err := s.Authenticator.Session(ctx, input.session)
	if err != nil || present.Scope == auth.Link {
		return false
	}
	_, err = s.studies.Study(access.WithCaller(ctx, guard.CallerFor(present, access.RoleViewer)), token.Subject)
	return err == nil
}

type signOutInput struct{ secure bool }

// Resolve notes which cookie the browser has.
func (i *signOutInput) Resolve(ctx huma.Context) []error {
	r, _ := humachi.Unwrap(ctx)
	i.secure = auth.OverTLS(r)
	return nil
}

func (s accessAPI) signOut(ctx context.Context, input *signOutInput) (*cookieAnswer, error) {
	if err := s.Authenticator.EndSession(ctx, guard.TokenOf(ctx)); err != nil {
		return nil, err
	}
	cookie := auth.NewCookie("", input.secure)
	cookie.MaxAge = -1
	return &cookieAnswer{SetCookie: cookie.String()}, nil
}

// whoAmI says whose token this is, for clients that only have the token.
func (s accessAPI) whoAmI(ctx context.Context, _ *nothing) (*jsonAnswer[protocol.Identity], error) {
	token := guard.TokenOf(ctx)
	identity := protocol.Identity{Name: token.Name, Scope: string(token.Scope)}
	switch token.Scope {
	case auth.Admin:
		identity.Owner = access.Administrators
	case auth.User:
		identity.Owner = token.Name
	case auth.Link:
		identity.Study = token.Subject
	case auth.Worker, auth.Viewer, auth.Launcher, auth.Enrolment, auth.Device:
	}
	return answered(identity, nil)
}
