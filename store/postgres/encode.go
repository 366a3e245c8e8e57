package postgres

import (
	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/journal"
)

// documents are the parts of a change that are kept as text, each list in the
// order of the change's. They are made before the change's turn to be written,
// so that the writer only writes.
type documents struct {
	definition                              string
	inserted, updated                       record.Amended
	trials, reports, records, architectures []string
}

func encode(change journal.Change) (documents, error) {
	var d documents
	var err error
	if change.Insert != nil {
		if d.definition, err = record.FormatDefinition(change.Insert.Definition); err != nil {
			return d, err
		}
	}
	if d.inserted, err = record.Amend(change.Insert); err != nil {
		return d, err
	}
	if d.updated, err = record.Amend(change.Update); err != nil {
		return d, err
	}
	trialOf := func(write journal.TrialWrite) (string, error) { return record.FormatTrial(write.Trial) }
	if d.trials, err = formatAll(change.Trials, trialOf); err != nil {
		return d, err
	}
	if d.reports, err = formatAll(change.Reports, record.FormatReport); err != nil {
		return d, err
	}
	if d.records, err = formatAll(change.Records, record.FormatRecord); err != nil {
		return d, err
	}
	d.architectures, err = formatAll(change.Architectures, record.FormatArchitecture)
	return d, err
}

func formatAll[T any](values []T, format func(T) (string, error)) ([]string, error) {
	var texts []string
	for _, value := range values {
		text, err := format(value)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}
