package api

import (
	"strings"

	"github.com/tandem-tune/tandem/web/auth"
)

// access is who may use a route. The zero value is nobody.
type access uint8

const (
	nobody access = 0

	admins access = 1 << iota
	workers
	viewers
	// everybody needs no token.
	everybody

	readers = admins | viewers // who reads studies
	runners = admins | workers // who runs trials
	holders = admins | workers | viewers
)

// allows reports whether a token with the scope opens the route.
func (a access) allows(scope auth.Scope) bool {
	switch scope {
	case auth.Admin:
		return a&admins != 0
	case auth.Worker:
		return a&workers != 0
	case auth.Viewer:
		return a&viewers != 0
	}
	return false
}

// scopes lists the scopes that open the route.
func (a access) scopes() []string {
	list := []string{}
	for _, scope := range auth.Scopes() {
		if a.allows(scope) {
			list = append(list, string(scope))
		}
	}
	return list
}

// String names the scopes.
func (a access) String() string { return strings.Join(a.scopes(), ", ") }
