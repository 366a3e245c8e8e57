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

// noteEvery is how often a token's use is written down: what is shown of it is
// exact to within that.
const noteEvery = 10 * time.Minute

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
	noted map[string]time.Time // when a token's use was last written down
	// deletions counts: a look-up that began before a deletion is not kept.
	deletions uint64
}

type keptToken struct {
	token Token
	until time.Time
}

// NewAuthenticator returns an Authenticator on the store and the clock.
func NewAuthenticator(store Store, now func() time.Time) *Authenticator {
	return &Authenticator{store: store, now: now, kept: make(map[string]keptToken), noted: make(map[string]time.Time)}
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

// Bind makes a worker's token the machine's that uses it, if it belongs to none,
// and returns it as it is then. The error is forbidden if it is another's.
func (a *Authenticator) Bind(ctx context.Context, token Token, worker string) (Token, error) {
	if token.Scope != Worker || token.Worker == AnyWorker || token.Worker == worker {
		return token, nil
	}
	if token.Worker == "" {
		err := a.store.BindToken(ctx, token.ID, worker)
		a.forget(token.ID)
		if err == nil {
			token.Worker = worker
			return token, nil
		}
		if !problem.Is(err, problem.Conflict) {
			return Token{}, err
		}
		if token, err = a.store.Token(ctx, token.ID); err != nil {
			return Token{}, err
		}
	}
	return Token{}, problem.New(problem.Forbidden,
		"this token belongs to the worker %q, and this one is %q: make another with 'tandem token create --scope worker --worker %s', or one for many machines with --worker '*'",
		token.Worker, worker, worker)
}

// note writes down that the token was used, now and then: that it cannot be is
// no reason to refuse whoever uses it.
func (a *Authenticator) note(ctx context.Context, token Token) {
	id, now := token.ID, a.now()
	if parent := token.parent(); parent != "" {
		id = parent
	}
	a.mutex.Lock()
	last, known := a.noted[id]
	due := !known || now.Sub(last) >= noteEvery
	if due {
		if len(a.noted) >= maxKept {
			clear(a.noted)
		}
		a.noted[id] = now
	}
	a.mutex.Unlock()
	if due {
		_ = a.store.UseToken(ctx, id, now.UTC())
	}
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
	a.note(ctx, token)
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
	delete(a.noted, id)
	a.deletions++
}

// errUnknown is the one answer to every secret that opens nothing, so that
// nobody learns which ids exist.
func errUnknown() error {
	return problem.New(problem.Unauthorized, "the token is not valid: it is unknown, was revoked or has expired")
}
