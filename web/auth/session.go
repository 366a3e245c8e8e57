package auth

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
)

// SessionLife is how long a browser stays signed in.
const SessionLife = 12 * time.Hour

// maxSessions and maxReaders bound the sessions of one token: the oldest gives
// way. A link is opened by many people.
const (
	maxSessions = 32
	maxReaders  = 512
)

// A session is a token with the id "<id of its token>.<letters>". It has that
// token's scope, opens what it opens, and ends with it.

// StartSession makes a session of a token that was authenticated, for a
// browser to keep in a cookie. A worker's token has no session: there is
// nothing it could read.
func (a *Authenticator) StartSession(ctx context.Context, token Token) (Secret, Token, error) {
	if token.Scope == Worker || token.Scope == Launcher || token.Scope == Enrolment || token.Scope == Device {
		return "", Token{}, problem.New(problem.Forbidden, "a token with the scope %s cannot sign in: use an admin's, a user's or a viewer's token", token.Scope)
	}
	if err := a.tidySessions(ctx, token); err != nil {
		return "", Token{}, err
	}
	now := a.now().UTC()
	expires := now.Add(SessionLife)
	if token.Expires != nil && token.Expires.Before(expires) {
		expires = *token.Expires
	}
	session := Token{ID: token.ID + "." + draw(idLetters), Name: token.Name, Scope: token.Scope, Subject: token.Subject, Created: now, Expires: &expires}
	secret, err := insert(ctx, a.store, sessionKind, &session)
	return Secret(secret), session, err
}

// tidy removes what was made from tokens and is over. It returns what was made from the
// parent and is not.
func (a *Authenticator) tidy(ctx context.Context, parent string) (siblings []Token, err error) {
	tokens, err := a.store.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	now := a.now()
	for _, token := range tokens {
		switch {
		case token.Parent() == "":
		case token.Expired(now):
			if err := a.remove(ctx, token.ID); err != nil {
				return nil, err
			}
		case token.Parent() == parent:
			siblings = append(siblings, token)
		}
	}
	return siblings, nil
}

// tidySessions removes the sessions that are over, and those of the token that
// are too many.
func (a *Authenticator) tidySessions(ctx context.Context, parent Token) error {
	siblings, err := a.tidy(ctx, parent.ID)
	if err != nil {
		return err
	}
	siblings = slices.DeleteFunc(siblings, Token.Launched)
	slices.SortFunc(siblings, func(x, y Token) int { return cmp.Compare(x.Created.UnixNano(), y.Created.UnixNano()) })
	most := maxSessions
	if parent.Scope == Link {
		most = maxReaders
	}
	for len(siblings) >= most {
		if err := a.remove(ctx, siblings[0].ID); err != nil {
			return err
		}
		siblings = siblings[1:]
	}
	return nil
}

// remove deletes one token; that it is gone already is fine.
func (a *Authenticator) remove(ctx context.Context, id string) error {
	err := a.store.DeleteToken(ctx, id)
	a.forget(id)
	if problem.Is(err, problem.NotFound) {
		return nil
	}
	return err
}
