// Package guard lets a request through to its route only if the route's line in the
// table says so. It checks host, origin, address, token, access and limits, sets the
// deadlines, and writes the audit log.
package guard

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/build"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/web/answer"
	"github.com/tandem-tune/tandem/web/audit"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/idempotency"
	"github.com/tandem-tune/tandem/web/limit"
	"github.com/tandem-tune/tandem/web/origin"
	"github.com/tandem-tune/tandem/web/transfer"
)

// prefix begins the paths of the API.
const prefix = "/api/v1"

// Config holds the settings of a Guard.
type Config struct {
	Tokens auth.Store
	// Authenticator looks tokens up; nil: one on Tokens and Now.
	Authenticator *auth.Authenticator
	// UI answers the paths that are not the API's. /login and everything below
	// /assets/ is public, the rest is for signed-in browsers; nil: no pages.
	UI http.Handler
	// Hosts are the names and addresses, without ports, that requests may be
	// addressed to in addition to the loopback's. An unspecified address (0.0.0.0, ::)
	// stands for every address, but for no name.
	Hosts []string
	// Proxies are the networks of trusted proxies.
	Proxies []netip.Prefix
	// PeerSecret is shown by other servers with requests that they pass on; empty:
	// there are none.
	PeerSecret string
	Logger     *slog.Logger
	// Monitor counts every request and answers /metrics; nil: nobody does.
	Monitor Monitor
	// OpenMetrics lets programs on this machine read /metrics without a token.
	OpenMetrics bool
	// Limits bound what clients may take.
	Limits limit.PerSecond
	// Audit keeps the audit log; nil: there is none.
	Audit Audit
	// Now is the clock of tokens and sessions; nil: the wall clock.
	Now func() time.Time
	// Version is the server's, for callers of another one; empty: they are not told.
	Version string
}

// Backend serves the requests that were let through.
type Backend interface {
	http.Handler
	// Find returns the path of the route that serves the method and the path; empty
	// if there is none.
	Find(method, path string) string
	// Receipt returns the answer of an earlier call with the idempotency key. The error
	// is key_reused if that was another request.
	Receipt(ctx context.Context, key, request string) (answer json.RawMessage, found bool, err error)
	// RenewLeases renews the leases of the worker whose heartbeat at the path was refused.
	RenewLeases(ctx context.Context, path string)
}

// Guard checks requests. It is safe for concurrent use.
type Guard struct {
	Authenticator *auth.Authenticator
	Limits        *limit.Clients
	Logger        *slog.Logger
	Monitor       Monitor
	// Now is the clock.
	Now func() time.Time

	config           Config
	hosts            origin.Hosts
	proxies          origin.Proxies
	audit            Audit
	refusals, visits *audit.Limiter // visits by links
	attempts         *idempotency.Attempts
	backend          Backend
	routes           map[string]*Route // by method and path
	paths            map[string]bool
}

// New returns a Guard without routes.
func New(config Config) *Guard {
	g := &Guard{
		Logger: cmp.Or(config.Logger, slog.New(slog.DiscardHandler)), Monitor: cmp.Or[Monitor](config.Monitor, noMonitor{}),
		config: config, audit: cmp.Or[Audit](config.Audit, noAudit{}),
		hosts: origin.NewHosts(config.Hosts), proxies: config.Proxies, attempts: idempotency.NewAttempts(),
		routes: make(map[string]*Route), paths: make(map[string]bool),
	}
	now := config.Now
	if now == nil {
		now = time.Now
	}
	g.Authenticator = cmp.Or(config.Authenticator, auth.NewAuthenticator(config.Tokens, now))
	g.Now = now
	g.Limits = limit.NewClients(config.Limits, now, g.Monitor.Limited)
	g.refusals, g.visits = audit.NewLimiter(now), audit.NewLimiter(now)
	return g
}

// Protect makes the guard let requests through to the routes of the backend. It panics
// if nobody may use a route: such a program must not start.
func (g *Guard) Protect(backend Backend, routes []Route) http.Handler {
	g.backend = backend
	for _, one := range routes {
		if one.Access == Nobody {
			panic("guard: nobody may use " + one.Name())
		}
		g.routes[one.Name()], g.paths[one.Path] = &one, true
	}
	return http.HandlerFunc(g.serve)
}

// request holds the findings of the guard about a request. The guard fills it in where
// the context has it: a new context for each would copy the request.
type request struct {
	route *Route // nil: none, or not known yet
	path  string
	from  string // network address
	// program is what the client calls itself.
	program string
	token   auth.Token
	// excused is the token that a refused request came with, as far as memory tells. It
	// opens nothing: a refusal must not cost its worker the leases.
	excused auth.Token
}

type requestKey struct{}

func requestOf(ctx context.Context) *request {
	if known, guarded := ctx.Value(requestKey{}).(*request); guarded {
		return known
	}
	return new(request)
}

// NameOf returns method and path of the route of a request, for logs: never the query.
func NameOf(ctx context.Context) string {
	if known := requestOf(ctx); known.route != nil {
		return known.route.Name()
	}
	return ""
}

// TokenOf returns the token of a request; the zero Token on public routes.
func TokenOf(ctx context.Context) auth.Token { return requestOf(ctx).token }

// serve is the outermost handler: every request comes through it.
func (g *Guard) serve(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	name, seen := noRoute, &answer.Recorder{ResponseWriter: w}
	defer func() {
		took := time.Since(started)
		g.Monitor.Answered(name, seen.Status, took)
		seen.Log(g.Logger, r, took)
	}()
	defer seen.Recover(g.Logger, r, g.refuse)
	transfer.SetDeadlines(w, r, started)
	g.proxies.Resolve(r)
	origin.ResolvePeer(r, g.config.PeerSecret)
	answer.Secure(seen.Header(), r)
	known := &request{path: r.URL.Path, from: r.RemoteAddr, program: tokenLike.ReplaceAllString(r.UserAgent(), "***")}
	r = r.WithContext(context.WithValue(r.Context(), requestKey{}, known))
	if err := g.hosts.Admit(r); err != nil {
		g.refuse(seen, r, err)
		return
	}
	recognized := func() bool { _, is := g.Authenticator.Guess(r); return is }
	if err := g.Limits.TakeAddress(r.RemoteAddr, recognized); err != nil {
		g.refuse(seen, r, err)
		return
	}
	if path := r.URL.Path; !g.paths[path] && path != "/api" && !strings.HasPrefix(path, "/api/") {
		name = pageRoute
		g.servePage(seen, r)
		return
	}
	if err := origin.AdmitPage(r); err != nil {
		g.refuse(seen, r, err)
		return
	}
	if known.route = g.match(r); known.route != nil {
		name = known.route.Name()
	}
	g.serveAPI(seen, r, known)
}

// serveAPI lets a request through to its route if the table says so.
func (g *Guard) serveAPI(w http.ResponseWriter, r *http.Request, known *request) {
	found := known.route
	open := found != nil && (found.Access == Everybody || found.Metrics && g.config.OpenMetrics && origin.Local(r))
	if !open {
		var err error
		if known.token, err = g.Authenticator.Identify(r); err != nil {
			known.excused, _ = g.Authenticator.Guess(r)
			if problem.Is(err, problem.Unauthorized) && (r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "") {
				err = g.Limits.TakeWrong(r.RemoteAddr, err)
			}
			g.refuse(w, r, err)
			return
		}
		known.excused = known.token
		if err := g.Limits.TakeToken(known.token); err != nil {
			g.refuse(w, r, err)
			return
		}
	}
	if found == nil {
		g.refuseMissing(w, r)
		return
	}
	if !open && !found.Access.Allows(known.token.Scope) {
		g.refuse(w, r, problem.New(problem.Forbidden, "a token with the scope %s does not open %s: it takes %s", known.token.Scope, found.Name(), found.Access))
		return
	}
	r.Header.Del("Accept") // every answer has one form: there is nothing to negotiate
	caller := CallerFor(known.token, found.Role)
	caller.Program = build.Of(known.program, g.config.Version)
	g.audited(w, r.WithContext(access.WithCaller(r.Context(), caller)), found)
}

// match returns the request's route, as the router will find it; nil for none.
func (g *Guard) match(r *http.Request) *Route {
	return g.routes[r.Method+" "+g.backend.Find(r.Method, routePath(r))]
}

// routePath returns the path as the router reads it.
func routePath(r *http.Request) string {
	if r.URL.RawPath != "" {
		return r.URL.RawPath
	}
	return r.URL.Path
}

// refuseMissing refuses a request that has no route.
func (g *Guard) refuseMissing(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE"} {
		if g.backend.Find(method, routePath(r)) != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		g.refuse(w, r, problem.New(problem.NotFound, "there is nothing at this path: %s/openapi.json lists what there is", prefix))
		return
	}
	methods := strings.Join(allowed, ", ")
	w.Header().Set("Allow", methods)
	g.refuse(w, r, answer.Fault(http.StatusMethodNotAllowed, problem.Invalid, "this path answers %s only", methods))
}

// refuse answers a request with an error.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	g.Refusal(r.Context(), err).Write(w, r)
}

// Refusal returns the document of an error of a request. It writes a refusal to the
// audit log. If the server refuses a heartbeat for reasons of its own, it renews the
// worker's leases.
func (g *Guard) Refusal(ctx context.Context, err error) *answer.Document {
	g.auditRefusal(ctx, err)
	document := g.Dated(ctx, answer.Of(ctx, err, g.Logger, NameOf(ctx)))
	known := requestOf(ctx)
	if known.route != nil && known.route.Heartbeat && known.excused.ID != "" && (document.Status >= http.StatusInternalServerError || document.Status == http.StatusTooManyRequests) {
		g.backend.RenewLeases(access.WithCaller(ctx, CallerOf(known.excused)), known.path)
		document.KeepLeases()
	}
	return document
}
