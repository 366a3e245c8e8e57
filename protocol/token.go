package protocol

import "time"

// TokenRequest asks for a new token.
type TokenRequest struct {
	Name  string `json:"name" minLength:"1" maxLength:"128" doc:"who or what will use it"`
	Scope string `json:"scope" enum:"admin,worker,viewer"`
	// TTLSeconds is how long it is valid; 0 means that it never expires.
	TTLSeconds float64 `json:"ttl_seconds,omitempty" minimum:"0" maximum:"315360000" doc:"how long it is valid; 0: it never expires"`
}

// TokenView is a token as clients see it: never its secret.
type TokenView struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Scope   string     `json:"scope" enum:"admin,worker,viewer"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
}

// IssuedToken is a new token with its secret, which is shown this once.
type IssuedToken struct {
	TokenView
	Token string `json:"token" doc:"the secret: it cannot be shown again"`
}
