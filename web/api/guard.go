package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/web/auth"
)

// callTime bounds a whole call; the longest is a lease that waits 60 seconds.
const callTime = 2 * time.Minute

// requestKey is the context key of what the guard knows of a request.
type requestKey struct{}

// request is what the guard finds out before a handler runs, and notes where the
// context has it: a context for each thing would be a copy of the request for each.
type request struct {
	name  string // method and pattern, for logs: never the query
	id    string // of the route
	path  string
	from  string // network address
	token auth.Token
	// excused is the token that it came with as far as anybody could say, for
	// what a refusal must not cost: it opens nothing.
	excused auth.Token
}

// knownOf is what is known of the request that a context belongs to.
func knownOf(ctx context.Context) *request {
	if known, guarded := ctx.Value(requestKey{}).(*request); guarded {
		return known
	}
	return new(request)
}

// tokenOf is the token a request came with; the zero Token on public routes.
func tokenOf(ctx context.Context) auth.Token { return knownOf(ctx).token }

// handler is the outermost handler: nothing is reached but through it.
func (s *server) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		seen := &witness{ResponseWriter: w, route: noRoute}
		defer func() { s.note(seen, r, started) }()
		defer s.recover(seen, r)
		setDeadlines(w, r, started)
		s.proxies.believe(r)
		s.fromPeer(r)
		secure(seen.Header(), r)
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, &request{path: r.URL.Path, from: r.RemoteAddr}))
		if !s.hosts.allow(r.Host) {
			s.refuse(seen, r, problem.New(problem.Forbidden, "this server is not addressed as %q: start it with --allow-host to answer to that name", r.Host))
			return
		}
		if err := s.takeAddress(r); err != nil {
			s.refuse(seen, r, err)
			return
		}
		if ofAPI(r.URL.Path) {
			s.serveAPI(seen, r)
			return
		}
		seen.route = pageRoute
		s.servePage(seen, r)
	})
}

// ofAPI reports whether the API answers the path.
func ofAPI(path string) bool {
	switch path {
	case healthPath, readyPath, metricsPath, "/api":
		return true
	}
	return strings.HasPrefix(path, "/api/")
}

// setDeadlines bounds how long the client may take. Also a body that nobody
// here reads has to come within its time: net/http waits for it.
func setDeadlines(w http.ResponseWriter, r *http.Request, now time.Time) {
	// A connection without deadlines is no fault of the request.
	connection := http.NewResponseController(w)
	_ = connection.SetWriteDeadline(now.Add(callTime + 10*time.Second))
	if r.ContentLength != 0 {
		_ = connection.SetReadDeadline(now.Add(bodyTime))
	}
}

// serveAPI lets a request through to its route if the table says so.
func (s *server) serveAPI(w *witness, r *http.Request) {
	if err := s.origins.Check(r); err != nil {
		s.refuse(w, r, problem.New(problem.Forbidden, "a page of another origin may not change anything here"))
		return
	}
	found, exists := s.match(r)
	known := knownOf(r.Context())
	known.name, known.id = found.name(), found.id
	if exists {
		w.route = known.name
	}
	open := exists && (found.access == everybody || s.opensMetrics(found, r))
	if !open {
		var err error
		if known.token, err = s.identify(r); err != nil {
			known.excused, _ = s.recognize(r)
			s.refuse(w, r, s.takeWrong(r, err))
			return
		}
		known.excused = known.token
		if err := s.takeToken(known.token); err != nil {
			s.refuse(w, r, err)
			return
		}
	}
	if !exists {
		s.missing(w, r)
		return
	}
	if !open && !found.access.allows(known.token.Scope) {
		s.refuse(w, r, problem.New(problem.Forbidden, "a token with the scope %s does not open %s: it takes %s", known.token.Scope, known.name, found.access))
		return
	}
	r.Header.Del("Accept") // every answer has one form: there is nothing to negotiate
	s.serve(w, r.WithContext(study.WithCaller(r.Context(), callerOf(known.token))), found)
}

// match finds the request's route, by the router that will serve it.
func (s *server) match(r *http.Request) (route, bool) {
	pattern := s.mux.Find(chi.NewRouteContext(), r.Method, routePath(r))
	found, ok := s.table[r.Method+" "+pattern]
	return found, ok && pattern != ""
}

// routePath is the path as the router reads it.
func routePath(r *http.Request) string {
	if r.URL.RawPath != "" {
		return r.URL.RawPath
	}
	return r.URL.Path
}

// missing answers a request that has no route.
func (s *server) missing(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE"} {
		if s.mux.Find(chi.NewRouteContext(), method, routePath(r)) != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		s.refuse(w, r, problem.New(problem.NotFound, "there is nothing at this path: %s/openapi.json lists what there is", prefix))
		return
	}
	methods := strings.Join(allowed, ", ")
	w.Header().Set("Allow", methods)
	s.refuse(w, r, fault(http.StatusMethodNotAllowed, problem.Invalid, "this path answers %s only", methods))
}

// identify finds out whose request it is. A header is preferred to a cookie,
// and a wrong one is not made good by the other.
func (s *server) identify(r *http.Request) (auth.Token, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		kind, secret, _ := strings.Cut(header, " ")
		if !strings.EqualFold(kind, "Bearer") {
			return auth.Token{}, problem.New(problem.Unauthorized, "send the token as Authorization: Bearer TOKEN")
		}
		return s.authenticator.Token(r.Context(), auth.Secret(strings.TrimSpace(secret)))
	}
	if secret, given := sessionOf(r); given {
		return s.authenticator.Session(r.Context(), secret)
	}
	return auth.Token{}, problem.New(problem.Unauthorized, "this takes a token: send it as Authorization: Bearer TOKEN")
}

// recognize says whose request it is by what is in memory alone.
func (s *server) recognize(r *http.Request) (auth.Token, bool) {
	if header := r.Header.Get("Authorization"); header != "" {
		_, secret, _ := strings.Cut(header, " ")
		return s.authenticator.Recognize(auth.Secret(strings.TrimSpace(secret)))
	}
	secret, _ := sessionOf(r)
	return s.authenticator.Recognize(secret)
}

// servePage lets browsers through to the pages: everybody to the login page
// and the assets, signed-in ones to the rest.
func (s *server) servePage(w http.ResponseWriter, r *http.Request) {
	if s.ui == nil {
		s.refuse(w, r, problem.New(problem.NotFound, "this server has no pages: its interface is at %s", prefix))
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		s.refuse(w, r, fault(http.StatusMethodNotAllowed, problem.Invalid, "pages are only read"))
		return
	}
	if r.URL.Path != "/login" && !strings.HasPrefix(r.URL.Path, "/assets/") {
		target := loginFor(r.URL)
		if secret, given := sessionOf(r); given {
			if token, err := s.authenticator.Session(r.Context(), secret); err == nil {
				target = strayed(token, r.URL.Path)
			}
		}
		if target != "" {
			w.Header().Set("Cache-Control", "no-store")
			http.Redirect(w, r, target, http.StatusSeeOther)
			return
		}
	}
	s.ui.ServeHTTP(w, r)
}

// loginFor is the login page that leads back to the wanted one. The page makes
// sure that it stays on this server.
func loginFor(wanted *url.URL) string {
	if wanted.Path == "/" {
		return "/login"
	}
	return "/login?next=" + url.QueryEscape(wanted.RequestURI())
}

// secure sets the headers that every answer carries.
func secure(header http.Header, r *http.Request) {
	header.Set("Content-Security-Policy", "default-src 'self'; script-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	if strings.HasPrefix(r.URL.Path, "/api/") {
		header.Set("Cache-Control", "no-store")
	}
	if r.TLS != nil {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// note logs the request: what it was and how it ended, nothing it carried.
func (s *server) note(w *witness, r *http.Request, started time.Time) {
	took := time.Since(started)
	s.monitor.Answered(w.route, w.status, took)
	s.logger.LogAttrs(r.Context(), slog.LevelDebug, "request", slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.Int("status", w.status), slog.Duration("took", took), slog.String("from", r.RemoteAddr))
}

// hostList is what requests may be addressed to. A page of a foreign name that
// was pointed at our address by DNS shows that name in its Host header.
type hostList struct {
	names   []string
	literal bool // any address: names are what an attacker can point at us
}

func newHostList(configured []string) hostList {
	list := hostList{names: []string{"localhost"}}
	for _, host := range configured {
		if host = bare(host); host == "" {
			continue
		}
		if address, err := netip.ParseAddr(host); err == nil && address.IsUnspecified() {
			list.literal = true
		}
		list.names = append(list.names, host)
	}
	return list
}

func (l hostList) allow(header string) bool {
	host := header
	if name, _, err := net.SplitHostPort(header); err == nil {
		host = name
	}
	host = bare(host)
	if address, err := netip.ParseAddr(host); err == nil && (l.literal || address.Unmap().IsLoopback()) {
		return true
	}
	return slices.Contains(l.names, host)
}

// bare is a host in the one spelling that is compared.
func bare(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
