package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

func scanStudy(row pgx.CollectableRow) (journal.Study, error) {
	var one journal.Study
	var name, document, status, created, annotation string
	var elapsed int64
	var since, finished *string
	err := row.Scan(&one.ID, &name, &document, &status, &one.Reason, &created, &elapsed, &since, &finished, &annotation)
	if err != nil {
		return one, err
	}
	one.Owner = journal.OwnerOf(name)
	one.Status, one.Elapsed = protocol.StudyStatus(status), time.Duration(elapsed)
	if one.Definition, err = record.ParseDefinition(document); err != nil {
		return one, err
	}
	if one.Created, err = record.ParseTime(created); err != nil {
		return one, err
	}
	if one.Since, err = parseOptional(since); err != nil {
		return one, err
	}
	if one.Annotation, err = record.ParseAnnotation(annotation); err != nil {
		return one, err
	}
	one.Finished, err = parseOptional(finished)
	return one, err
}

func scanTrial(row pgx.CollectableRow) (trial.Trial, error) {
	document, err := scanText(row)
	if err != nil {
		return trial.Trial{}, err
	}
	return record.ParseTrial(document)
}

func scanReport(row pgx.CollectableRow) (trial.Report, error) {
	document, err := scanText(row)
	if err != nil {
		return trial.Report{}, err
	}
	return record.ParseReport(document)
}

func scanEvent(row pgx.CollectableRow) (journal.Event, error) {
	var one journal.Event
	var at, kind, id, data string
	err := row.Scan(&one.Study, &one.Sequence, &at, &kind, &id, &one.State, &one.Worker, &one.Reason, &data)
	if err != nil {
		return one, err
	}
	one.Kind, one.Trial, one.Data = journal.EventKind(kind), trial.ID(id), record.RawOrNil(data)
	one.At, err = record.ParseTime(at)
	return one, err
}

func scanSnapshot(row pgx.CollectableRow) (journal.Snapshot, error) {
	var one journal.Snapshot
	var state string
	err := row.Scan(&one.Study, &one.Sequence, &state)
	one.State = record.RawOrNil(state)
	return one, err
}

func scanReceipt(row pgx.CollectableRow) (journal.Receipt, error) {
	var one journal.Receipt
	var answer, at string
	err := row.Scan(&one.Key, &one.Request, &answer, &at)
	if err != nil {
		return one, err
	}
	one.Answer = record.RawOrNil(answer)
	one.At, err = record.ParseTime(at)
	return one, err
}

func parseOptional(text *string) (*time.Time, error) {
	if text == nil {
		return nil, nil //nolint:nilnil // no time is a value here
	}
	at, err := record.ParseTime(*text)
	return &at, err
}
