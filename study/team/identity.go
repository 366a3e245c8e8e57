package team

import (
	"context"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/journal"
)

// Identity is who a user is at an identity provider, and in which of its groups.
type Identity struct {
	Issuer  string   `json:"issuer"`
	Subject string   `json:"subject"`
	Groups  []string `json:"groups"`
}

// Identify returns the user that the identity is, whom it makes at its first sign-in by the
// wanted name. A user is one identity for good: the error is a conflict where the name is
// another identity's, or that of a user whose tokens an administrator made.
func (d *Directory) Identify(ctx context.Context, wanted string, identity Identity) (user string, err error) {
	if err := d.gate.Enter(ctx); err != nil {
		return "", err
	}
	defer d.gate.Leave()
	now := d.now.Load()
	for name, one := range now.known {
		if one.Issuer == identity.Issuer && one.Subject == identity.Subject {
			user = name
		}
	}
	if user == "" {
		if _, taken := now.known[wanted]; taken {
			return "", problem.New(problem.Conflict, "the user %s is somebody else at the identity provider: an administrator can remove that user", wanted)
		}
		if err := d.unused(ctx, wanted); err != nil {
			return "", err
		}
		user = wanted
	} else if slices.Equal(now.known[user].Groups, identity.Groups) {
		return user, nil
	}
	return user, d.change(ctx, new(struct{}), journal.Entry(identityEntry, user, identity))
}

// unused returns a conflict where a user of the name has tokens.
func (d *Directory) unused(ctx context.Context, name string) error {
	if d.options.Users == nil {
		return nil
	}
	users, err := d.options.Users(ctx)
	if err == nil && users[name] {
		return problem.New(problem.Conflict, "there is a user %s already, with tokens that an administrator made: revoke them all before you sign in as %s", name, name)
	}
	return err
}

// ForgetIdentity lets another identity become the user, at its next sign-in.
func (d *Directory) ForgetIdentity(ctx context.Context, user string) error {
	if err := d.gate.Enter(ctx); err != nil {
		return err
	}
	defer d.gate.Leave()
	return d.change(ctx, new(struct{}), journal.PoolEntry{Kind: identityEntry, Name: user})
}

// Identities are who users are at an identity provider, by their names. They are not to
// be changed.
func (d *Directory) Identities() map[string]Identity { return d.now.Load().known }
