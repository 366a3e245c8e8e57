package auth

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
)

// keepFor is how long a token that was looked up is trusted: a token deleted
// behind our back, in the store itself, works that much longer.
const keepFor = 5 * time.Second

// maxKept bounds the tokens in memory.
const maxKept = 16_384

// Authenticator says whose token was shown. It is safe for concurrent use.
type Authenticator struct {
	store Store
	now   func() time.Time

	// deleting lets one deletion at a time decide which token is the last one.
	deleting sync.Mutex

	mutex sync.Mutex
	kept  map[string]keptToken
	used  map[string]time.Time // the latest uses that are not in the store yet
	// deletions counts: a look-up that began before a deletion is not kept.
	deletions uint64
}

type keptToken struct {
	token Token
	until time.Time
}

// NewAuthenticator returns an Authenticator on the store and the clock.
func NewAuthenticator(store Store, now func() time.Time) *Authenticator {
	return &Authenticator{store: store, now: now, kept: make(map[string]keptToken), used: make(map[string]time.Time)}
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

// Recognize returns the token or the session whose secret was shown, if it was looked
// up before and has not ended since. It asks no store: it costs nobody anything, and
// works while the store does not. Only Token and Session know what is valid now.
func (a *Authenticator) Recognize(secret Secret) (Token, bool) {
	shown, err := parse(secret.Reveal())
	if err != nil {
		return Token{}, false
	}
	a.mutex.Lock()
	token := a.kept[shown.id].token
	a.mutex.Unlock()
	kind := string(token.Scope)
	if token.Session() {
		kind = sessionKind
	}
	return token, shown.proves(token) && shown.kind == kind && !token.Expired(a.now())
}

// Valid returns unauthorized if the token that was authenticated is so no
// longer: for requests that last.
func (a *Authenticator) Valid(ctx context.Context, id string) error {
	_, err := a.find(ctx, id)
	return err
}

// Delete removes a token and its sessions: the token first, with which all of
// them end, so that a failure in between leaves nothing open. not_found if there
// is none; the last admin token that does not expire is a conflict, as nobody
// could make another one.
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
	err = a.store.DeleteToken(ctx, id)
	a.forget(id)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // nobody could ask for the rest again
	for _, token := range tokens {
		if token.Parent() == id {
			err = errors.Join(err, a.remove(ctx, token.ID))
		}
	}
	return err
}

// Expired reports whether the token's time is over.
func (a *Authenticator) Expired(token Token) bool { return token.Expired(a.now()) }

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

// note remembers that the token was used: what only reads must not wait for a
// write, nor fail with it.
func (a *Authenticator) note(token Token) {
	id := token.ID
	if parent := token.Parent(); parent != "" {
		id = parent
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if _, known := a.used[id]; !known && len(a.used) >= maxKept {
		clear(a.used)
	}
	a.used[id] = a.now().UTC()
}

// Tokens lists all tokens, the oldest first, with their latest uses.
func (a *Authenticator) Tokens(ctx context.Context) ([]Token, error) {
	tokens, err := a.store.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for i := range tokens {
		if used, known := a.used[tokens[i].ID]; known {
			tokens[i].Used = &used
		}
	}
	return tokens, nil
}

// Users are the names of the users who have a token, one that has expired too.
func (a *Authenticator) Users(ctx context.Context) (map[string]bool, error) {
	tokens, err := a.store.Tokens(ctx)
	users := map[string]bool{}
	for _, token := range tokens {
		if token.Scope == User {
			users[token.Name] = true
		}
	}
	return users, err
}

// Flush writes down when tokens were last used. It is called now and then, and
// at the end: what a crash takes along is not missed.
func (a *Authenticator) Flush(ctx context.Context) error {
	a.mutex.Lock()
	used := a.used
	a.used = make(map[string]time.Time)
	a.mutex.Unlock()
	failures := make(chan error, len(used))
	var all sync.WaitGroup
	for id, at := range used {
		all.Go(func() { // together, so that they share the wait for the disk
			if err := a.store.UseToken(ctx, id, at); !problem.Is(err, problem.NotFound) { // revoked since
				failures <- err
			}
		})
	}
	all.Wait()
	close(failures)
	var err error
	for failure := range failures {
		err = errors.Join(err, failure)
	}
	return err
}

// EndSession removes a session; that it is gone already is fine.
func (a *Authenticator) EndSession(ctx context.Context, session Token) error {
	switch {
	case session.Session():
		return a.remove(ctx, session.ID)
	case session.Scope == User: // 'tandem logout'
		return a.Delete(ctx, session.ID)
	}
	return problem.New(problem.Invalid, "this is no session and no user's token: a token is deleted by an admin")
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
	a.note(token)
	return token, nil
}

// find returns the token with the id that is valid now, as must be the one it
// was made from.
func (a *Authenticator) find(ctx context.Context, id string) (Token, error) {
	token, err := a.lookUp(ctx, id)
	if problem.Is(err, problem.NotFound) || err == nil && token.Expired(a.now()) {
		return Token{}, errUnknown()
	}
	if err != nil {
		return Token{}, err
	}
	if parent := token.Parent(); parent != "" {
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
	delete(a.used, id)
	a.deletions++
}

// errUnknown is the one answer to every secret that opens nothing, so that
// nobody learns which ids exist.
func errUnknown() error {
	return problem.New(problem.Unauthorized, "the token is not valid: it is unknown, was revoked or has expired")
}
