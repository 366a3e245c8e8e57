package auth

import (
	"net/http"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// SessionCookie is the cookie that holds a browser's session. Over TLS its name has a
// prefix: browsers then take it from this host alone and send it over TLS alone,
// whatever another server under the same domain may set.
const (
	SessionCookie = "tandem_session"
	hostPrefix    = "__Host-"
)

// OverTLS reports whether the client talks TLS to this server or to the proxy before
// it. Every proxy is believed here: it only makes cookies stricter.
func OverTLS(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// NewCookie returns the cookie of a session, for a browser that talks TLS or not.
func NewCookie(value string, secure bool) *http.Cookie {
	name := SessionCookie
	if secure {
		name = hostPrefix + name
	}
	return &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode}
}

// SessionOf returns the secret of the session in the request's cookie.
func SessionOf(r *http.Request) (secret Secret, given bool) {
	cookie, err := r.Cookie(NewCookie("", OverTLS(r)).Name)
	if err != nil {
		return "", false
	}
	return Secret(cookie.Value), true
}

// Identify returns the token that the request shows. It prefers a header to a cookie,
// and does not try the other if that is wrong. The error is unauthorized.
func (a *Authenticator) Identify(r *http.Request) (Token, error) {
	if scheme, secret, given := headerOf(r); given {
		if !strings.EqualFold(scheme, "Bearer") {
			return Token{}, problem.New(problem.Unauthorized, "send the token as Authorization: Bearer TOKEN")
		}
		return a.Token(r.Context(), secret)
	}
	if secret, given := SessionOf(r); given {
		return a.Session(r.Context(), secret)
	}
	return Token{}, problem.New(problem.Unauthorized, "this takes a token: send it as Authorization: Bearer TOKEN")
}

// Guess returns the token that the request shows, if [Authenticator.Recognize] does.
func (a *Authenticator) Guess(r *http.Request) (Token, bool) {
	_, secret, given := headerOf(r)
	if !given {
		secret, _ = SessionOf(r)
	}
	return a.Recognize(secret)
}

// headerOf returns what the Authorization header says.
func headerOf(r *http.Request) (scheme string, secret Secret, given bool) {
	header := r.Header.Get("Authorization")
	scheme, text, _ := strings.Cut(header, " ")
	return scheme, Secret(strings.TrimSpace(text)), header != ""
}
