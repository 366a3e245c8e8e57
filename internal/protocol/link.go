package protocol

import "time"

// MaxLinks is how many links to one study there may be at a time.
const MaxLinks = 100

// LinkRequest asks for a link that opens one study's pages, to look at, for
// whoever has it.
type LinkRequest struct {
	Name string `json:"name" minLength:"1" maxLength:"128" doc:"for whom it is; the list of links and the audit log show it"`
	// TTLSeconds is how long it opens the study, from a minute to 366 days.
	TTLSeconds float64 `json:"ttl_seconds" minimum:"60" maximum:"31622400" doc:"how long it opens the study"`
}

// LinkView is a link as its study's owner sees it: never its secret.
type LinkView struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Created time.Time  `json:"created"`
	Expires time.Time  `json:"expires"`
	Used    *time.Time `json:"used,omitempty" doc:"when it was last used"`
}

// IssuedLink is a new link with its secret, which is shown this once.
type IssuedLink struct {
	LinkView
	// Path is behind the server's address. Its secret stands behind the #, which
	// browsers send to nobody.
	Path  string `json:"path" doc:"path to append to the server's address; it holds the secret and is not shown again"`
	Token string `json:"token" doc:"the secret, for programs"`
}
