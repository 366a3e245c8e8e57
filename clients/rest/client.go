// Package rest is the Go client of the study server: every call of REST v1, as
// the worker agent and the command line need them.
//
// Its one invariant: a logical call carries one Idempotency-Key through all its
// attempts, so an answer lost on the way never makes anything happen twice.
// Errors of the server come back as *problem.Error. The package decides nothing
// about studies, and prints nothing.
package rest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/access"
)

// Options are what a Client is made from.
type Options struct {
	// URL is the server's address, such as http://127.0.0.1:7171.
	URL string
	// Token is sent with every call; empty: none.
	Token string
	// HTTPClient sends the requests; nil: one of our own. It is not changed.
	HTTPClient *http.Client
	// UserAgent names the program to the server.
	UserAgent string
	// Authorities are whom the client trusts to sign the server's certificate;
	// nil: whom the machine trusts. It is ignored with an HTTPClient.
	Authorities *x509.CertPool
	// AuthorityFile names where they are from, for people.
	AuthorityFile string
	// Reread reads the authorities again once a certificate was refused, for the next
	// attempt: the server may have new ones. nil: they stay.
	Reread func() (*x509.CertPool, error)
	// Insecure allows the token to go to another machine without TLS.
	Insecure bool
	// Patience is how long a call is tried again when the server cannot be
	// reached or asks to come back later; 0: 60 seconds, negative: not at all.
	Patience time.Duration
	// Waits is told, once a call, why it is tried again; nil: nobody is.
	Waits func(why error, patience time.Duration)
}

const defaultPatience = 60 * time.Second

// Client talks to one server, about all that it has. It is safe for concurrent use.
type Client struct {
	StudyCalls
	PoolCalls
	EdgeCalls
	HookCalls
	LauncherCalls
	AccessCalls
	*caller
}

// StudyCalls are the calls about studies and their trials.
type StudyCalls struct{ *caller }

// PoolCalls are the calls about workers, leases, quotas, ground truth and tokens.
type PoolCalls struct{ *caller }

// EdgeCalls are the calls about models where they are used: devices, boards and backends.
type EdgeCalls struct{ *caller }

// LauncherCalls are the calls of launchers, and about what they start.
type LauncherCalls struct{ *caller }

// HookCalls are the calls about hooks.
type HookCalls struct{ *caller }

// AccessCalls are the calls about users and how they sign in.
type AccessCalls struct{ *caller }

// caller makes the calls, and makes them again.
type caller struct {
	base     *url.URL
	token    access.Secret
	http     *http.Client
	agent    string
	patience time.Duration
	waits    func(error, time.Duration)
	given    string // the file of the authorities
	// unlinked: links into the server's bucket lead nowhere from here; unsent: those for uploads.
	unlinked, unsent atomic.Bool
}

// New returns a Client; it does not call the server. The error is invalid for
// an address that is none, and for a token that would cross the network in
// plain text.
func New(options Options) (*Client, error) {
	base, err := url.Parse(options.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.Fragment != "" || base.User != nil {
		return nil, problem.New(problem.Invalid, "the server's address is http://HOST:PORT or https://HOST:PORT, not %q", options.URL)
	}
	if options.Token != "" && base.Scheme == "http" && !loopback(base.Hostname()) && !options.Insecure {
		return nil, problem.New(problem.Invalid,
			"the token would cross the network in plain text to %s: use an https address, or allow it with --insecure", base.Host)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	client := &caller{base: base, token: access.Secret(options.Token), agent: options.UserAgent, patience: options.Patience, waits: options.Waits, given: options.AuthorityFile}
	if client.patience == 0 {
		client.patience = defaultPatience
	}
	sender := http.Client{Transport: newTransport(options.Authorities)}
	if options.Reread != nil {
		sender.Transport = &rereading{reread: options.Reread, transport: sender.Transport, authorities: options.Authorities}
	}
	if options.HTTPClient != nil {
		sender = *options.HTTPClient
	}
	// A redirect would take the call, and perhaps the token, somewhere else.
	sender.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.http = &sender
	return &Client{StudyCalls{client}, PoolCalls{client}, EdgeCalls{client}, HookCalls{client}, LauncherCalls{client}, AccessCalls{client}, client}, nil
}

// newTransport is the standard one with room for a worker's parallel calls.
func newTransport(authorities *x509.CertPool) http.RoundTripper {
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	transport := standard.Clone()
	transport.MaxIdleConnsPerHost = 16
	if authorities != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	}
	return transport
}

// rereading sends with the authorities that were read last.
type rereading struct {
	reread      func() (*x509.CertPool, error)
	mutex       sync.Mutex
	transport   http.RoundTripper
	authorities *x509.CertPool
}

// RoundTrip sends a request, and reads the authorities again if the server's certificate
// was refused. Those in use stay while the file cannot be read.
func (r *rereading) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mutex.Lock()
	transport := r.transport
	r.mutex.Unlock()
	answer, err := transport.RoundTrip(request)
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
		return answer, err
	}
	authorities, unread := r.reread()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if unread != nil {
		return answer, errors.Join(err, unread)
	}
	if !authorities.Equal(r.authorities) {
		r.authorities, r.transport = authorities, newTransport(authorities)
	}
	return answer, err
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// URL is the server's address.
func (c *caller) URL() string { return c.base.String() }

// path joins the parts of a resource's path, each escaped.
func path(parts ...string) string {
	var joined strings.Builder
	joined.WriteString("/api/v1")
	for _, part := range parts {
		joined.WriteByte('/')
		joined.WriteString(url.PathEscape(part))
	}
	return joined.String()
}

// Health returns nil if the server can be used.
func (c *caller) Health(ctx context.Context) error {
	return c.call(ctx, request{method: http.MethodGet, path: "/healthz"}, nil)
}
