package record

import (
	"cmp"
	"fmt"

	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

// Documents are the parts of a change that are kept as text, each list in the
// order of the change's. They are made before the change's turn to be written,
// so that the writer only writes.
type Documents struct {
	Definition string
	// What was written since about the study that is inserted, and the one that is updated.
	Inserted, Updated                       Amended
	Trials, Reports, Records, Architectures []string
}

// Encode makes the documents of a change.
func Encode(change journal.Change) (d Documents, err error) {
	if change.Insert != nil {
		if d.Definition, err = FormatDefinition(change.Insert.Definition); err != nil {
			return d, err
		}
	}
	if d.Inserted, err = Amend(change.Insert); err != nil {
		return d, err
	}
	if d.Updated, err = Amend(change.Update); err != nil {
		return d, err
	}
	trialOf := func(write journal.TrialWrite) (string, error) { return FormatTrial(write.Trial) }
	if d.Trials, err = formatAll(change.Trials, trialOf); err != nil {
		return d, err
	}
	if d.Reports, err = formatAll(change.Reports, FormatReport); err != nil {
		return d, err
	}
	if d.Records, err = formatAll(change.Records, FormatRecord); err != nil {
		return d, err
	}
	d.Architectures, err = formatAll(change.Architectures, FormatArchitecture)
	return d, err
}

func formatAll[T any](values []T, format func(T) (string, error)) ([]string, error) {
	texts := make([]string, len(values))
	for i, value := range values {
		var err error
		if texts[i], err = format(value); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// FillEvent sets the fields of an event that are not stored as they are.
func FillEvent(one *journal.Event, at, kind, of, data string) (err error) {
	one.Kind, one.Trial, one.Data = journal.EventKind(kind), trial.ID(of), RawOrNil(data)
	one.At, err = ParseTime(at)
	return err
}

// TokenRow holds the columns of a token that are not stored as its fields are.
type TokenRow struct {
	Scope, Created string
	Hash           []byte
	Expires, Used  *string
}

// Fill sets the fields of the token that have the columns of the row.
func (r TokenRow) Fill(one *access.Token) error {
	if copy(one.Hash[:], r.Hash) != len(one.Hash) || len(r.Hash) != len(one.Hash) {
		return fmt.Errorf("the stored hash of token %s is damaged: it has %d bytes instead of %d", one.ID, len(r.Hash), len(one.Hash))
	}
	var errs [3]error
	one.Scope = access.Scope(r.Scope)
	one.Created, errs[0] = ParseTime(r.Created)
	one.Expires, errs[1] = ParseTimeOrNil(r.Expires)
	one.Used, errs[2] = ParseTimeOrNil(r.Used)
	return cmp.Or(errs[:]...)
}
