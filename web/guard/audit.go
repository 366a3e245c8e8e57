package guard

import (
	"context"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/web/answer"
	"github.com/tandem-tune/tandem/web/audit"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/limit"
)

// Audit keeps the entries of the audit log. When Append returns nil, the entry
// is on the disk.
type Audit interface {
	Append(entry audit.Entry) error
}

// noAudit is the audit log of a server without one.
type noAudit struct{}

// Append forgets the entry.
func (noAudit) Append(audit.Entry) error { return nil }

// tokenLike matches a token that somebody may have put into a path.
var tokenLike = regexp.MustCompile(`(?i)tandem_[^/]*`)

// entryOf returns an entry about the request of the context. It has the path, what
// the client calls itself, no query and no body.
func entryOf(ctx context.Context, outcome audit.Outcome) audit.Entry {
	known := requestOf(ctx)
	entry := audit.Entry{Action: "unknown", Outcome: outcome, From: known.from, Program: known.program, On: tokenLike.ReplaceAllString(known.path, "***")}
	if known.route != nil {
		entry.Action = known.route.ID
	}
	if token := known.token; token.ID != "" {
		entry.Token, entry.Who = token.ID, HolderOf(token)
	}
	return entry
}

// HolderOf names the holder of a token in the audit log.
func HolderOf(token auth.Token) string { return string(token.Scope) + ":" + token.Name }

// audited lets a request through to its handler, with the entries in the audit log
// that its route asks for. If the log cannot be written, nothing is done.
func (g *Guard) audited(w http.ResponseWriter, r *http.Request, found *Route) {
	token := TokenOf(r.Context())
	if !found.Audited || found.Routine != nil && found.Routine(r, token) {
		g.dispatch(w, r, found)
		return
	}
	logged, err := g.auditUse(entryOf(r.Context(), audit.Asked), token)
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	seen := &answer.Recorder{ResponseWriter: w}
	g.dispatch(seen, r, found)
	if logged && seen.Status >= http.StatusBadRequest {
		failed := entryOf(r.Context(), audit.Failed)
		failed.Detail = "status " + strconv.Itoa(seen.Status)
		g.ReportAudit(r.Context(), g.audit.Append(failed))
	}
}

// ReportAudit logs that an entry could not be written, where nothing depends on it.
func (g *Guard) ReportAudit(ctx context.Context, err error) {
	if err != nil {
		g.Logger.LogAttrs(ctx, slog.LevelError, "audit log", slog.Any("error", err))
	}
}

// AuditMade writes an entry about an object that a handler has made. If that fails, the
// handler must remove the object or fail.
func (g *Guard) AuditMade(ctx context.Context, on, detail string) error {
	entry := entryOf(ctx, audit.Done)
	entry.On, entry.Detail = on, detail
	return g.audit.Append(entry)
}

// AuditSignIn writes an entry about the token that a browser signed in with.
func (g *Guard) AuditSignIn(ctx context.Context, token auth.Token) error {
	entry := entryOf(ctx, audit.Done)
	entry.Token, entry.Who = token.ID, HolderOf(token)
	_, err := g.auditUse(entry, token)
	return err
}

// auditRefusal writes an entry about a request that its sender may not make, unless
// there were too many. The refusal stands also if the entry cannot be written.
func (g *Guard) auditRefusal(ctx context.Context, err error) {
	denied := access.Denied(err)
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
	if counted(&entry, g.refusals.Count(kind+" "+entry.Action+" "+entry.Detail)) {
		g.ReportAudit(ctx, g.audit.Append(entry))
	}
}

// auditUse writes an entry about the use of a token, and reports whether there is one. A
// link may be anybody's, so one entry may stand for many uses of it.
func (g *Guard) auditUse(entry audit.Entry, token auth.Token) (logged bool, err error) {
	if token.Scope == auth.Link && !counted(&entry, g.visits.Count(token.Principal()+" "+entry.Action)) {
		return false, nil
	}
	return true, g.audit.Append(entry)
}

// counted makes the entry stand for so many, and reports whether to write it.
func counted(entry *audit.Entry, count int) bool {
	if count > 1 {
		entry.Count = count
	}
	return count > 0
}
