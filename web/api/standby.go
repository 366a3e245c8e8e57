package api

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/audit"
)

// Owner is the server that has the data which several servers share.
type Owner struct {
	// URL is where the others reach it; empty: nobody is known.
	URL string
	// Secret is what they show it with a request they pass on, so that it
	// believes where the request came from.
	Secret string
}

// The headers of a request that another server passes on.
const (
	peerHeader = "Tandem-Peer"     // the owner's secret
	fromHeader = "Tandem-Peer-For" // who asked the other server
)

// StandbyConfig is what a Standby is made from.
type StandbyConfig struct {
	// Hosts are as in Config.
	Hosts []string
	// Proxies are as in Config.
	Proxies []netip.Prefix
	// Authorities are whom it trusts to sign the owner's certificate; nil: whom
	// the machine trusts.
	Authorities *x509.CertPool
	Logger      *slog.Logger
	// Transport reaches the owner; nil: one of our own, with the authorities.
	Transport http.RoundTripper
}

// Standby answers for a server that stands by: it passes every request on to
// the owner, with the caller's credentials and keys, and the owner decides. When
// nobody is known to be the owner it answers that the caller is to come back. It
// is safe for concurrent use.
type Standby struct {
	server *server // refuses in its words, and knows its names
	proxy  *httputil.ReverseProxy

	mutex sync.Mutex
	owner Owner
	// following ends when the owner changes, and with it what is under way.
	following context.Context
	leave     context.CancelFunc
}

// NewStandby returns a Standby that knows of no owner.
func NewStandby(config StandbyConfig) *Standby {
	s := &Standby{server: &server{hosts: newHostList(config.Hosts), proxies: config.Proxies, logger: config.Logger, monitor: unwatched{}, origins: http.NewCrossOriginProtection(), audit: noAudit{}, refusals: audit.NewLimiter(time.Now), visits: audit.NewLimiter(time.Now)}}
	if s.server.logger == nil {
		s.server.logger = slog.New(slog.DiscardHandler)
	}
	if config.Transport == nil {
		config.Transport = &http.Transport{
			DialContext:           (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
			ResponseHeaderTimeout: callTime + 15*time.Second, // the owner's own patience, and some
			ExpectContinueTimeout: 5 * time.Second,
			IdleConnTimeout:       30 * time.Second,
			MaxIdleConnsPerHost:   64,
			TLSClientConfig:       &tls.Config{RootCAs: config.Authorities, MinVersion: tls.VersionTLS12},
		}
	}
	s.following, s.leave = context.WithCancel(context.Background())
	s.proxy = &httputil.ReverseProxy{
		Rewrite: s.rewrite, Transport: config.Transport, FlushInterval: -1, ErrorHandler: s.failed,
		ErrorLog: slog.NewLogLogger(s.server.logger.Handler(), slog.LevelDebug),
	}
	return s
}

// Follow sets who the owner is. What is under way to another one is given up:
// its callers are told to come back.
func (s *Standby) Follow(owner Owner) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if owner == s.owner {
		return
	}
	s.owner = owner
	s.leave()
	s.following, s.leave = context.WithCancel(context.Background())
}

func (s *Standby) present() (Owner, context.Context) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.owner, s.following
}

// passing is what the proxy knows of a request that it passes on.
type passing struct {
	to     *url.URL
	secret string
}

type passingKey struct{}

// ServeHTTP passes the request on.
func (s *Standby) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	seen := &witness{ResponseWriter: w}
	defer func() { s.server.note(seen, r, started) }()
	defer s.server.recover(seen, r)
	setDeadlines(w, r, started)
	s.server.proxies.believe(r)
	owner, following := s.present()
	to, err := s.admit(r, owner)
	if err != nil {
		secure(seen.Header(), r)
		s.server.refuse(seen, r, err)
		return
	}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), passingKey{}, passing{to, owner.Secret}))
	defer cancel()
	defer context.AfterFunc(following, cancel)()
	r = r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = patientBody{&patientReader{Reader: r.Body, connection: http.NewResponseController(w)}, r.Body}
	}
	s.proxy.ServeHTTP(patientAnswer{seen, http.NewResponseController(w)}, r)
}

// admit says where the request goes, or why nowhere. What a request is refused
// for by where it was sent to is seen here: the owner is sent it anew.
func (s *Standby) admit(r *http.Request, owner Owner) (*url.URL, error) {
	if !s.server.hosts.allow(r.Host) {
		return nil, problem.New(problem.Forbidden, "this server is not addressed as %q: start it with --allow-host to answer to that name", r.Host)
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		if err := s.server.origins.Check(r); err != nil {
			return nil, problem.New(problem.Forbidden, "a page of another origin may not change anything here")
		}
	}
	if owner.URL == "" || r.Header.Get(peerHeader) != "" {
		return nil, problem.New(problem.Unavailable, "no server has the data just now: another one takes over in some seconds, try again")
	}
	to, err := url.Parse(owner.URL)
	if err != nil || to.Host == "" {
		return nil, problem.New(problem.Unavailable, "the server that has the data gave an address that is none: start it with --advertise")
	}
	return to, nil
}

// rewrite addresses the request to the owner.
func (s *Standby) rewrite(request *httputil.ProxyRequest) {
	known, _ := request.In.Context().Value(passingKey{}).(passing)
	request.SetURL(known.to)
	out := request.Out
	out.Host = known.to.Host
	for _, header := range []string{"Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest"} {
		out.Header.Del(header) // they were about this server, and were checked
	}
	if protocol := request.In.Header.Get("X-Forwarded-Proto"); protocol != "" {
		out.Header.Set("X-Forwarded-Proto", protocol)
	} else if request.In.TLS != nil {
		out.Header.Set("X-Forwarded-Proto", "https")
	}
	out.Header.Set(peerHeader, known.secret)
	out.Header.Set(fromHeader, request.In.RemoteAddr)
}

// failed answers a request that the owner did not.
func (s *Standby) failed(w http.ResponseWriter, r *http.Request, err error) {
	s.server.logger.LogAttrs(r.Context(), slog.LevelDebug, "the owner did not answer", slog.Any("error", err))
	secure(w.Header(), r)
	s.server.refuse(w, r, problem.New(problem.Unavailable, "the server that has the data does not answer: another one takes over in some seconds, try again"))
}

// fromPeer takes a request that another server passed on as what it was there:
// one of its caller's. Nobody else is believed.
func (s *server) fromPeer(r *http.Request) {
	shown, from := r.Header.Get(peerHeader), r.Header.Get(fromHeader)
	r.Header.Del(peerHeader)
	r.Header.Del(fromHeader)
	if s.peerSecret != "" && subtle.ConstantTimeCompare([]byte(shown), []byte(s.peerSecret)) == 1 {
		r.RemoteAddr = from
		r.Header.Set("Via", "tandem") // it is not from this machine, whatever its address says
	}
}

// patientBody is a request's body that may take its time, but not stand still.
type patientBody struct {
	*patientReader
	io.Closer
}

// patientAnswer gives the client time as long as it takes something.
type patientAnswer struct {
	*witness
	connection *http.ResponseController
}

// Write writes what the client takes within the time of a stall.
func (p patientAnswer) Write(data []byte) (int, error) {
	_ = p.connection.SetWriteDeadline(time.Now().Add(stall))
	return p.witness.Write(data)
}

// WriteHeader passes the status on. That the owner would have the body now is
// between it and us: our client is told so when its body is read.
func (p patientAnswer) WriteHeader(status int) {
	if status >= http.StatusOK {
		p.witness.WriteHeader(status)
	}
}
