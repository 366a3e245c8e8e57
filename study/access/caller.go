package access

import (
	"strings"

	"github.com/tandem-tune/tandem/internal/build"
)

// Administrators is shown as the owner of the studies that no user owns. No
// user has this name.
const Administrators = "admin"

// Caller is on whose behalf something is done. The zero Caller is the program itself,
// which may do everything.
type Caller struct {
	// Owner is to whom the studies belong that the caller creates; empty: to the
	// administrators.
	Owner string
	// Sight is which studies exist for it.
	Sight Sight
	// Study is the id of the study that was shared with it.
	Study string
	// Holder is to whom its workers and their leases belong. Only that holder may
	// write under them, besides the administrators and the program itself.
	Holder string
	// Asks is the least role that a request takes on a study of somebody else.
	Asks Role
	// Program is which tandem it is, as it calls itself.
	Program build.Build
}

// Sight is which studies exist for a caller.
type Sight uint8

// The sights.
const (
	All    Sight = iota // every study
	Own                 // those of its owner
	Held                // of every study, the trials that it holds
	Shared              // the one that was shared with it
)

// Sees reports whether the study, which is the owner's, exists for the caller.
func (c Caller) Sees(study, owner string) bool {
	switch c.Sight {
	case Own:
		return c.Owner == owner
	case Shared:
		return c.Study == study
	case All, Held:
	}
	return true
}

// Holds reports whether the caller may write under what the holder was granted.
// What was granted before holders were noted has none, and is open as it was. A user
// holds what launchers of that name started, and a launcher what it started.
func (c Caller) Holds(holder string) bool {
	if c.Holder == "" || c.Holder == Administrators || holder == "" || c.Holder == holder {
		return true
	}
	of, _ := strings.CutPrefix(holder, c.Holder+"/")
	return of != holder && (strings.HasPrefix(holder, ofUser) || strings.HasPrefix(holder, ofAll))
}

// Those who hold workers begin with what they are, where that matters.
const (
	ofUser = "user:"
	ofAll  = "launcher:"
)

// UserHolder holds the workers of a user.
func UserHolder(name string) string { return ofUser + name }

// CrewHolder holds the workers that were started with a token, for a user or [AnyUser].
// What it holds of one launch begins with it and a slash.
func CrewHolder(name, token string) string {
	if name == AnyUser {
		return ofAll + token
	}
	return UserHolder(name) + "/" + token
}

// UserOf is the user whose trials alone the holder's workers take; false if they take
// those of all.
func UserOf(holder string) (user string, of bool) {
	if user, of = strings.CutPrefix(holder, ofUser); !of {
		return "", false
	}
	user, _, _ = strings.Cut(user, "/")
	return user, true
}

// Nobody is who has not said who it is: it has no studies and no leases, as no user has
// its name.
func Nobody() Caller { return Caller{Owner: ":", Sight: Own, Holder: ":"} }
