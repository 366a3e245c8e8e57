// Package api is how programs talk to the server: REST v1 with an OpenAPI
// document, events, exports and artifacts.
//
// A handler decodes, calls one use case and encodes; it decides nothing. All
// routes stand in routes.go with the scopes they are open to. Its invariant:
// one handler in front of everything (guard.go) lets a request through only if
// the route's line in that table says so, and every refusal, whoever made it,
// is a problem document. The package must not know SQL, searches or budgets'
// arithmetic, and huma's types never leave it.
package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/tandem-tune/tandem/web/audit"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/follow"
	"github.com/tandem-tune/tandem/web/openapi"
	"github.com/tandem-tune/tandem/web/strict"
)

// Config is what the API is made from.
type Config struct {
	Studies   UseCases
	Artifacts Artifacts
	Tokens    auth.Store
	// Authenticator says whose token was shown; nil: one on Tokens and Now.
	Authenticator *auth.Authenticator
	// UI answers the paths that are not the API's. /login and what is below
	// /assets/ is public, the rest is for signed-in browsers; nil: no pages.
	UI http.Handler
	// Hosts are the names and addresses, without ports, that requests may be
	// addressed to besides the loopback's. An unspecified address (0.0.0.0, ::)
	// stands for every address, but for no name.
	Hosts  []string
	Logger *slog.Logger
	// Healthy returns why nothing can be served any more; nil: all is well.
	Healthy func() error
	// PeerSecret is what other servers show with requests that they pass on; empty:
	// there are none.
	PeerSecret string
	// Ready returns why no further work should be sent here, though what is
	// under way goes on: the server is about to end, say; nil: it is ready.
	Ready func() error
	// Proxies are those whose word is taken for where a request came from.
	Proxies []netip.Prefix
	// Monitor is told of every request and answers /metrics; nil: nobody is.
	Monitor Monitor
	// OpenMetrics lets programs on this machine read /metrics without a token.
	OpenMetrics bool
	// Limits bound what clients may take.
	Limits Limits
	// ArtifactLimit bounds one artifact in bytes; 0: 4 GiB.
	ArtifactLimit int64
	// Forecasts tells how many GPUs will be wanted; nil: nobody does.
	Forecasts Forecasts
	// Audit takes what has to be known later of who did what; nil: nobody does.
	Audit Audit
	// Now is the clock of tokens and sessions; nil: the wall clock.
	Now func() time.Time
}

const defaultArtifactLimit = 4 << 30

// The bounds on requests that stay open: event streams and uploads. Who sends or
// follows has a share of them.
const (
	maxFollowers = 8192
	maxUploads   = 128
)

// server holds what the handlers need.
type server struct {
	studies       UseCases
	artifacts     Artifacts
	tokens        auth.Store
	authenticator *auth.Authenticator
	audit         Audit
	forecasts     Forecasts
	refusals      *audit.Limiter
	visits        *audit.Limiter // by links
	ui            http.Handler
	hosts         hostList
	logger        *slog.Logger
	healthy       func() error
	peerSecret    string
	proxies       proxies
	ready         func() error
	monitor       Monitor
	openMetrics   bool
	limits        limits
	artifactLimit int64

	origins  *http.CrossOriginProtection
	mux      *chi.Mux
	table    map[string]route // by method and pattern
	openAPI  func() []byte    // made when somebody asks for it
	attempts attempts
	// broadcasts are what event streams send.
	broadcasts *follow.Broadcasts
}

// New returns the handler of everything the server answers. It panics if a
// route says nobody may use it: such a program must not start.
func New(config Config) http.Handler {
	return newServer(config).handler()
}

func newServer(config Config) *server {
	s := &server{
		studies: config.Studies, artifacts: config.Artifacts, tokens: config.Tokens,
		ui: config.UI, hosts: newHostList(config.Hosts), logger: config.Logger, healthy: config.Healthy, peerSecret: config.PeerSecret, proxies: config.Proxies,
		ready: config.Ready, monitor: config.Monitor, openMetrics: config.OpenMetrics,
		artifactLimit: config.ArtifactLimit, origins: http.NewCrossOriginProtection(), mux: chi.NewMux(),
		table: make(map[string]route), attempts: attempts{inside: make(map[string]chan struct{})},
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	s.broadcasts = follow.New(s.studies, s.logger)
	if s.healthy == nil {
		s.healthy = func() error { return nil }
	}
	if s.ready == nil {
		s.ready = func() error { return nil }
	}
	if s.monitor == nil {
		s.monitor = unwatched{}
	}
	if s.artifactLimit <= 0 {
		s.artifactLimit = defaultArtifactLimit
	}
	if s.audit = config.Audit; s.audit == nil {
		s.audit = noAudit{}
	}
	if s.forecasts = config.Forecasts; s.forecasts == nil {
		s.forecasts = unforeseen{}
	}
	now := config.Now
	if now == nil {
		now = time.Now
	}
	if s.authenticator, s.limits = config.Authenticator, newLimits(config.Limits, now); s.authenticator == nil {
		s.authenticator = auth.NewAuthenticator(config.Tokens, now)
	}
	s.refusals, s.visits = audit.NewLimiter(now), audit.NewLimiter(now)
	s.register()
	return s
}

// register puts every route of the table into the router and into the OpenAPI
// document.
func (s *server) register() {
	plain := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: strict.Unmarshal}
	s.mux.Use(masked)
	framework := humachi.New(s.mux, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Tandem", Version: "1",
				Description: "The study server's REST interface. docs/protocol.md tells its rules: leases, fencing, idempotency, errors and events.",
			},
			Components: &huma.Components{
				Schemas: openapi.NewRegistry(reflect.TypeFor[document]()),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"token":   {Type: "http", Scheme: "bearer", Description: "a token; what its scope opens stands in x-scopes"},
					"session": {Type: "apiKey", In: "cookie", Name: sessionCookie, Description: "a browser's session"},
				},
			},
		},
		Formats:                      map[string]huma.Format{"application/json": plain, problemType: plain},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{s.ours},
	})
	for _, one := range s.routes() {
		if one.access == nobody {
			panic("api: nobody may use " + one.name())
		}
		s.table[one.name()] = one
		one.register(framework, one.operation(framework.OpenAPI().Components.Schemas))
	}
	s.openAPI = sync.OnceValue(func() []byte {
		document, err := openapi.Complete(framework.OpenAPI())
		if err != nil {
			panic(fmt.Sprintf("api: encode the OpenAPI document: %v", err))
		}
		return document
	})
}

// NewHTTPServer returns a server with our limits. It has no read or write
// timeout, since uploads, events and long polls last: the handler sets the
// deadlines of each request. Event streams end when the server's BaseContext
// does, so end it before Shutdown, which waits for them. What the server itself has
// to say, of connections that never came to a request, goes to the logger.
func NewHTTPServer(address string, handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Addr: address, Handler: handler, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelInfo),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    16 << 10,
	}
}
