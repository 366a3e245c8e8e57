// Package study is the hub: what is being tuned, and what happens next?
//
// [Service] holds the use cases (create, lease, report, finish, promote,
// expire, recommend). Each is one decision by the pure packages below it and
// one [Change] applied by a [Store] in one transaction; no transaction is open
// while a search thinks. The package does no I/O of its own: storage, the clock
// and randomness come in through small interfaces, and it knows neither HTTP
// nor SQL.
//
// Its one invariant: what a caller was told has been stored, and a write under
// an old lease epoch changes nothing.
package study

import (
	"encoding/json"
	"time"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// Study is a stored study.
type Study struct {
	ID string `json:"id"`
	// Owner is the user whose it is; empty for a study of the administrators.
	Owner      string                `json:"owner,omitempty"`
	Definition definition.Definition `json:"definition"`
	Status     protocol.StudyStatus  `json:"status"`
	Reason     string                `json:"reason,omitempty"`
	Created    time.Time             `json:"created"`
	// Elapsed is how long it has been running until Since. Neither pauses nor
	// times without a server count.
	Elapsed time.Duration `json:"elapsed"`
	// Since is when it last began to run (it was created or resumed, or a
	// server started); nil when it does not.
	Since    *time.Time `json:"since,omitempty"`
	Finished *time.Time `json:"finished,omitempty"`
	// Annotation is what people wrote about it.
	trial.Annotation
}

// ElapsedAt is how long the study has been running at the time.
func (s Study) ElapsedAt(now time.Time) time.Duration {
	if s.Since == nil {
		return s.Elapsed
	}
	return s.Elapsed + now.Sub(*s.Since)
}

// EventKind names what happened.
type EventKind string

// The kinds of events in a study's log.
const (
	StudyCreated EventKind = "study_created"
	StatusChange EventKind = "study_status"
	TrialState   EventKind = "trial_state" // Data: the trial
	Reported     EventKind = "report"      // Data: the report
	Checkpointed EventKind = "checkpoint"  // Data: the checkpoint
	Emulated     EventKind = "emulation"   // Data: what an inference of its model takes
	// Annotated says what people wrote about the trial, or about the study where
	// it names none. Data: the annotation.
	Annotated EventKind = "annotation"
	// Searched is an input of the search and its answer: the lines a replay
	// needs. Data: Decision.
	Searched EventKind = "search"
)

// Event is one line of a study's log. (Study, Sequence) is unique, and
// sequences have no gaps: two writers that both believe to be next collide,
// and the second one's whole change is refused.
type Event struct {
	Study    string    `json:"study_id"`
	Sequence int64     `json:"sequence"`
	At       time.Time `json:"at"`
	Kind     EventKind `json:"kind"`
	// Trial and State are set for events about a trial; State also for a status.
	Trial  trial.ID        `json:"trial_id,omitempty"`
	State  string          `json:"state,omitempty"`
	Worker string          `json:"worker,omitempty"`
	Reason string          `json:"reason,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
}

// Snapshot is a search's state behind the event with the sequence.
type Snapshot struct {
	Study    string
	Sequence int64
	State    json.RawMessage
}

// Receipt is the stored answer of a mutating call, by its Idempotency-Key.
type Receipt struct {
	Key string
	// Request is the SHA-256 of method, path and body.
	Request string
	Answer  json.RawMessage
	At      time.Time
}
