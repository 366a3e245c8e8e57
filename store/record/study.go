package record

import (
	"cmp"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

// StudyRow holds the columns of a study that are not stored as its fields are.
type StudyRow struct {
	Name, Definition, Status, Created string
	Elapsed                           int64 // nanoseconds
	Since, Finished                   *string
	Amended
}

// Amended are the columns with what was written about a study since it was created, as
// JSON documents: its annotation and its changes. Each is empty where there is nothing.
type Amended struct{ Annotation, Stop string }

// Amend returns those columns of the study; of no study where that is nil.
func Amend(one *journal.Study) (a Amended, err error) {
	if one == nil {
		return a, nil
	}
	if len(one.Tags) > 0 || one.Note != "" {
		a.Annotation, err = format("an annotation", one.Annotation)
	}
	if err == nil && one.Changes != (journal.Changes{}) {
		a.Stop, err = format("the changes of study "+one.Definition.Name, one.Changes)
	}
	return a, err
}

// Fill sets the fields of the study that have the columns of the row.
func (r StudyRow) Fill(one *journal.Study) error {
	var errs [6]error
	one.Status, one.Elapsed = protocol.StudyStatus(r.Status), time.Duration(r.Elapsed)
	one.Definition, errs[0] = ParseDefinition(r.Definition)
	one.Owner, one.Definition.Name = journal.Parts(r.Name)
	one.Created, errs[1] = ParseTime(r.Created)
	one.Since, errs[2] = ParseTimeOrNil(r.Since)
	if r.Annotation != "" {
		one.Annotation, errs[3] = parse[trial.Annotation](r.Annotation)
	}
	one.Finished, errs[4] = ParseTimeOrNil(r.Finished)
	if r.Stop != "" {
		one.Changes, errs[5] = parse[journal.Changes](r.Stop)
	}
	return cmp.Or(errs[:]...)
}
