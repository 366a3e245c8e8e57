// Package crew is what launchers, and the workers that they start, tell a server and ask it.
package crew

import (
	"time"

	"github.com/tandem-tune/tandem/study/selector"
)

// EnrolmentRequest asks for tokens with which workers of these launches register.
type EnrolmentRequest struct {
	Launches []string `json:"launches" minItems:"1" maxItems:"1000" doc:"what the workers say with --launch: 1 to 64 letters, digits, dots, dashes and underscores each"`
	// TTLSeconds is until when a worker must have started and ended.
	TTLSeconds float64 `json:"ttl_seconds" exclusiveMinimum:"0" maximum:"31622400" doc:"how long enrolments are valid, and the workers' tokens that they are exchanged for"`
}

// Enrolments are those that were asked for, in that order.
type Enrolments struct {
	Enrolments []Enrolment `json:"enrolments"`
}

// Enrolment is a token that is exchanged once for the token of a launch's worker.
type Enrolment struct {
	Launch string `json:"launch"`
	Token  string `json:"token" doc:"the secret: it cannot be shown again"`
}

// EnrolmentExchange uses an enrolment up.
type EnrolmentExchange struct {
	Nonce string `json:"nonce" minLength:"26" maxLength:"128" doc:"a secret that the worker draws: with the same one, an answer that was lost is had again"`
}

// LaunchedToken is the token of a worker that a launcher started.
type LaunchedToken struct {
	Launch  string     `json:"launch"`
	Token   string     `json:"token"`
	Expires *time.Time `json:"expires,omitempty"`
}

// PoolWanted is what studies would start now if there were workers for it.
type PoolWanted struct {
	Studies []WantedStudy `json:"studies"`
	// Workers are those that were launched with the caller's token.
	Workers []LaunchedWorker `json:"workers" doc:"those that launchers started with this token"`
	// User is whose studies alone these are.
	User string `json:"user,omitempty" doc:"whose studies alone these are; missing: those of all users and administrators"`
	// Free is how many trials other workers would take that are open to the studies.
	Free int `json:"free" minimum:"0" doc:"how many more trials other workers would take"`
}

// LaunchedWorker is a worker as its launcher sees it.
type LaunchedWorker struct {
	ID     string `json:"id"`
	Launch string `json:"launch"`
	Trials int    `json:"trials" doc:"trials that it runs"`
	Slots  int    `json:"slots" doc:"trials that it would run at once; 0: it takes no more"`
}

// WantedStudy is what one study would start, as far as its own bounds and its owner's
// quota leave.
type WantedStudy struct {
	Study   string `json:"study"`
	StudyID string `json:"study_id"`
	// Trials is how many could start now, beside those that run, each with at least
	// so many GPUs, cores and bytes of memory; 0: the study does not ask for any.
	Trials      int   `json:"trials" doc:"trials that could start now, beside those that run"`
	GPUs        int   `json:"gpus,omitempty" doc:"whole GPUs that each needs; 1 for a share of one"`
	Cores       int   `json:"cores,omitempty" doc:"cores that each asks for"`
	MemoryBytes int64 `json:"memory_bytes,omitempty" doc:"memory that each asks for"`
	// Recipient is the key that workers must hold.
	Recipient string `json:"recipient,omitempty" doc:"age public key whose identity workers must hold; absent: they must hold none"`
	// Selector says which machines may run them.
	selector.Selector
}
