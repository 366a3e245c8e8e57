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

// SignInProvider is who else may sign people in.
type SignInProvider struct {
	Issuer string `json:"issuer,omitempty" doc:"address of the identity provider; absent: there is none"`
}

// SignInStart is where a browser signs in.
type SignInStart struct {
	Address string `json:"address" doc:"the page of the identity provider; it leads back to /login"`
}

// SignInFinish is what the provider sent the browser back with.
type SignInFinish struct {
	Code  string `json:"code" minLength:"1" maxLength:"3072"`
	State string `json:"state" minLength:"1" maxLength:"256"`
}

// DeviceSignIn is a sign-in that ends in a browser on any device.
type DeviceSignIn struct {
	DeviceCode string  `json:"device_code" doc:"what this device asks with; a secret"`
	UserCode   string  `json:"user_code" doc:"what the person types"`
	Address    string  `json:"verification_uri" doc:"where"`
	Complete   string  `json:"verification_uri_complete,omitempty" doc:"the same with the code in it"`
	Seconds    float64 `json:"expires_in"`
	Interval   float64 `json:"interval" doc:"seconds between questions, at least"`
}

// DevicePoll asks whether somebody has signed in.
type DevicePoll struct {
	DeviceCode string `json:"device_code" minLength:"1" maxLength:"3072"`
}

// DeviceToken is the token of who has signed in; absent while nobody has.
type DeviceToken struct {
	Issued *IssuedToken `json:"issued,omitempty"`
}

// UserView is a user as administrators see it.
type UserView struct {
	Name    string     `json:"name"`
	Tokens  int        `json:"tokens" doc:"its tokens that are valid"`
	Used    *time.Time `json:"used,omitempty" doc:"when one of them was last used"`
	Issuer  string     `json:"issuer,omitempty" doc:"the identity provider that it signs in with"`
	Subject string     `json:"subject,omitempty" doc:"who it is there"`
	Groups  []string   `json:"groups,omitempty" doc:"its groups there"`
}
