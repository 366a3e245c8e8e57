package guard

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"mime"
	"net/http"

	"github.com/klauspost/compress/gzhttp"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/web/answer"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/idempotency"
	"github.com/tandem-tune/tandem/web/strict"
	"github.com/tandem-tune/tandem/web/transfer"
)

type bodyKey struct{}

// BodyOf returns the body of a call; nil if the guard read none.
func BodyOf(ctx context.Context) []byte {
	body, _ := ctx.Value(bodyKey{}).([]byte)
	return body
}

// dispatch lets a request through to its handler.
func (g *Guard) dispatch(w http.ResponseWriter, r *http.Request, found *Route) {
	if found.Kind == Stream {
		g.forward(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), transfer.CallTime)
	defer cancel()
	r = r.WithContext(ctx)
	if found.Changes() {
		g.call(w, r, found)
		return
	}
	if !byBrowser(r) {
		g.forward(w, r)
		return
	}
	packed(http.HandlerFunc(g.forward))(w, r)
}

// packed compresses answers that do not fit into two packets, for who takes that.
var packed, _ = gzhttp.NewWrapper(gzhttp.MinSize(2<<10), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false)) // these options are valid

// byBrowser reports whether a page asks. Programs are mostly near the server, and
// would only compute more; pages may be read over any line. Nothing that pages read
// is a secret whose length could give it away.
func byBrowser(r *http.Request) bool {
	_, session := auth.SessionOf(r)
	return session && r.Header.Get("Authorization") == ""
}

// call reads the body of a call, answers it from an earlier attempt if there
// was one, and else lets it through.
func (g *Guard) call(w http.ResponseWriter, r *http.Request, found *Route) {
	token := TokenOf(r.Context())
	grow, give := g.Limits.TakeBody(token, CallerOf(token).Holder, r.RemoteAddr, found.Urgent)
	defer give()
	body, err := transfer.ReadBody(w, r, found.MaxBody, grow)
	if err == nil && found.Kind != StudyFile && len(body) > 0 {
		err = requireJSON(r, body)
	}
	key := ""
	if err == nil && found.Kind != Secret {
		key, err = idempotency.KeyOf(r)
	}
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, body))
	r.Body = io.NopCloser(bytes.NewReader(body))
	if key != "" {
		ctx, leave := g.replay(w, r, found, token.ID+":"+key)
		if ctx == nil {
			return
		}
		defer leave()
		r = r.WithContext(ctx)
	}
	g.forward(w, r)
}

// requireJSON checks a body that must be JSON. It leaves the one spelling of the
// content type that all parsers read alike.
func requireJSON(r *http.Request, body []byte) error {
	if given := r.Header.Get("Content-Type"); given != "" {
		kind, _, err := mime.ParseMediaType(given)
		if err != nil || kind != "application/json" {
			return answer.Fault(http.StatusUnsupportedMediaType, problem.Invalid, "the body must be JSON: send Content-Type: application/json")
		}
	}
	r.Header.Set("Content-Type", "application/json")
	return answer.Malformed(strict.Check(body))
}

// replay repeats the stored answer to a call whose key was used before, and returns no
// context. Otherwise it returns one under which the use case stores its answer, and a
// function to call after that: until then another attempt with the key waits. Keys of
// different tokens never meet.
func (g *Guard) replay(w http.ResponseWriter, r *http.Request, found *Route, key string) (context.Context, func()) {
	hash := idempotency.Hash(r, routePath(r), BodyOf(r.Context()))
	leave, err := g.attempts.Enter(r.Context(), key)
	if err != nil {
		g.refuse(w, r, err)
		return nil, nil
	}
	stored, known, err := g.backend.Receipt(r.Context(), key, hash)
	if err == nil && !known {
		return registry.WithIdempotency(r.Context(), key, hash), leave
	}
	leave()
	if err != nil {
		g.refuse(w, r, err)
		return nil, nil
	}
	w.Header().Set(idempotency.ReplayHeader, "true")
	if found.Status == http.StatusNoContent {
		w.WriteHeader(found.Status)
		return nil, nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(found.Status)
	_, _ = w.Write(append(stored, '\n')) // only a client that hung up fails this
	return nil, nil
}
