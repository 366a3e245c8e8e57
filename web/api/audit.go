package api

import (
	"context"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/web/audit"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/compress"
	"github.com/tandem-tune/tandem/web/limit"
)

// Audit keeps the entries of the audit log. When Append returns nil, the entry
// is on the disk.
type Audit interface {
	Append(entry audit.Entry) error
}

// noAudit is the log of a server without one.
type noAudit struct{}

// Append forgets the entry.
func (noAudit) Append(audit.Entry) error { return nil }

// audited names the routes whose requests are written to the audit log before
// anything is done or sent, besides those of any route that are refused. One that
// then fails has a second line.
var audited = map[string]bool{
	"create-token": true, "delete-token": true, "create-link": true, "delete-link": true, "create-study": true, "delete-study": true, "stop-study": true,
	"export-study": true, "get-artifact": true, "import-ground-truth": true, "forget-ground-truth": true, "import-architectures": true,
	"set-quota": true, "remove-quota": true, "make-reservation": true, "remove-reservation": true, "drain-worker": true, "undrain-worker": true,
}

// tokenLike is whatever might be a token that somebody has put into a path.
var tokenLike = regexp.MustCompile(`(?i)tandem_[^/]*`)

// entryOf is an entry about the request that the context belongs to. It has the
// path and no query, no header and no body.
func entryOf(ctx context.Context, outcome audit.Outcome) audit.Entry {
	known := knownOf(ctx)
	entry := audit.Entry{Action: known.id, Outcome: outcome, From: known.from, On: tokenLike.ReplaceAllString(known.path, "***")}
	if entry.Action == "" {
		entry.Action = "unknown"
	}
	if token := known.token; token.ID != "" {
		entry.Token, entry.Who = token.ID, whoOf(token)
	}
	return entry
}

// whoOf says whose a token is.
func whoOf(token auth.Token) string { return string(token.Scope) + ":" + token.Name }

// serve lets a request through to its handler, with the lines in the audit log
// that its route asks for. What cannot be logged is not done.
func (s *server) serve(w http.ResponseWriter, r *http.Request, found route) {
	if !audited[found.id] || found.daily(r, tokenOf(r.Context())) {
		s.dispatch(w, r, found)
		return
	}
	told, err := s.noteVisit(entryOf(r.Context(), audit.Asked), tokenOf(r.Context()))
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	seen := &witness{ResponseWriter: w}
	s.dispatch(seen, r, found)
	if told && seen.status >= http.StatusBadRequest {
		failed := entryOf(r.Context(), audit.Failed)
		failed.Detail = "status " + strconv.Itoa(seen.status)
		s.wrote(r.Context(), s.audit.Append(failed))
	}
}

// dispatch lets a request through to its handler.
func (s *server) dispatch(w http.ResponseWriter, r *http.Request, found route) {
	if found.kind == stream {
		s.mux.ServeHTTP(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), callTime)
	defer cancel()
	r = r.WithContext(ctx)
	if found.mutates() || !byBrowser(r) || !compress.Accepts(r) {
		s.call(w, r, found)
		return
	}
	packed := compress.NewWriter(w)
	s.call(packed, r, found)
	if err := packed.Close(); err != nil {
		panic(http.ErrAbortHandler) // a part must not look like the whole
	}
}

// byBrowser reports whether a page asks. Programs are mostly near the server, and
// would only compute more; pages may be read over any line. Nothing that pages read
// is a secret whose length could tell of it.
func byBrowser(r *http.Request) bool {
	_, session := sessionOf(r)
	return session && r.Header.Get("Authorization") == ""
}

// wrote tells of a line that could not be written and that nothing depends on.
func (s *server) wrote(ctx context.Context, err error) {
	if err != nil {
		s.logger.LogAttrs(ctx, slog.LevelError, "audit log", slog.Any("error", err))
	}
}

// daily reports whether the request is nothing out of the ordinary: a plan that
// is only shown, or a worker that reads the checkpoint of a trial that it holds,
// which the events of the study tell of.
func (r route) daily(asked *http.Request, token auth.Token) bool {
	return r.path == blobPath && token.Scope == auth.Worker || r.id == "create-study" && asked.URL.RawQuery == "dry_run=true"
}

// made writes what a handler has made. If it cannot be written, the handler has
// to take it back or to fail.
func (s *server) made(ctx context.Context, on, detail string) error {
	entry := entryOf(ctx, audit.Done)
	entry.On, entry.Detail = on, detail
	return s.audit.Append(entry)
}

// noteRefusal writes that a request was refused for who asked, unless too many
// were. The refusal stands also if it cannot be written.
func (s *server) noteRefusal(ctx context.Context, err error) {
	denied := study.Denied(err)
	if !denied && !problem.Is(err, problem.Unauthorized) && !problem.Is(err, problem.Forbidden) {
		return
	}
	entry := entryOf(ctx, audit.Refused)
	entry.Detail = string(problem.CodeOf(err))
	if denied {
		entry.Detail = "belongs to somebody else"
	}
	// One token, or one address without a token, of each kind.
	kind := entry.Token
	if kind == "" {
		kind = limit.Origin(entry.From).String()
	}
	if counted(&entry, s.refusals.Count(kind+" "+entry.Action+" "+entry.Detail)) {
		s.wrote(ctx, s.audit.Append(entry))
	}
}

// noteVisit writes what was done with the token, and reports whether there is a
// line. A link may be anybody's: what many do with it is told in few lines.
func (s *server) noteVisit(entry audit.Entry, token auth.Token) (told bool, err error) {
	if token.Scope == auth.Link && !counted(&entry, s.visits.Count(token.Principal()+" "+entry.Action)) {
		return false, nil
	}
	return true, s.audit.Append(entry)
}

// counted makes the entry stand for so many, and reports whether it is to be written.
func counted(entry *audit.Entry, count int) bool {
	if count > 1 {
		entry.Count = count
	}
	return count > 0
}
