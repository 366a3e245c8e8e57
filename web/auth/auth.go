// Package auth answers: who is calling, and may they?
//
// Tokens are random; only their SHA-256 is stored. A token has one [Scope].
// The package is pure but for the [Store] it is given.
package auth

import (
	"context"
	"time"
)

// Scope is what a token may do.
type Scope string

// The scopes, each including nothing of the others unless said.
const (
	Admin  Scope = "admin"  // everything
	Worker Scope = "worker" // register, lease, report, artifacts; reads nothing else
	Viewer Scope = "viewer" // every read, no write
)

// Token is a stored token.
type Token struct {
	// ID is the public part, shown in listings.
	ID    string
	Name  string
	Scope Scope
	// Hash is the SHA-256 of the secret part.
	Hash    [32]byte
	Created time.Time
	// Expires, if set, is when it stops being valid.
	Expires *time.Time
}

// Store keeps tokens. Implementations pass store/storetest.
type Store interface {
	// InsertToken adds a token; an id that is taken is a conflict.
	InsertToken(ctx context.Context, token Token) error
	// Token finds a token by id; not_found if there is none.
	Token(ctx context.Context, id string) (Token, error)
	// Tokens lists all tokens, the oldest first.
	Tokens(ctx context.Context) ([]Token, error)
	// DeleteToken removes a token; not_found if there is none.
	DeleteToken(ctx context.Context, id string) error
}
