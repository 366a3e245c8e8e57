// Package api is the REST interface of the server: routes, their handlers and the
// OpenAPI document.
//
// A handler decodes, calls one use case and encodes; it decides nothing. The tables of
// routes name the scopes that each is open to, and package guard enforces them. Every
// refusal is a problem document of package answer. The package must not know SQL,
// searches or budgets' arithmetic, and huma's types never leave it.
package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/tandem-tune/tandem/web/answer"
	"github.com/tandem-tune/tandem/web/audit"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/follow"
	"github.com/tandem-tune/tandem/web/guard"
	"github.com/tandem-tune/tandem/web/launches"
	"github.com/tandem-tune/tandem/web/oidc"
	"github.com/tandem-tune/tandem/web/openapi"
	"github.com/tandem-tune/tandem/web/strict"
	"github.com/tandem-tune/tandem/web/usecases"
)

// Config holds what the API is made of.
type Config struct {
	// Config is about the requests that are let through. Its Logger is used for all.
	guard.Config
	Studies   usecases.All
	Artifacts Artifacts
	// Healthy returns why nothing can be served any more; nil: all is well.
	Healthy func() error
	// Ready returns why no further work should be sent here, though requests under way
	// go on: the server is about to end, for example; nil: it is ready.
	Ready func() error
	// ArtifactLimit bounds one artifact in bytes; 0: 4 GiB.
	ArtifactLimit int64
	// Forecasts predicts how many GPUs will be wanted; nil: nobody does.
	Forecasts Forecasts
	// Hooks tells what happens in studies; nil: nobody does.
	Hooks Hooks
	// AuditLog returns so many of the newest entries of the audit log; nil: there is none.
	AuditLog func(most int) ([]audit.Entry, error)
	// SignIn signs people in; nil: nobody does but by tokens.
	SignIn SignIn
}

const defaultArtifactLimit = 4 << 30

// server holds what the handlers need.
type server struct {
	*guard.Guard
	studies       usecases.All
	artifacts     Artifacts
	tokens        auth.Store
	forecasts     Forecasts
	hooks         Hooks
	signing       SignIn
	auditLog      func(int) ([]audit.Entry, error)
	launches      launches.Board
	healthy       func() error
	ready         func() error
	artifactLimit int64

	mux     *chi.Mux
	openAPI func() []byte // made when somebody asks for it
	// broadcasts are what event streams send.
	broadcasts *follow.Broadcasts
}

// New returns the handler of everything the server answers. It panics if a
// route says nobody may use it: such a program must not start.
func New(config Config) http.Handler {
	s := &server{
		Guard: guard.New(config.Config), studies: config.Studies, artifacts: config.Artifacts, tokens: config.Tokens,
		forecasts: config.Forecasts, hooks: config.Hooks, signing: cmp.Or[SignIn](config.SignIn, oidc.Nobody{}), auditLog: config.AuditLog, healthy: config.Healthy, ready: config.Ready, artifactLimit: config.ArtifactLimit, mux: chi.NewMux(),
	}
	if s.hooks == nil {
		s.hooks = noHooks{}
	}
	s.broadcasts = follow.New(s.studies, s.Logger)
	if s.artifactLimit <= 0 {
		s.artifactLimit = defaultArtifactLimit
	}
	return s.Protect(s, s.register())
}

// ServeHTTP serves a request that the guard let through.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Find returns the path of the route for the request.
func (s *server) Find(method, path string) string {
	return s.mux.Find(chi.NewRouteContext(), method, path)
}

// Receipt returns the answer of an earlier call.
func (s *server) Receipt(ctx context.Context, key, request string) (json.RawMessage, bool, error) {
	return s.studies.Receipt(ctx, key, request)
}

// RenewLeases renews the leases of the worker whose heartbeat at the path was refused.
func (s *server) RenewLeases(ctx context.Context, path string) {
	s.studies.Excuse(ctx, strings.TrimSuffix(strings.TrimPrefix(path, prefix+"/workers/"), "/heartbeat"))
}

// schemas describe the types of all servers of a process: the first one makes them. Who
// registers holds the lock; requests find all there, and only read.
var schemas, registering = openapi.NewRegistry(reflect.TypeFor[answer.Document]()), new(sync.Mutex)

// register puts every route of the table into the router and into the OpenAPI
// document, and returns them as the guard takes them.
func (s *server) register() (guarded []guard.Route) {
	registering.Lock()
	defer registering.Unlock()
	plain := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: strict.Unmarshal}
	framework := humachi.New(s.mux, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Tandem", Version: "1",
				Description: "The study server's REST interface. docs/protocol.md tells its rules: leases, fencing, idempotency, errors and events.",
			},
			Components: &huma.Components{
				Schemas: schemas,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"token":   {Type: "http", Scheme: "bearer", Description: "a token; what its scope opens stands in x-scopes"},
					"session": {Type: "apiKey", In: "cookie", Name: auth.SessionCookie, Description: "a browser's session"},
				},
			},
		},
		Formats:                      map[string]huma.Format{"application/json": plain, answer.Type: plain},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{s.rewordFaults},
	})
	for _, one := range s.routes() {
		guarded = append(guarded, one.guarded())
		one.register(framework, one.operation(framework.OpenAPI().Components.Schemas))
	}
	s.openAPI = sync.OnceValue(func() []byte {
		document, err := openapi.Complete(framework.OpenAPI())
		if err != nil {
			panic(fmt.Sprintf("api: encode the OpenAPI document: %v", err))
		}
		return document
	})
	return guarded
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
