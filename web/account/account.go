// Package account keeps the users that tokens make, and those whom an identity provider
// signs in.
package account

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/team"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/oidc"
)

// mostSignedIn bounds the tokens of a user that are valid at once.
const mostSignedIn = 100

// Identities say who users are at an identity provider. team.Directory has them.
type Identities interface {
	Identify(ctx context.Context, wanted string, identity team.Identity) (user string, err error)
	ForgetIdentity(ctx context.Context, user string) error
	Identities() map[string]team.Identity
}

// Users has the use cases.
type Users struct {
	Authenticator *auth.Authenticator
	Tokens        auth.Store
	Identities    Identities
	// Audit writes down that somebody signs in with a token.
	Audit func(ctx context.Context, token auth.Token) error
}

// Welcome makes a token for a person who has signed in: it ends by itself.
func (u Users) Welcome(ctx context.Context, person oidc.Person, life time.Duration) (secret string, token auth.Token, err error) {
	user, err := u.Identities.Identify(ctx, person.User, team.Identity{Issuer: person.Issuer, Subject: person.Subject, Groups: person.Groups})
	if err != nil {
		return "", token, err
	}
	present, err := u.tokensOf(ctx, user)
	if err != nil {
		return "", token, err
	}
	valid := 0
	for _, one := range present {
		if !u.Authenticator.Expired(one) {
			valid++
		} else if err := u.Authenticator.Delete(ctx, one.ID); err != nil && !problem.Is(err, problem.NotFound) {
			return "", token, err
		}
	}
	if valid >= mostSignedIn {
		return "", token, problem.New(problem.Exhausted, "%s has %d tokens, and there may be no more: wait until some expire, or have them revoked", user, valid)
	}
	if secret, token, err = auth.Issue(ctx, u.Tokens, auth.Request{Name: user, Scope: auth.User, Life: life}); err != nil {
		return "", token, err
	}
	if err := u.Audit(ctx, token); err != nil {
		return "", token, errors.Join(err, u.Tokens.DeleteToken(ctx, token.ID))
	}
	return secret, token, nil
}

// tokensOf returns the user's tokens, without sessions.
func (u Users) tokensOf(ctx context.Context, user string) ([]auth.Token, error) {
	tokens, err := u.Authenticator.Tokens(ctx)
	return slices.DeleteFunc(tokens, func(one auth.Token) bool {
		return one.Scope != auth.User || one.Parent() != "" || user != "" && one.Name != user
	}), err
}

// List returns the users who have tokens or have signed in, by name.
func (u Users) List(ctx context.Context) ([]protocol.UserView, error) {
	tokens, err := u.tokensOf(ctx, "")
	if err != nil {
		return nil, err
	}
	list, at := []protocol.UserView{}, map[string]int{}
	of := func(name string) *protocol.UserView {
		if _, known := at[name]; !known {
			at[name] = len(list)
			list = append(list, protocol.UserView{Name: name})
		}
		return &list[at[name]]
	}
	for _, one := range tokens {
		if user := of(one.Name); !u.Authenticator.Expired(one) {
			user.Tokens++
			if one.Used != nil && (user.Used == nil || one.Used.After(*user.Used)) {
				user.Used = one.Used
			}
		}
	}
	for name, identity := range u.Identities.Identities() {
		user := of(name)
		user.Issuer, user.Subject, user.Groups = identity.Issuer, identity.Subject, identity.Groups
	}
	slices.SortFunc(list, func(a, b protocol.UserView) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// Remove ends what there is of the user. Whom the provider and the rules still let in
// becomes a user again by signing in.
func (u Users) Remove(ctx context.Context, user string) error {
	tokens, err := u.tokensOf(ctx, user)
	if err != nil {
		return err
	}
	if _, known := u.Identities.Identities()[user]; !known && len(tokens) == 0 {
		return problem.New(problem.NotFound, "there is no user %q: 'tandem user list' says which there are", user)
	}
	for _, one := range tokens {
		if failed := u.Authenticator.Delete(ctx, one.ID); !problem.Is(failed, problem.NotFound) {
			err = errors.Join(err, failed)
		}
	}
	return errors.Join(err, u.Identities.ForgetIdentity(ctx, user))
}
