package guard

import (
	"strings"

	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/web/auth"
)

// Access says who may use a route. The zero value is nobody.
type Access uint16

// Those who may use a route: the holders of tokens, by scope, and everybody.
const (
	Nobody Access = 0

	Admins Access = 1 << iota
	users
	workers
	viewers
	links
	launchers
	devices
	// Enrolments are exchanged for workers' tokens.
	Enrolments
	// Everybody needs no token.
	Everybody

	Onlookers = Admins | viewers         // see the studies of all users
	Owners    = Admins | users           // have studies
	Readers   = Admins | users | viewers // read studies
	Guests    = Readers | links          // read a study
	Runners   = Admins | users | workers // run trials
	Holders   = Admins | users | workers | viewers
	Measurers = Admins | devices                      // measure models on boards
	Bearers   = Holders | links | launchers | devices // have a token for more than one request
	Starters  = Owners | launchers                    // start workers
	Planners  = Readers | launchers                   // read what is wanted of workers
)

var accessOf = map[auth.Scope]Access{
	auth.Admin: Admins, auth.User: users, auth.Worker: workers, auth.Viewer: viewers, auth.Link: links,
	auth.Launcher: launchers, auth.Device: devices, auth.Enrolment: Enrolments,
}

// Allows reports whether a token with the scope opens the route.
func (a Access) Allows(scope auth.Scope) bool { return a&accessOf[scope] != 0 }

// CallerOf returns the caller that a request with the token acts for. Without a token
// that is nobody.
func CallerOf(token auth.Token) access.Caller {
	switch token.Scope {
	case auth.Admin:
		return access.Caller{Holder: access.Administrators}
	case auth.User:
		return access.Caller{Owner: token.Name, Sight: access.Own, Holder: access.UserHolder(token.Name)}
	case auth.Launcher:
		caller := access.Caller{Holder: access.CrewHolder(token.Name, token.ID)}
		if token.Name != access.AnyUser {
			caller.Owner, caller.Sight = token.Name, access.Own
		}
		return caller
	case auth.Worker, auth.Enrolment:
		holder := "token:" + token.ID
		if token.Launched() {
			holder = access.CrewHolder(token.Name, token.Parent()) + "/" + token.Subject
		} else if token.Worker != "" && token.Worker != auth.AnyWorker {
			holder = "worker:" + token.Worker
		}
		return access.Caller{Sight: access.Held, Holder: holder}
	case auth.Viewer:
		return access.Caller{Holder: "viewer:" + token.ID}
	case auth.Device: // sees no study
		caller := access.Nobody()
		caller.Holder = "device:" + token.ID
		return caller
	case auth.Link:
		return access.Caller{Sight: access.Shared, Study: token.Subject, Holder: "link:" + token.ID}
	}
	return access.Nobody()
}

// CallerFor returns the caller that asks for what the role allows. Only users have roles:
// what is theirs, such as their launchers, acts on their own studies.
func CallerFor(token auth.Token, role access.Role) access.Caller {
	caller := CallerOf(token)
	if token.Scope == auth.User {
		caller.Asks = role
	}
	return caller
}

// Scopes lists the scopes that open the route.
func (a Access) Scopes() []string {
	list := []string{}
	for _, scope := range auth.Scopes() {
		if a.Allows(scope) {
			list = append(list, string(scope))
		}
	}
	return list
}

// String names the scopes.
func (a Access) String() string { return strings.Join(a.Scopes(), ", ") }
