// Package access is who may see and change what: tokens, their scopes, and the
// contract of the store that keeps them. Package web/auth makes and checks tokens.
package access

import (
	"context"
	"strings"
	"time"
)

// Scope is what a token may do.
type Scope string

// The scopes, each including nothing of the others unless said.
const (
	Admin  Scope = "admin"  // everything
	User   Scope = "user"   // the studies of the user that the token is named after, and running their trials
	Worker Scope = "worker" // register, lease, report, artifacts; reads nothing else
	// Launcher starts workers: it reads what is wanted of them, makes enrolments for
	// them, and says which of its own are gone. It takes no trials.
	Launcher Scope = "launcher"
	// Enrolment is exchanged once for the token of a worker that a launcher started.
	Enrolment Scope = "enrolment"
	// Device measures models on a board: it asks for them, and reports what they took.
	Device Scope = "device"
	Viewer Scope = "viewer" // every read, no write
	Link   Scope = "link"   // reads one study, for whoever has the link to it
)

// Token is a stored token.
type Token struct {
	// ID is the public part, shown in listings.
	ID string
	// Name is the user's for a token of a user: all tokens of that name are the
	// same user's. So it is for a launcher and what it enrols, or [AnyUser]. For
	// others it says who or what uses the token.
	Name  string
	Scope Scope
	// Worker is the machine that a worker's token belongs to: empty until it is
	// first used, [AnyWorker] for one that many machines share. For an enrolment it is
	// the id of the token that it was exchanged for.
	Worker string
	// Subject is the id of the study that a link opens, and the launch that an
	// enrolment and the token of its worker are for; empty for other tokens.
	Subject string
	// Hash is the SHA-256 of the secret part.
	Hash    [32]byte
	Created time.Time
	// Expires, if set, is when it stops being valid.
	Expires *time.Time
	// Used is when it was last used; nil: never, as far as was written down.
	Used *time.Time
}

// AnyWorker is the Worker of a token that many machines share, AnyUser the Name of one
// whose workers run the trials of all users.
const (
	AnyWorker = "*"
	AnyUser   = "*"
)

// Store keeps tokens. Implementations pass store/storetest.
type Store interface {
	// InsertToken adds a token; an id that is taken is a conflict.
	InsertToken(ctx context.Context, token Token) error
	// Token finds a token by id; not_found if there is none.
	Token(ctx context.Context, id string) (Token, error)
	// Tokens lists all tokens, the oldest first.
	Tokens(ctx context.Context) ([]Token, error)
	// BindToken makes a token the worker's that belongs to none. One that is its
	// own already stays so; another's is a conflict, and not_found if there is no
	// such token.
	BindToken(ctx context.Context, id, worker string) error
	// UseToken notes when a token was last used: the latest time stays. not_found
	// if there is none.
	UseToken(ctx context.Context, id string, at time.Time) error
	// DeleteToken removes a token; not_found if there is none.
	DeleteToken(ctx context.Context, id string) error
}

// Session reports whether the token is a browser's session.
func (t Token) Session() bool { return t.Parent() != "" && !t.Launched() }

// Launched reports whether the token is an enrolment, or a worker's that was had for one.
func (t Token) Launched() bool {
	return t.Parent() != "" && (t.Scope == Enrolment || t.Scope == Worker)
}

// Principal is the id under which what is done with the token is counted: its
// own, or that of the token a session was started with.
func (t Token) Principal() string {
	if t.Session() {
		return t.Parent()
	}
	return t.ID
}

// Parent is the id of the token that a session was started with, or a launch was enrolled
// with; empty for other tokens.
func (t Token) Parent() string {
	parent, _, ok := strings.Cut(t.ID, ".")
	if !ok {
		return ""
	}
	return parent
}

// Lasting reports whether the token can always make another one.
func (t Token) Lasting() bool { return t.Scope == Admin && t.Expires == nil && !t.Session() }

// Expired reports whether the token is no longer valid at the time.
func (t Token) Expired(now time.Time) bool { return t.Expires != nil && !now.Before(*t.Expires) }
