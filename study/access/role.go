package access

import "strings"

// Role is what somebody may do with a study. A smaller one may do more.
type Role uint8

// The roles. The zero Role is the owner's, so that what says nothing asks for most.
const (
	RoleOwner  Role = iota // everything, as administrators may
	RoleEditor             // see the study, and steer it: stop, pause, extend, enqueue, annotate
	RoleViewer             // see the study, with its checkpoints
	NoRole                 // nothing: the study does not exist
)

var roles = [...]string{"owner", "editor", "viewer", "none"}

// String names the role.
func (r Role) String() string { return roles[min(r, NoRole)] }

// ParseRole returns the role that a group may give; [NoRole] for any other name.
func ParseRole(name string) Role {
	switch name {
	case "editor":
		return RoleEditor
	case "viewer":
		return RoleViewer
	}
	return NoRole
}

// Reaches reports whether the study, which is the owner's, exists for the caller, and
// whether what it asks for is allowed. by is the role that groups give the caller.
func (c Caller) Reaches(study, owner string, by Role) (exists, allowed bool) {
	if c.Sees(study, owner) {
		return true, true
	}
	exists = c.Sight == Own && by < NoRole
	return exists, exists && by <= c.Asks
}

// mostUser bounds the name of a user, in bytes.
const mostUser = 64

// IsUser reports whether the name may be a user's. It stands before the names of
// studies, and "admin" for the administrators'.
func IsUser(name string) bool {
	if name == "" || len(name) > mostUser || name == Administrators || strings.ContainsRune("._-", rune(name[0])) {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}) < 0
}
