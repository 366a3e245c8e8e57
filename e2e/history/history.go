// Package history judges what a server that was harmed says at the end: the
// operations that clients know of are compared with its books.
//
// [Check] holds invariants that are true of every run, whatever was killed on
// the way: nothing that was acknowledged is missing, nothing is there that was
// never sent, nothing counts twice, and the search decides again what it
// decided. The package is pure, and knows neither how the operations were made
// nor what harmed the server.
package history

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
)

// Kind names what a worker asked for.
type Kind string

// The kinds of operations.
const (
	Lease      Kind = "lease"
	Report     Kind = "report"
	Checkpoint Kind = "checkpoint"
	Finish     Kind = "finish"
)

// Operation is a logical call, however often it was sent. It is noted before it
// is sent, and again with Acknowledged once it was answered with success. Of a
// lease there is only the answer.
type Operation struct {
	Kind  Kind     `json:"kind"`
	Trial trial.ID `json:"trial_id"`
	// LeaseEpoch and Worker are of the lease; 0 and empty where the client does
	// not know them, as a training script does not.
	LeaseEpoch trial.LeaseEpoch `json:"lease_epoch,omitempty"`
	Worker     string           `json:"worker,omitempty"`
	Rung       int              `json:"rung"`
	// Epoch and Metrics are a report's; Epoch and Artifact a checkpoint's.
	Epoch    int                    `json:"epoch,omitempty"`
	Metrics  map[string]trial.Float `json:"metrics,omitempty"`
	Artifact string                 `json:"artifact,omitempty"`
	// State is what the end of a lease was answered with.
	State        trial.State `json:"state,omitempty"`
	Acknowledged bool        `json:"acknowledged,omitempty"`
	// Void says that the answer promised nothing: a report behind the end of
	// its trial is answered with stop, and does not count.
	Void bool `json:"void,omitempty"`
}

// Log gathers operations. Its zero value is empty, and it is safe for
// concurrent use.
type Log struct {
	mutex      sync.Mutex
	operations []Operation
}

// Note adds an operation.
func (l *Log) Note(operation Operation) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.operations = append(l.operations, operation)
}

// Operations returns what was noted so far, in order.
func (l *Log) Operations() []Operation {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return append([]Operation(nil), l.operations...)
}

// Books is what a server says of a study at the end.
type Books struct {
	Study      protocol.StudyView
	Definition definition.Definition
	Trials     []trial.Trial   // by number
	Events     []journal.Event // from the first one on
	// Artifacts holds, for artifacts that were fetched, the SHA-256 of the bytes
	// that came; an entry that is empty was not there. Nil: none was fetched.
	Artifacts map[string]string
}

// Read reads a study's JSON export.
func Read(export io.Reader) (Books, error) {
	var document struct {
		Study  json.RawMessage `json:"study"`
		Trials []trial.Trial   `json:"trials"`
		Events []journal.Event `json:"events"`
	}
	if err := json.NewDecoder(export).Decode(&document); err != nil {
		return Books{}, fmt.Errorf("read a study's export: %w", err)
	}
	books := Books{Trials: document.Trials, Events: document.Events}
	var stored struct {
		Definition json.RawMessage `json:"definition"`
	}
	err := json.Unmarshal(document.Study, &books.Study)
	if err == nil {
		err = json.Unmarshal(document.Study, &stored)
	}
	if err == nil {
		books.Definition, err = definition.Stored(stored.Definition)
	}
	if err != nil {
		return Books{}, fmt.Errorf("read a study's export: %w", err)
	}
	return books, nil
}

// Invariant names a rule that every run keeps.
type Invariant string

// The invariants, to which docs/reliability.md leads. That a
// harness leaves no goroutine, descriptor or file behind (I10) is the harness's
// own to check.
const (
	Kept     Invariant = "I1: what was acknowledged is there"
	Sent     Invariant = "I2: what is there was sent"
	OneEnd   Invariant = "I3: a trial ends once"
	Fenced   Invariant = "I4: leases of a trial are numbered without a gap"
	Bounded  Invariant = "I5: no trial is started, leased or given up more often than it may be"
	Current  Invariant = "I6: a report counts once, under the lease of its time"
	Recount  Invariant = "I7: sums, results and the best follow from the reports"
	Replayed Invariant = "I8: the search decides again what it decided"
	Behind   Invariant = "I9: a checkpoint is committed under a lease and is what was uploaded"
)

// Violation is an invariant that a run broke, and where.
type Violation struct {
	Invariant Invariant
	What      string
}

// String is the violation in one line.
func (v Violation) String() string { return string(v.Invariant) + ", but " + v.What }

// Check returns what is wrong with the books of a study that is over.
func Check(operations []Operation, books Books) []Violation {
	c := &check{operations: operations, books: books, lives: make(map[trial.ID]*life), failed: make(map[int]bool)}
	c.walk()
	c.trials()
	c.acknowledged()
	c.sent()
	c.best()
	c.replay()
	return c.found
}

type check struct {
	operations []Operation
	books      Books
	lives      map[trial.ID]*life
	failed     map[int]bool // trials that the search was told will not be measured
	over       bool         // the study is over at the event
	reopening  bool         // it was extended then, and is about to go on
	found      []Violation
}

func (c *check) violated(invariant Invariant, format string, args ...any) {
	c.found = append(c.found, Violation{invariant, fmt.Sprintf(format, args...)})
}

// replay puts the log's decisions to a new search.
func (c *check) replay() {
	if decisions, err := session.Replay(c.books.Definition, c.books.Events); err != nil {
		c.violated(Replayed, "after %d decisions: %v", decisions, err)
	}
}
