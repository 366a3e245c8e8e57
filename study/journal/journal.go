// Package journal is what a study leaves behind: studies, the events of their
// logs, and the changes that stores apply whole or not at all. It is the contract
// between the use cases (package study) and the stores.
package journal

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// Separator stands between the owner and the name of a user's study. Neither
// has it.
const Separator = ":"

// Study is a stored study.
type Study struct {
	ID string `json:"id"`
	// Owner is the user whose it is; empty for a study of the administrators.
	Owner      string                `json:"owner,omitempty"`
	Definition definition.Definition `json:"definition"`
	Changes    `json:"stop,omitzero"`
	Status     protocol.StudyStatus `json:"status"`
	Reason     string               `json:"reason,omitempty"`
	Created    time.Time            `json:"created"`
	// Elapsed is how long it has been running until Since. Neither pauses nor times
	// without a server or a leased trial count.
	Elapsed time.Duration `json:"elapsed"`
	// Since is when it last began to run (workers got a trial of it, it was resumed, or a
	// server started); nil when it does not.
	Since    *time.Time `json:"since,omitempty"`
	Finished *time.Time `json:"finished,omitempty"`
	// Annotation is what people wrote about it.
	trial.Annotation
}

// Changes are what holds in place of a study's definition, which stores never change; nil:
// that holds.
type Changes struct {
	*definition.Stop // since it was extended
	// Reopened is when it last went on after its end.
	Reopened time.Time `json:"reopened,omitzero"`
	protocol.SetRequest
}

// InForce is the study with what holds in its definition.
func (s Study) InForce() Study {
	if s.Stop != nil {
		s.Definition.Stop = *s.Stop
	}
	if s.Priority != nil {
		s.Definition.Priority = *s.Priority
	}
	if s.Parallel != nil {
		s.Definition.Parallel = *s.Parallel
	}
	return s
}

// Set is the study, as it is in force, with what is asked for, and says what that changes;
// empty: nothing. The error is invalid and names every fault of the request.
func (s Study) Set(wanted protocol.SetRequest) (set Study, changes string, err error) {
	var faults []problem.Field
	for _, one := range []struct {
		name        string
		least, most int
		wanted      *int
		now         int
		set         **int
	}{
		{"priority", -definition.MaxPriority, definition.MaxPriority, wanted.Priority, s.Definition.Priority, &s.Priority},
		{"parallel", 0, definition.MaxParallel, wanted.Parallel, s.Definition.Parallel, &s.Parallel},
	} {
		switch {
		case one.wanted == nil || *one.wanted == one.now:
		case *one.wanted < one.least || *one.wanted > one.most:
			faults = append(faults, problem.Field{Path: one.name, Value: *one.wanted, Message: fmt.Sprintf("must be a whole number from %d to %d", one.least, one.most)})
		default:
			*one.set = one.wanted
			changes += fmt.Sprintf("%s from %s to %s, ", one.name, shown(one.now, one.least), shown(*one.wanted, one.least))
		}
	}
	if wanted == (protocol.SetRequest{}) {
		faults = append(faults, problem.Field{Path: "priority", Message: "must be given, or else parallel"})
	}
	if len(faults) > 0 {
		return s, "", problem.WithFields("the study is not changed", faults)
	}
	return s.InForce(), strings.TrimSuffix(changes, ", "), nil
}

// shown is the value of a setting of which the least is no bound, where that is 0.
func shown(value, least int) string {
	if value == least && least == 0 {
		return "no bound"
	}
	return strconv.Itoa(value)
}

// ElapsedAt is how long the study has been running at the time.
func (s Study) ElapsedAt(now time.Time) time.Duration {
	if s.Since == nil {
		return s.Elapsed
	}
	return s.Elapsed + now.Sub(*s.Since)
}

// Counting is the study whose time was counted until the one time, and counts from the
// other one on, if it does.
func (s Study) Counting(counts bool, until, from time.Time) Study {
	if s.Elapsed, s.Since = s.ElapsedAt(until), nil; counts {
		s.Since = &from
	}
	return s
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
	// Extended says that the study has other limits from then on. Data: all of them.
	Extended EventKind = "study_extended"
	// Adjusted says what it gets of the pool from then on. Data: what was set so far.
	Adjusted EventKind = "study_set"
	// Transferred says that the study has another owner, or name, from then on. Data: which.
	Transferred EventKind = "study_owner"
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

// Reference is how the study is named among those of all owners: its name, with
// its owner before it when that is a user: "alice:lenet". No two studies share it.
func (s Study) Reference() string { return Reference(s.Owner, s.Definition.Name) }

// OwnerOf is the owner of the study with the reference.
func OwnerOf(reference string) string {
	owner, _ := Parts(reference)
	return owner
}

// Parts are the owner and the name of the study with the reference.
func Parts(reference string) (owner, name string) {
	owner, name, found := strings.Cut(reference, Separator)
	if !found {
		return "", reference
	}
	return owner, name
}

// Reference is the reference of the owner's study with the name.
func Reference(owner, name string) string {
	if owner == "" {
		return name
	}
	return owner + Separator + name
}

// View is a copy of a study at one moment, for what takes longer than the study's
// lock should be held. It is not to be changed.
type View struct {
	Study  Study
	Ladder []budget.Rung
	// Trials are all trials, by number.
	Trials []trial.Trial
	// Sequence is that of the newest event.
	Sequence int64
}

// Trial returns one of the trials; the error is not_found.
func (v View) Trial(number int) (trial.Trial, error) {
	if number < 0 || number >= len(v.Trials) {
		return trial.Trial{}, problem.New(problem.NotFound, "study %s has no trial %d", v.Study.Definition.Name, number)
	}
	return v.Trials[number], nil
}

// Check says what is wrong with the objective and the rung of a query.
func (v View) Check(objective int, rung *int) error {
	var faults []problem.Field
	if objective < 0 || objective >= len(v.Study.Definition.Objectives) {
		faults = append(faults, problem.Field{Path: "objective", Value: objective,
			Message: fmt.Sprintf("must be the place of an objective, from 0 to %d", len(v.Study.Definition.Objectives)-1)})
	}
	if rung != nil && (*rung < 0 || *rung >= len(v.Ladder)) {
		faults = append(faults, problem.Field{Path: "rung", Value: *rung, Message: fmt.Sprintf("must be a rung, from 0 to %d", len(v.Ladder)-1)})
	}
	if len(faults) > 0 {
		return problem.WithFields("the query is not valid", faults)
	}
	return nil
}
