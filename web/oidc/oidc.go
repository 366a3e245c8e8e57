// Package oidc signs people in whom an OpenID provider knows: in a browser by an
// authorization code with PKCE, elsewhere by a device code (RFC 8628).
package oidc

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
)

// patience bounds each request to the provider.
const patience = 10 * time.Second

// algorithms sign the ID tokens that are believed: none without a key, and none with a
// shared one.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// Provider signs people in. It is safe for concurrent use. It asks the provider nothing
// before somebody signs in, so that the server starts without it.
type Provider struct {
	rules  Rules
	client *http.Client
	now    func() time.Time

	mutex sync.Mutex
	found *discovered
}

// discovered is what the provider says of itself.
type discovered struct {
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	config   oauth2.Config
}

// New returns the provider of the rules, which were checked. client is nil for one of our own.
func New(rules Rules, client *http.Client, now func() time.Time) *Provider {
	if client == nil {
		client = &http.Client{Timeout: patience}
	}
	return &Provider{rules: rules, client: client, now: now}
}

// Issuer is the provider's address.
func (p *Provider) Issuer() string { return p.rules.Issuer }

// secure reports whether secrets may go to the address: by TLS, or to this machine.
func secure(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return false
	}
	ip := net.ParseIP(parsed.Hostname())
	local := parsed.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	return parsed.Scheme == "https" || parsed.Scheme == "http" && local
}

// discover returns what the provider says of itself, asked for once.
func (p *Provider) discover(ctx context.Context) (*discovered, error) {
	p.mutex.Lock()
	found := p.found
	p.mutex.Unlock()
	if found != nil {
		return found, nil
	}
	provider, err := oidc.NewProvider(p.through(context.WithoutCancel(ctx)), p.rules.Issuer)
	if err != nil {
		return nil, problem.New(problem.Unavailable, "the identity provider %s does not answer as one: %w", p.rules.Issuer, err)
	}
	endpoint := provider.Endpoint()
	for _, one := range []string{endpoint.AuthURL, endpoint.TokenURL} {
		if !secure(one) {
			return nil, problem.New(problem.Unavailable, "the identity provider names the address %q, which has no TLS", one)
		}
	}
	found = &discovered{
		provider: provider,
		verifier: provider.Verifier(&oidc.Config{ClientID: p.rules.Client, SupportedSigningAlgs: algorithms, Now: p.now}),
		config:   oauth2.Config{ClientID: p.rules.Client, ClientSecret: p.rules.Secret.Reveal(), Endpoint: endpoint, Scopes: []string{oidc.ScopeOpenID, "profile", "email"}},
	}
	p.mutex.Lock()
	p.found = found
	p.mutex.Unlock()
	return found, nil
}

// through makes the libraries use our client.
func (p *Provider) through(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

// derive returns a part of an attempt to sign in. The browser keeps the attempt in a
// cookie, and the server keeps nothing: state, nonce and verifier are all derived.
func derive(attempt access.Secret, part string) string {
	mac := hmac.New(sha256.New, []byte(attempt.Reveal()))
	mac.Write([]byte(part))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Start returns the address at which a browser signs in, and the attempt that it keeps.
func (p *Provider) Start(ctx context.Context, redirect string) (address string, attempt access.Secret, err error) {
	found, err := p.discover(ctx)
	if err != nil {
		return "", "", err
	}
	attempt = access.Secret(rand.Text() + rand.Text())
	config := found.config
	config.RedirectURL = redirect
	return config.AuthCodeURL(derive(attempt, "state"), oidc.Nonce(derive(attempt, "nonce")), oauth2.S256ChallengeOption(derive(attempt, "verifier"))), attempt, nil
}

// errSignIn is the one answer to everything that a stranger may have made up.
func errSignIn(cause error) error {
	return problem.New(problem.Unauthorized, "the sign-in with the identity provider did not end well: begin again (%w)", cause)
}

// Finish returns who has signed in with the code that the provider sent the browser back with.
func (p *Provider) Finish(ctx context.Context, redirect string, attempt access.Secret, state, code string) (Person, error) {
	if attempt == "" || !hmac.Equal([]byte(state), []byte(derive(attempt, "state"))) {
		return Person{}, errSignIn(errors.New("it began in another browser, or too long ago"))
	}
	found, err := p.discover(ctx)
	if err != nil {
		return Person{}, err
	}
	config := found.config
	config.RedirectURL = redirect
	token, err := config.Exchange(p.through(ctx), code, oauth2.VerifierOption(derive(attempt, "verifier")))
	if err != nil {
		return Person{}, refusal(err)
	}
	return p.person(ctx, found, token, derive(attempt, "nonce"))
}

// refusal is a provider's refusal of a code, or that it did not answer.
func refusal(err error) error {
	var told *oauth2.RetrieveError
	if errors.As(err, &told) && told.Response.StatusCode < http.StatusInternalServerError {
		return errSignIn(fmt.Errorf("the provider says %q", told.ErrorCode))
	}
	return problem.New(problem.Unavailable, "the identity provider does not answer: %w", err)
}

// Device begins a sign-in on another device.
func (p *Provider) Device(ctx context.Context) (protocol.DeviceSignIn, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return protocol.DeviceSignIn{}, err
	}
	if !secure(found.config.Endpoint.DeviceAuthURL) {
		return protocol.DeviceSignIn{}, problem.New(problem.Unavailable, "the identity provider has no device codes: sign in in a browser, or have an administrator make a token")
	}
	begun, err := found.config.DeviceAuth(p.through(ctx))
	if err != nil {
		return protocol.DeviceSignIn{}, problem.New(problem.Unavailable, "the identity provider gives no device code: %w", err)
	}
	return protocol.DeviceSignIn{
		DeviceCode: begun.DeviceCode, UserCode: begun.UserCode, Address: begun.VerificationURI, Complete: begun.VerificationURIComplete,
		Seconds: max(0, begun.Expiry.Sub(p.now()).Seconds()), Interval: float64(max(begun.Interval, 1)),
	}, nil
}

// Poll returns who has signed in with the device code; waits is true while nobody has.
func (p *Provider) Poll(ctx context.Context, code string) (person Person, waits bool, err error) {
	found, err := p.discover(ctx)
	if err != nil {
		return Person{}, false, err
	}
	token, err := found.config.Exchange(p.through(ctx), "", // RFC 6749, 3.2: a parameter without a value counts as left out
		oauth2.SetAuthURLParam("grant_type", "urn:ietf:params:oauth:grant-type:device_code"), oauth2.SetAuthURLParam("device_code", code))
	var told *oauth2.RetrieveError
	if errors.As(err, &told) && (told.ErrorCode == "authorization_pending" || told.ErrorCode == "slow_down") {
		return Person{}, true, nil
	}
	if err != nil {
		return Person{}, false, refusal(err)
	}
	person, err = p.person(ctx, found, token, "")
	return person, false, err
}

// person returns whom the ID token is about, if the rules let it in. An empty nonce is
// that of a device, which has none.
func (p *Provider) person(ctx context.Context, found *discovered, token *oauth2.Token, nonce string) (Person, error) {
	text, _ := token.Extra("id_token").(string)
	id, err := found.verifier.Verify(p.through(ctx), text)
	if err != nil {
		return Person{}, errSignIn(err)
	}
	if !hmac.Equal([]byte(id.Nonce), []byte(nonce)) {
		return Person{}, errSignIn(errors.New("the ID token is of another sign-in"))
	}
	claims := map[string]json.RawMessage{}
	if err := id.Claims(&claims); err != nil {
		return Person{}, errSignIn(err)
	}
	var party string
	if json.Unmarshal(claims["azp"], &party); len(id.Audience) > 1 && party != p.rules.Client { //nolint:errcheck // absent is empty
		return Person{}, errSignIn(errors.New("the ID token is for another client"))
	}
	if claims[p.rules.UserClaim] == nil && found.provider.UserInfoEndpoint() != "" {
		info, err := found.provider.UserInfo(p.through(ctx), oauth2.StaticTokenSource(token))
		if err != nil || info.Subject != id.Subject {
			return Person{}, errSignIn(fmt.Errorf("the provider does not say who it is: %w", err))
		}
		more := map[string]json.RawMessage{}
		if err := info.Claims(&more); err != nil {
			return Person{}, errSignIn(err)
		}
		for name, value := range more {
			if claims[name] == nil {
				claims[name] = value
			}
		}
	}
	return p.rules.admit(strings.TrimSpace(id.Subject), claims)
}
