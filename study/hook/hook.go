// Package hook is what is said about hooks: who is told what happens in studies, and
// what became of it. Package web/hooks tells them.
package hook

import (
	"time"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// Kind is how a receiver is told.
type Kind string

// The kinds.
const (
	Webhook Kind = "webhook" // a signed JSON document (Standard Webhooks)
	Slack   Kind = "slack"   // a text, as Slack and what is compatible with it take it
	Email   Kind = "email"   // a message by the server's mail relay
	Command Kind = "command" // a program of the server's machine, with the document as its input
)

// HookRequest asks for a hook.
type HookRequest struct {
	definition.Hook
	Kind Kind `json:"kind" doc:"webhook, slack, email or command"`
	// URL takes a POST. It is a secret: nothing shows it again.
	URL string `json:"url,omitempty" maxLength:"2048" doc:"of a webhook or slack: where to POST; never shown again"`
	// Address takes e-mail. Its domain is one that the server's operator has allowed.
	Address string `json:"address,omitempty" maxLength:"254" doc:"of an email: the receiver, in a domain that the server's operator allowed"`
	// Command is an argv, whose program the server's operator has allowed.
	Command []string `json:"command,omitempty" maxItems:"64" doc:"of a command: its program, which the server's operator allowed, and its arguments"`
	// All has it told of all studies of its owner; those of administrators, of everybody's.
	All bool `json:"all,omitempty" doc:"tell it of all studies of its owner (an administrator's: of everybody's), not only of those that name it"`
}

// HookView is a hook without its secrets.
type HookView struct {
	definition.Hook
	Owner   string    `json:"owner" doc:"whose it is"`
	Kind    Kind      `json:"kind" doc:"webhook, slack, email or command"`
	To      string    `json:"to" doc:"the receiver's host or address, or the program"`
	All     bool      `json:"all,omitempty" doc:"told of all studies of its owner"`
	Created time.Time `json:"created" doc:"since when it is told"`
}

// IssuedHook is a hook that was just made.
type IssuedHook struct {
	HookView
	// Secret is the key that webhooks are signed with. It is in this answer only.
	Secret string `json:"secret,omitempty" doc:"the key of the signatures of a webhook; shown this once"`
}

// HookAnswer is what a receiver answered.
type HookAnswer struct {
	Told   bool   `json:"told" doc:"whether the receiver took it"`
	Answer string `json:"answer" doc:"what the receiver answered, or why it could not be reached"`
}

// HookDelivery is what became of telling a hook of a study.
type HookDelivery struct {
	Name string `json:"name" doc:"the hook's name"`
	Kind Kind   `json:"kind,omitempty" doc:"webhook, slack, email or command"`
	To   string `json:"to,omitempty" doc:"the receiver's host or address, or the program"`
	Delivered
	// Waiting is how many messages are to be told now.
	Waiting int `json:"waiting" doc:"messages that are tried now"`
}

// Delivered counts messages.
type Delivered struct {
	Told    int        `json:"told" doc:"messages that the receiver took"`
	Dropped int        `json:"dropped" doc:"messages that were given up, after a day of tries"`
	Tried   *time.Time `json:"tried,omitempty" doc:"when it was last tried"`
	Answer  string     `json:"answer,omitempty" doc:"the last answer, or why there was none"`
	// Failing is since when each try has failed; nil: the last one did not.
	Failing *time.Time `json:"failing,omitempty" doc:"since when each try has failed"`
}

// Message is what a receiver is told.
type Message struct {
	// ID is the same each time the message is tried.
	ID   string              `json:"id"`
	Type definition.Occasion `json:"type"`
	At   time.Time           `json:"timestamp"`
	Data Data                `json:"data"`
}

// Data is what a message says.
type Data struct {
	Study  string        `json:"study"`
	ID     string        `json:"study_id"`
	Owner  string        `json:"owner,omitempty"`
	Text   string        `json:"text"`
	Trial  *int          `json:"trial,omitempty"`
	Values []trial.Float `json:"values,omitempty"`
}
