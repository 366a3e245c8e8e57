package auth

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/problem"
)

// keepFor is how long a token that was looked up is trusted: a token deleted
// behind our back, in the store itself, works that much longer.
const keepFor = 5 * time.Second

// maxKept bounds the tokens in memory.
const maxKept = 4096

// Authenticator says whose token was shown. It is safe for concurrent use.
type Authenticator struct {
	store Store
	now   func() time.Time

	// deleting lets one deletion at a time decide which token is the last one.
	deleting sync.Mutex

	mutex sync.Mutex
	kept  map[string]keptToken
	// deletions counts: a look-up that began before a deletion is not kept.
	deletions uint64
}

type keptToken struct {
	token Token
	until time.Time
}

// NewAuthenticator returns an Authenticator on the store and the clock.
func NewAuthenticator(store Store, now func() time.Time) *Authenticator {
	return &Authenticator{store: store, now: now, kept: make(map[string]keptToken)}
}

// Token returns the token whose secret was shown. The error is unauthorized if
// there is none, or no longer; a session's secret is none.
func (a *Authenticator) Token(ctx context.Context, secret Secret) (Token, error) {
	shown, err := parse(secret.Reveal())
	if err != nil {
		return Token{}, err
	}
	token, err := a.proven(ctx, shown)
	if err != nil {
		return Token{}, err
	}
	if token.Session() || shown.kind != string(token.Scope) {
		return Token{}, errUnknown()
	}
	return token, nil
}

// Session returns the session whose secret a browser's cookie held, under the
// same terms; any other token's secret is none.
func (a *Authenticator) Session(ctx context.Context, secret Secret) (Token, error) {
	shown, err := parse(secret.Reveal())
	if err != nil {
		return Token{}, err
	}
	session, err := a.proven(ctx, shown)
	if err != nil {
		return Token{}, err
	}
	if !session.Session() || shown.kind != sessionKind {
		return Token{}, errUnknown()
	}
	return session, nil
}

// Valid returns unauthorized if the token that was authenticated is so no
// longer: for requests that last.
func (a *Authenticator) Valid(ctx context.Context, id string) error {
	_, err := a.find(ctx, id)
	return err
}

// Delete removes a token and its sessions. not_found if there is none; the
// last admin token that does not expire is a conflict, as nobody could make
// another one.
func (a *Authenticator) Delete(ctx context.Context, id string) error {
	a.deleting.Lock()
	defer a.deleting.Unlock()
	tokens, err := a.store.Tokens(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(tokens, func(t Token) bool { return t.ID == id })
	if at < 0 {
		return problem.New(problem.NotFound, "there is no token %q", id)
	}
	if tokens[at].Lasting() && !slices.ContainsFunc(tokens, func(t Token) bool { return t.ID != id && t.Lasting() }) {
		return problem.New(problem.Conflict, "%s is the last admin token that does not expire: create another one first", id)
	}
	for _, token := range tokens {
		if token.parent() != id {
			continue
		}
		if err := a.remove(ctx, token.ID); err != nil {
			return err
		}
	}
	err = a.store.DeleteToken(ctx, id)
	a.forget(id)
	return err
}

// Lasting reports whether the token can always make another one.
func (t Token) Lasting() bool { return t.Scope == Admin && t.Expires == nil && !t.Session() }

// EndSession removes a session; that it is gone already is fine.
func (a *Authenticator) EndSession(ctx context.Context, session Token) error {
	if !session.Session() {
		return problem.New(problem.Invalid, "this is no session: a token is deleted by an admin")
	}
	return a.remove(ctx, session.ID)
}

// proven finds the token and checks its secret.
func (a *Authenticator) proven(ctx context.Context, shown parsed) (Token, error) {
	token, err := a.find(ctx, shown.id)
	if err != nil {
		return Token{}, err
	}
	if !shown.proves(token) {
		return Token{}, errUnknown()
	}
	return token, nil
}

// find returns the token with the id that is valid now, as must be the one it
// was made from.
func (a *Authenticator) find(ctx context.Context, id string) (Token, error) {
	token, err := a.lookUp(ctx, id)
	if problem.Is(err, problem.NotFound) || err == nil && token.expired(a.now()) {
		return Token{}, errUnknown()
	}
	if err != nil {
		return Token{}, err
	}
	if parent := token.parent(); parent != "" {
		if _, err := a.find(ctx, parent); err != nil {
			return Token{}, err
		}
	}
	return token, nil
}

func (a *Authenticator) lookUp(ctx context.Context, id string) (Token, error) {
	a.mutex.Lock()
	kept, ok := a.kept[id]
	deletions := a.deletions
	a.mutex.Unlock()
	now := a.now()
	if ok && now.Before(kept.until) {
		return kept.token, nil
	}
	token, err := a.store.Token(ctx, id)
	if err != nil {
		return Token{}, err
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.deletions != deletions {
		return token, nil
	}
	if len(a.kept) >= maxKept {
		clear(a.kept)
	}
	a.kept[id] = keptToken{token: token, until: now.Add(keepFor)}
	return token, nil
}

func (a *Authenticator) forget(id string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.kept, id)
	a.deletions++
}

// errUnknown is the one answer to every secret that opens nothing, so that
// nobody learns which ids exist.
func errUnknown() error {
	return problem.New(problem.Unauthorized, "the token is not valid: it is unknown, was deleted or has expired")
}
