package protocol

import "time"

// TokenRequest asks for a new token.
type TokenRequest struct {
	Name  string `json:"name" minLength:"1" maxLength:"128" doc:"who or what will use it; for the scopes user and launcher, the user's name; for a launcher for all users, *"`
	Scope string `json:"scope" enum:"admin,user,worker,viewer,launcher,device"`
	// Worker is the name of the worker that a token with the scope worker is for:
	// empty for the first one that uses it, "*" for any number of them.
	Worker string `json:"worker,omitempty" maxLength:"128" doc:"for the scope worker: the name of the worker it is for; empty: the first that uses it; *: any number of them"`
	// TTLSeconds is how long it is valid; 0 means that it never expires.
	TTLSeconds float64 `json:"ttl_seconds,omitempty" minimum:"0" maximum:"315360000" doc:"how long it is valid; 0: it never expires"`
}

// TokenView is a token as clients see it: never its secret.
type TokenView struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Scope   string     `json:"scope" enum:"admin,user,worker,viewer,link,launcher,device"`
	Worker  string     `json:"worker,omitempty" doc:"the name of the worker it belongs to; empty: it was not used yet; *: any number of them"`
	Study   string     `json:"study_id,omitempty" doc:"the id of the study that a link opens"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
	Used    *time.Time `json:"used,omitempty" doc:"when it was last used"`
}

// IssuedToken is a new token with its secret, which is shown this once.
type IssuedToken struct {
	TokenView
	Token string `json:"token" doc:"the secret: it cannot be shown again"`
}

// Identity is whose token a request came with.
type Identity struct {
	Name  string `json:"name" doc:"the token's name: for the scope user, the user's"`
	Scope string `json:"scope" enum:"admin,user,worker,viewer,link,launcher,device"`
	Owner string `json:"owner,omitempty" doc:"whose studies it creates; absent if it creates none"`
	Study string `json:"study_id,omitempty" doc:"for a link: the id of the study that it opens"`
}
