// Package auth answers: who is calling, and may they?
//
// Tokens are random; only their SHA-256 is stored. A token has one [Scope].
// The package is pure but for the [Store] it is given.
package auth

import "github.com/tandem-tune/tandem/study/access"

// What is known of a token is defined in package access.
type (
	Scope  = access.Scope
	Token  = access.Token
	Store  = access.Store
	Secret = access.Secret
)

// The scopes, and the worker of a token that many machines share.
const (
	Admin     = access.Admin
	User      = access.User
	Worker    = access.Worker
	Viewer    = access.Viewer
	Link      = access.Link
	Launcher  = access.Launcher
	Enrolment = access.Enrolment
	Device    = access.Device
	AnyWorker = access.AnyWorker
)
