package protocol

// UserGroupRequest says who is in a group, and as what.
type UserGroupRequest struct {
	// Members are roles by the names of users.
	Members map[string]string `json:"members" maxProperties:"1000" doc:"the role of each member, by the user's name: viewer sees the studies that are shared with the group, editor also stops, pauses, extends, enqueues and annotates"`
	// Provided is the role of those whom the identity provider puts into a group of this
	// name; empty: none.
	Provided string `json:"provided,omitempty" enum:"editor,viewer" doc:"the role of users whom the identity provider puts into a group of this name; absent: none"`
}

// UserGroup is a set of users, with a role for each.
type UserGroup struct {
	Name string `json:"name"`
	UserGroupRequest
}

// Ownership is whose a study is, and its name among theirs.
type Ownership struct {
	Owner string `json:"owner" minLength:"1" maxLength:"64" doc:"the user whose it is; admin: the administrators"`
	Name  string `json:"name,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"its name from then on; absent: as before"`
}

// Sharing is with which groups a study is shared.
type Sharing struct {
	Groups []string `json:"groups" maxItems:"16" doc:"names of groups; of its own ones, for a user; empty: it is the owner's alone"`
}
