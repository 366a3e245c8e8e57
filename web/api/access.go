package api

import (
	"strings"

	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/web/auth"
)

// access is who may use a route. The zero value is nobody.
type access uint8

const (
	nobody access = 0

	admins access = 1 << iota
	users
	workers
	viewers
	links
	// everybody needs no token.
	everybody

	onlookers = admins | viewers         // who sees what all users do
	owners    = admins | users           // who has studies
	readers   = admins | users | viewers // who reads studies
	guests    = readers | links          // who reads a study
	runners   = admins | users | workers // who runs trials
	holders   = admins | users | workers | viewers
	bearers   = holders | links // who has any token
)

// allows reports whether a token with the scope opens the route.
func (a access) allows(scope auth.Scope) bool {
	switch scope {
	case auth.Admin:
		return a&admins != 0
	case auth.User:
		return a&users != 0
	case auth.Worker:
		return a&workers != 0
	case auth.Viewer:
		return a&viewers != 0
	case auth.Link:
		return a&links != 0
	}
	return false
}

// callerOf is on whose behalf a request with the token is made. A route that
// needs no token is called on nobody's.
func callerOf(token auth.Token) study.Caller {
	switch token.Scope {
	case auth.Admin:
		return study.Caller{Holder: study.Administrators}
	case auth.User:
		return study.Caller{Owner: token.Name, Sight: study.Own, Holder: "user:" + token.Name}
	case auth.Worker:
		holder := "token:" + token.ID
		if token.Worker != "" && token.Worker != auth.AnyWorker {
			holder = "worker:" + token.Worker
		}
		return study.Caller{Sight: study.Held, Holder: holder}
	case auth.Viewer:
		return study.Caller{Holder: "viewer:" + token.ID}
	case auth.Link:
		return study.Caller{Sight: study.Shared, Study: token.Study, Holder: "link:" + token.ID}
	}
	return study.Nobody()
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
