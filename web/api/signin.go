package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/account"
	"github.com/tandem-tune/tandem/web/audit"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/guard"
	"github.com/tandem-tune/tandem/web/oidc"
)

// SignIn is an identity provider.
type SignIn interface {
	Issuer() string
	Start(ctx context.Context, redirect string) (address string, attempt auth.Secret, err error)
	Finish(ctx context.Context, redirect string, attempt auth.Secret, state, code string) (oidc.Person, error)
	Device(ctx context.Context) (protocol.DeviceSignIn, error)
	Poll(ctx context.Context, code string) (person oidc.Person, waits bool, err error)
}

// signInRoutes are the routes of signing in with an identity provider, and of users.
func (s accessAPI) signInRoutes() []route {
	const provider, device, users = sessionPath + "/provider", sessionPath + "/device", prefix + "/users"
	return []route{
		{"GET", provider, guard.Everybody, 200, guard.Call, "get-provider", "Say which identity provider signs people in", handle(s.server, s.provider), nil},
		{"POST", provider, guard.Everybody, 200, guard.Secret, "start-sign-in", "Begin to sign in with the identity provider, in a browser", handle(s.server, s.startSignIn), nil},
		{"POST", provider + "/finish", guard.Everybody, 204, guard.Secret, "finish-sign-in", "Start a browser's session with what the identity provider answered", handle(s.server, s.finishSignIn), nil},
		{"POST", device, guard.Everybody, 200, guard.Secret, "start-device-sign-in", "Begin to sign in with the identity provider, in a browser elsewhere", handle(s.server, s.startDevice), nil},
		{"POST", device + "/token", guard.Everybody, 200, guard.Secret, "finish-device-sign-in", "Get the token of who has signed in elsewhere", handle(s.server, s.finishDevice), nil},
		{"GET", prefix + "/audit", guard.Admins, 200, guard.Call, "list-audit", "Get the newest lines of the audit log, the oldest first", handle(s.server, s.listAudit), nil},
		{"GET", users, guard.Admins, 200, guard.Call, "list-users", "List the users who have tokens or have signed in", handle(s.server, s.listUsers), nil},
		{"DELETE", users + "/{user}", guard.Admins, 204, guard.Secret, "remove-user", "End all tokens and sessions of a user, and forget its identity; its studies stay", handle(s.server, remove[UserRef](s.accounts().Remove)), nil},
	}
}

const (
	// attemptCookie holds a browser's attempt to sign in, attemptLife how long it has.
	attemptCookie = "tandem_signin"
	attemptLife   = 10 * time.Minute
	// deviceLife is how long a token is valid that was had with a device code.
	deviceLife = 7 * 24 * time.Hour
)

// visit is what a sign-in has to know of its request.
type visit struct {
	from, redirect string
	secure         bool
	attempt        auth.Secret
}

// Resolve notes where the request comes from. The page /login takes the provider's answer.
func (v *visit) Resolve(ctx huma.Context) []error {
	r, _ := humachi.Unwrap(ctx)
	v.from, v.secure = r.RemoteAddr, auth.OverTLS(r)
	v.redirect = "http://" + r.Host + "/login"
	if v.secure {
		v.redirect = "https://" + r.Host + "/login"
	}
	if cookie, err := r.Cookie(v.cookie("", 0).Name); err == nil {
		v.attempt = auth.Secret(cookie.Value)
	}
	return nil
}

// cookie returns the cookie of an attempt. The page that the provider leads back to sends
// it on, so it needs to come with requests of our own pages only.
func (v *visit) cookie(value string, life time.Duration) *http.Cookie {
	cookie := auth.NewCookie(value, v.secure)
	cookie.Name, cookie.MaxAge = cookie.Name[:len(cookie.Name)-len(auth.SessionCookie)]+attemptCookie, int(life.Seconds())
	return cookie
}

func (s accessAPI) provider(context.Context, *nothing) (*jsonAnswer[protocol.SignInProvider], error) {
	return answered(protocol.SignInProvider{Issuer: s.signing.Issuer()}, nil)
}

type startAnswer struct {
	SetCookie string `header:"Set-Cookie"`
	Body      protocol.SignInStart
}

func (s accessAPI) startSignIn(ctx context.Context, input *visit) (*startAnswer, error) {
	address, attempt, err := s.signing.Start(ctx, input.redirect)
	return &startAnswer{input.cookie(attempt.Reveal(), attemptLife).String(), protocol.SignInStart{Address: address}}, err
}

type finishInput struct {
	visit
	Body protocol.SignInFinish
}

type cookiesAnswer struct {
	SetCookie []string `header:"Set-Cookie"`
}

func (s accessAPI) finishSignIn(ctx context.Context, input *finishInput) (*cookiesAnswer, error) {
	person, err := s.signing.Finish(ctx, input.redirect, input.attempt, input.Body.State, input.Body.Code)
	if err != nil {
		return nil, s.Limits.TakeSignIn(input.from, err)
	}
	_, token, err := s.accounts().Welcome(ctx, person, auth.SessionLife)
	if err != nil {
		return nil, err
	}
	secret, session, err := s.Authenticator.StartSession(ctx, token)
	if err != nil {
		return nil, errors.Join(err, s.Authenticator.Delete(ctx, token.ID))
	}
	cookie := auth.NewCookie(secret.Reveal(), input.secure)
	cookie.Expires = *session.Expires
	return &cookiesAnswer{[]string{cookie.String(), input.cookie("", -time.Second).String()}}, nil
}

func (s accessAPI) startDevice(ctx context.Context, _ *nothing) (*jsonAnswer[protocol.DeviceSignIn], error) {
	return answered(s.signing.Device(ctx))
}

type deviceInput struct {
	visit
	Body protocol.DevicePoll
}

func (s accessAPI) finishDevice(ctx context.Context, input *deviceInput) (*jsonAnswer[protocol.DeviceToken], error) {
	person, waits, err := s.signing.Poll(ctx, input.Body.DeviceCode)
	if err != nil || waits {
		return answered(protocol.DeviceToken{}, s.Limits.TakeSignIn(input.from, err))
	}
	secret, token, err := s.accounts().Welcome(ctx, person, deviceLife)
	return answered(protocol.DeviceToken{Issued: &protocol.IssuedToken{TokenView: viewOf(token), Token: secret}}, err)
}

// accounts are the users that tokens and the identity provider make.
func (s accessAPI) accounts() account.Users {
	return account.Users{Authenticator: s.Authenticator, Tokens: s.tokens, Identities: s.studies, Audit: s.AuditSignIn}
}

type userList struct {
	Users []protocol.UserView `json:"users"`
}

func (s accessAPI) listUsers(ctx context.Context, _ *nothing) (*jsonAnswer[userList], error) {
	list, err := s.accounts().List(ctx)
	return answered(userList{Users: list}, err)
}

type auditInput struct {
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"200" doc:"how many lines at most"`
}

type auditList struct {
	Entries []audit.Entry `json:"entries"`
}

func (s accessAPI) listAudit(_ context.Context, input *auditInput) (answer *jsonAnswer[auditList], err error) {
	list := []audit.Entry{}
	if s.auditLog != nil {
		list, err = s.auditLog(input.Limit)
	}
	return answered(auditList{Entries: orEmpty(list)}, err)
}
