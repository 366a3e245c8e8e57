// Package standby answers for a server that has no data: it passes every request on to
// the server that owns them. The caller's credentials and keys go with the request, and
// the owner decides.
package standby

import (
	"cmp"
	"context"
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
	"github.com/tandem-tune/tandem/web/answer"
	"github.com/tandem-tune/tandem/web/origin"
	"github.com/tandem-tune/tandem/web/transfer"
)

// Owner is the server that has the data which several servers share.
type Owner struct {
	// URL is the address for other servers; empty: no owner is known.
	URL string
	// Secret proves to the owner that another server passes a request on.
	Secret string
}

// Config holds the settings of a Server.
type Config struct {
	// Hosts are the names that requests may be addressed to, as for [origin.NewHosts].
	Hosts []string
	// Proxies are the networks of trusted proxies.
	Proxies []netip.Prefix
	// Authorities may sign the owner's certificate; nil: those that the machine trusts.
	Authorities *x509.CertPool
	Logger      *slog.Logger
	// Transport sends requests to the owner; nil: one of our own, with the authorities.
	Transport http.RoundTripper
}

// Server passes requests on to the owner. While no owner is known it asks the caller to
// try again. It is safe for concurrent use.
type Server struct {
	hosts   origin.Hosts
	proxies origin.Proxies
	logger  *slog.Logger
	// transport reaches the owner.
	transport http.RoundTripper

	mutex sync.Mutex
	owner Owner
	// following ends when the owner changes, and with it what is under way.
	following context.Context
	leave     context.CancelFunc
}

// New returns a Server that knows of no owner.
func New(config Config) *Server {
	s := &Server{hosts: origin.NewHosts(config.Hosts), proxies: config.Proxies, logger: cmp.Or(config.Logger, slog.New(slog.DiscardHandler)), transport: config.Transport}
	if s.transport == nil {
		s.transport = &http.Transport{
			DialContext:           (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
			ResponseHeaderTimeout: transfer.CallTime + 15*time.Second, // the owner's own patience, and some
			ExpectContinueTimeout: 5 * time.Second,
			IdleConnTimeout:       30 * time.Second,
			MaxIdleConnsPerHost:   64,
			TLSClientConfig:       &tls.Config{RootCAs: config.Authorities, MinVersion: tls.VersionTLS12},
		}
	}
	s.following, s.leave = context.WithCancel(context.Background())
	return s
}

// Follow sets the owner. It ends requests that are under way to another one: their
// callers are asked to try again.
func (s *Server) Follow(owner Owner) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if owner == s.owner {
		return
	}
	s.owner = owner
	s.leave()
	s.following, s.leave = context.WithCancel(context.Background())
}

// present returns the owner, and a context that ends when there is another one.
func (s *Server) present() (Owner, context.Context) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.owner, s.following
}

// ServeHTTP passes the request on.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	seen := &answer.Recorder{ResponseWriter: w}
	defer func() { seen.Log(s.logger, r, time.Since(started)) }()
	defer seen.Recover(s.logger, r, s.refuse)
	transfer.SetDeadlines(w, r, started)
	s.proxies.Resolve(r)
	owner, following := s.present()
	to, err := s.admit(r, owner)
	if err != nil {
		s.refuse(seen, r, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(following, cancel)()
	r = r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = pacedBody{transfer.NewReader(r.Body, w), r.Body}
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			readdress(request, to)
			origin.PassOn(request.Out, owner.Secret, request.In.RemoteAddr)
		},
		Transport: s.transport, FlushInterval: -1, ErrorHandler: s.failed, ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
	proxy.ServeHTTP(pacedAnswer{seen, transfer.NewWriter(seen)}, r)
}

// admit returns the address that the request goes to, or refuses it. The host and the
// origin of the request are checked here, since the owner gets a new request.
func (s *Server) admit(r *http.Request, owner Owner) (*url.URL, error) {
	if err := s.hosts.Admit(r); err != nil {
		return nil, err
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		if err := origin.AdmitPage(r); err != nil {
			return nil, err
		}
	}
	if owner.URL == "" || origin.FromPeer(r) {
		return nil, problem.New(problem.Unavailable, "no server has the data just now: another one takes over in some seconds, try again")
	}
	to, err := url.Parse(owner.URL)
	if err != nil || to.Host == "" {
		return nil, problem.New(problem.Unavailable, "the server that has the data gave an address that is none: start it with --advertise")
	}
	return to, nil
}

// readdress addresses the request to the owner.
func readdress(request *httputil.ProxyRequest, to *url.URL) {
	request.SetURL(to)
	out := request.Out
	out.Host = to.Host
	for _, header := range []string{"Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest"} {
		out.Header.Del(header) // they were about this server, and were checked
	}
	if protocol := request.In.Header.Get("X-Forwarded-Proto"); protocol != "" {
		out.Header.Set("X-Forwarded-Proto", protocol)
	} else if request.In.TLS != nil {
		out.Header.Set("X-Forwarded-Proto", "https")
	}
}

// failed answers a request that the owner did not answer.
func (s *Server) failed(w http.ResponseWriter, r *http.Request, err error) {
	s.logger.LogAttrs(r.Context(), slog.LevelDebug, "the owner did not answer", slog.Any("error", err))
	s.refuse(w, r, problem.New(problem.Unavailable, "the server that has the data does not answer: another one takes over in some seconds, try again"))
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	answer.Secure(w.Header(), r)
	answer.Of(r.Context(), err, s.logger, "").Write(w, r)
}

// pacedBody is the body of a request whose sender keeps a pace.
type pacedBody struct {
	io.Reader
	io.Closer
}

// pacedAnswer is an answer whose receiver takes something at times.
type pacedAnswer struct {
	*answer.Recorder
	body transfer.Writer
}

// Write writes the bytes that the client takes within the time of a stall.
func (p pacedAnswer) Write(data []byte) (int, error) { return p.body.Write(data) }

// WriteHeader passes the status on. It drops the owner's 100 Continue: net/http sends
// our own when the body is read.
func (p pacedAnswer) WriteHeader(status int) {
	if status >= http.StatusOK {
		p.Recorder.WriteHeader(status)
	}
}
